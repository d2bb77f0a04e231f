// What GET /admin/events tells, as JSON Schema.

import {
  anyOf,
  component,
  count,
  described,
  list,
  number,
  orNull,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { replacedFieldNames } from "./config-schemas.ts";
import { requestRow } from "./request-schemas.ts";

const stateChange = { at: time, backend: text, from: text, to: text };
const omitted = shape({ at: time, omitted: described(count, "Changes that are not told one by one.") });

const requestEvent = shape({
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
  requests: list(requestRow),
  omitted: described(count, "Requests that `total` counts and `requests` does not list."),
});
export type RequestEvent = ValueOf<typeof requestEvent>;

export const AdminEvent = component(
  "AdminEvent",
  anyOf(
    described(requestEvent, "request: requests that have ended since the last one of these."),
    described(shape({ ...stateChange, reason: orNull(text) }), "health: a backend has another state."),
    described(shape(stateChange), "circuit: a circuit has another state."),
    described(
      shape({
        at: time,
        budget: text,
        subject: orNull(text),
        share: number,
        amount: text,
        spent: number,
        limit: number,
      }),
      "budget: a budget is spent to this share of its limit; told once in each window.",
    ),
    described(
      shape({ at: time, route: text, arm: text, metric: text, value: number, compared: number, main: text }),
      "route: a target of a route is worse than its main one, and has the weight 0 from now on.",
    ),
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
    described(
      omitted,
      "health, circuit, budget, route: too many at once; ask GET /admin/backends, /admin/budgets or /admin/routes.",
    ),
  ),
);
