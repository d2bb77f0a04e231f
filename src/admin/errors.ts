// /admin/errors…: the errors that clients were answered with; /admin/debug/error: one more, as a test.

import { done } from "../openapi/change-schemas.ts";
import {
  component,
  count,
  described,
  integer,
  list,
  mapOf,
  namedShape,
  number,
  orNull,
  type Schema,
  schemasOf,
  shape,
  strictRequest,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import type { Condition, RequestSearch } from "../request-log/search.ts";
import { isFailure, type Outcome } from "../stats/outcome.ts";
import { recordDebugError } from "./debug-error.ts";
import { adminGroup, answer } from "./endpoint.ts";
import { errorById, errorStats, recentErrors } from "./error-view.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, readWindow, STATS_WINDOW_NAMES } from "./query.ts";
import { callerOf, groupParameters, groupRequests } from "./request-query.ts";
import { RequestGroups } from "./request-schemas.ts";
import { requestId } from "./requests.ts";
import { statsWindow } from "./stats.ts";

/** A code may be a number, as that of a backend is. */
const code: Schema<string | number | null> = { type: ["string", "integer", "null"] };
const countsByName = mapOf(count);

export const ErrorRecord = namedShape("ErrorRecord", {
  id: text,
  request_id: text,
  timestamp: time,
  status: integer,
  type: text,
  code,
  message: text,
  model: orNull(text),
  backend: orNull(text),
  key_id: orNull(text),
  user_id: orNull(text),
  organization_id: orNull(text),
  client: orNull(text),
  ended_by: described(orNull(text), "Of a failure: why no other backend was asked."),
  attempts: list(
    shape(
      { backend: text, failure: text },
      { model: text, detail: described(text, "What the backend said, or the gateway of it."), duration_ms: number },
    ),
  ),
});
export type ErrorRecord = ValueOf<typeof ErrorRecord>;
export const RecentErrors = namedShape("RecentErrors", { errors: list(ErrorRecord), total: count });
export type RecentErrors = ValueOf<typeof RecentErrors>;
export const ErrorStatistics = namedShape("ErrorStatistics", {
  total: count,
  by_type: countsByName,
  by_status: countsByName,
  by_backend: countsByName,
  window: text,
});
export type ErrorStatistics = ValueOf<typeof ErrorStatistics>;
const DebugErrorRequest = component(
  "DebugErrorRequest",
  strictRequest({
    type: {
      ...text,
      pattern: "^(timeout|connection_error|circuit_open|status_[45][0-9][0-9])$",
      description: "timeout, connection_error, circuit_open, or status_ and a status from 400 to 599.",
    },
    backend: described({ ...text, minLength: 1 }, "Name of a backend."),
  }),
);
const DebugError = namedShape("DebugError", { ...done, error: ErrorRecord });

const SCHEMAS = schemasOf(RequestGroups, RecentErrors, ErrorRecord, ErrorStatistics, DebugErrorRequest, DebugError);

const endpoint = adminGroup("Observation", SCHEMAS);

/** Leaves out requests whose client left. */
const TROUBLE: readonly Condition[] = [
  { columns: ["outcome"], test: (outcome) => outcome === "refused" || isFailure(outcome as Outcome) },
];

export function errorRoutes({
  errors,
  settings,
  newId,
  clock,
  search,
}: Pick<AdminParts, "errors" | "settings" | "newId" | "clock"> & { search: RequestSearch }): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/errors/recent", {
      id: "listErrors",
      role: "viewer",
      summary: "The errors that clients were answered with lately",
      parameters: [
        queryParameter("limit", "Most errors.", { type: "integer", minimum: 1, default: 50 }),
        queryParameter("type", "Only of this type."),
        queryParameter("backend", "Only with attempts at this backend."),
      ],
      answers: [jsonAnswer(RecentErrors, "The errors, the newest first.")],
      handle: (call) => answer(call, recentErrors(errors, queryOf(call))),
    }),
    endpoint("GET /admin/errors/stats", {
      id: "getErrorStatistics",
      role: "viewer",
      summary: "How many errors of which kind",
      parameters: [statsWindow],
      answers: [jsonAnswer(ErrorStatistics, "The numbers.")],
      handle: (call) =>
        answer(call, errorStats(errors, readWindow(queryOf(call), STATS_WINDOW_NAMES, clock.wallTime()))),
    }),
    endpoint("GET /admin/errors/groups", {
      id: "groupErrors",
      role: "viewer",
      summary: "Requests that were refused or failed, counted by what they have in common",
      parameters: groupParameters,
      answers: [jsonAnswer(RequestGroups, "The groups, the largest first.")],
      errors: [503],
      handle: async (call) => answer(call, await groupRequests(search, queryOf(call), callerOf(call, clock), TROUBLE)),
    }),
    endpoint("GET /admin/errors/{request_id...}", {
      id: "getError",
      role: "viewer",
      summary: "The error of one request",
      parameters: [requestId],
      answers: [jsonAnswer(ErrorRecord, "The error.")],
      handle: (call) => answer(call, errorById(errors, call.parameters.request_id)),
    }),
    endpoint("POST /admin/debug/error", {
      id: "recordTestError",
      role: "operator",
      summary: "Record a test error",
      body: {
        schema: DebugErrorRequest,
        example: { type: "timeout", backend: "local" },
      },
      answers: [jsonAnswer(DebugError, "Recorded.")],
      errors: [404],
      async handle(call, read) {
        const body = await read();
        call.deed = { subject: body.backend };
        const backendNames = settings().backends.map(({ name }) => name);
        return answer(call, recordDebugError({ recorder: errors, backendNames, newId }, body));
      },
    }),
  ];
}
