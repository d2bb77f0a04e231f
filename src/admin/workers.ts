// /admin/workers: the processes that answer requests, and their replacement one round at a time.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import {
  count,
  described,
  flag,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  time,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

export const Workers = namedShape("Workers", {
  enabled: described(flag, "false: one process does everything."),
  restarts: described(
    shape({ crash: count, hang: count, memory: count, request: count }),
    "Workers that were replaced since the start, by reason.",
  ),
  workers: list(
    shape({
      pid: count,
      state: oneOfTexts("starting", "running", "draining"),
      started_at: time,
      open_requests: orNull(count),
      open_streams: orNull(count),
      memory_bytes: orNull(count),
      cpu_seconds: orNull(number),
    }),
  ),
});
const WorkersRestarted = namedShape("WorkersRestarted", { success: flag, message: text, replaced: count });

const SCHEMAS = schemasOf(Workers, WorkersRestarted);

const NO_RESTARTS = { crash: 0, hang: 0, memory: 0, request: 0 };

const endpoint = adminGroup("Observation", SCHEMAS);

export function workerRoutes(parts: Pick<AdminParts, "workers">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/workers", {
      id: "getWorkers",
      role: "viewer",
      summary: "The processes that answer requests",
      answers: [jsonAnswer(Workers, "The workers.")],
      handle(call) {
        const { workers } = parts;
        const rows = (workers?.rows() ?? []).map(({ pid, state, startedAtMs, numbers }) => ({
          pid,
          state,
          started_at: toTimestamp(startedAtMs),
          open_requests: numbers?.openRequests ?? null,
          open_streams: numbers?.openStreams ?? null,
          memory_bytes: numbers?.residentBytes ?? null,
          cpu_seconds: numbers?.cpuSeconds ?? null,
        }));
        return answer(call, {
          enabled: workers !== undefined,
          restarts: workers?.restarts() ?? NO_RESTARTS,
          workers: rows,
        });
      },
    }),
    endpoint("POST /admin/workers/restart", {
      id: "restartWorkers",
      role: "operator",
      summary: "Replaces every worker; new ones listen before old ones stop to",
      description: "Answers when the new workers listen. The old ones finish their requests, within shutdown_timeout.",
      answers: [jsonAnswer(WorkersRestarted, "The new workers listen.")],
      errors: [409],
      async handle(call) {
        const { workers } = parts;
        if (workers === undefined) {
          throw new GatewayError(
            ERRORS.conflict,
            "There is one process and no worker; set server.workers to have some.",
          );
        }
        const replaced = await workers.restart();
        const message = `${replaced} new workers listen; those before them finish what they have.`;
        return answer(call, { success: true, message, replaced });
      },
    }),
  ];
}
