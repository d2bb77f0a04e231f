// GET /admin/events: what happens in the gateway, as it happens, for dashboards.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyOf,
  count,
  described,
  list,
  number,
  orNull,
  ref,
  type Schemas,
  shape,
  text,
  time,
} from "../openapi/json-schema.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { Administrator } from "../server/endpoint.ts";
import { replacedFieldNames } from "./config-schemas.ts";
import { adminGroup } from "./endpoint.ts";
import { createEventHub } from "./event-hub.ts";
import type { AdminParts } from "./parts.ts";
import { requestRowProperties } from "./requests.ts";

const stateChange = { at: time, backend: text, from: text, to: text };
const omitted: JsonSchema = shape({ at: time, omitted: described(count, "Changes that are not told one by one.") });

const SCHEMAS: Schemas = {
  AdminEvent: anyOf(
    described(
      shape({
        at: time,
        interval_ms: count,
        total: count,
        failed: count,
        refused: count,
        client_left: count,
        avg_duration_ms: number,
        max_duration_ms: number,
        avg_first_byte_ms: orNull(number),
        prompt_tokens: count,
        completion_tokens: count,
        requests: list(shape(requestRowProperties)),
        omitted: described(count, "Requests that `total` counts and `requests` does not list."),
      }),
      "request: requests that have ended since the last one of these.",
    ),
    described(shape({ ...stateChange, reason: orNull(text) }), "health: a backend has another state."),
    described(shape(stateChange), "circuit: a circuit has another state."),
    described(
      shape({
        at: time,
        version: count,
        previous_version: count,
        sections: list(text),
        replaced: replacedFieldNames,
      }),
      "config: another configuration is in force.",
    ),
    described(shape({ at: time }), "heartbeat: every 15 seconds, so that a reader notices a connection that is dead."),
    described(omitted, "health, circuit: too many at once; ask GET /admin/backends."),
  ),
};

const endpoint = adminGroup("Observation", SCHEMAS);

type EventsParts = Pick<AdminParts, "happenings" | "stories" | "store" | "clock" | "log">;

export function eventRoutes(parts: EventsParts): DescribedEndpoint[] {
  let hub: ReturnType<typeof createEventHub> | undefined;
  return [
    endpoint("GET /admin/events", {
      id: "followEvents",
      summary: "What happens, as it happens",
      description:
        "Server-sent events, named request, health, circuit, config and heartbeat: twice a second at most. Nothing is sent again: whoever comes anew asks the other endpoints first. Readers that fall behind are dropped, and the stream ends with the sign-in.",
      answers: [{ status: 200, description: "The events, until the reader leaves.", events: ref("AdminEvent") }],
      errors: [503],
      handle({ request, headers, administrator }) {
        hub ??= createEventHub(parts);
        const body = request.method === "HEAD" ? null : hub.listen(administrator as Administrator);
        return new Response(body, {
          headers: {
            ...headers,
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
          },
        });
      },
    }),
  ];
}
