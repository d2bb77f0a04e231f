// /admin/errors…: the errors that clients were answered with; /admin/debug/error: one more, as a test.

import { z } from "zod";
import type { Settings } from "../config/sections/registry.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { ErrorRecorder } from "../stats/error-recorder.ts";
import { recordDebugError } from "./debug-error.ts";
import { adminRoute, answer } from "./endpoint.ts";
import { errorById, errorStats, recentErrors } from "./error-view.ts";
import { readWindow } from "./query.ts";
import { type BodyParts, queryOf, readFields } from "./request.ts";

export interface ErrorParts extends BodyParts {
  errors: ErrorRecorder;
  /** Those that run now. */
  settings(): Settings;
  newId(): string;
}

/** What the fields may hold is checked by recordDebugError(). */
const debugError = z.strictObject({ type: z.unknown().optional(), backend: z.unknown().optional() });

export function errorRoutes(parts: ErrorParts): Endpoint[] {
  const { errors, settings, newId } = parts;
  return [
    adminRoute("GET", "/admin/errors/recent", (call) => answer(call, recentErrors(errors, queryOf(call))), [
      "limit",
      "type",
      "backend",
    ]),
    adminRoute("GET", "/admin/errors/stats", (call) => answer(call, errorStats(errors, readWindow(queryOf(call)))), [
      "window",
    ]),
    adminRoute("GET", "/admin/errors/{request_id...}", (call) =>
      answer(call, errorById(errors, call.parameters.request_id)),
    ),
    adminRoute("POST", "/admin/debug/error", async (call) => {
      const body = await readFields(debugError, call, parts);
      const backendNames = settings().backends.map(({ name }) => name);
      return answer(call, recordDebugError({ recorder: errors, backendNames, newId }, body));
    }),
  ];
}
