// Answers of the admin API about requests, as JSON Schema.

import {
  anyOf,
  component,
  count,
  described,
  flag,
  integer,
  list,
  mapOf,
  namedShape,
  nothing,
  number,
  oneOf,
  oneOfTexts,
  orNull,
  type Properties,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import type { ColumnName } from "../request-log/columns.ts";
import { OUTCOMES } from "../stats/outcome.ts";

export const RUNNING = "running";
/** Outcomes in the list and in an explanation. */
export const SHOWN_OUTCOMES = [RUNNING, ...OUTCOMES] as const;

const rowMembers = {
  id: text,
  request_id: text,
  started_at: time,
  finished: flag,
  outcome: oneOfTexts(...SHOWN_OUTCOMES),
  operation: text,
  model: text,
  answered_by: orNull(text),
  route: described(orNull(text), "The route that the client asked for."),
  arm: described(orNull(text), "The target of the route that was asked last; null where the fallback chain went on."),
  stream: flag,
  key_id: orNull(text),
  user_id: described(orNull(text), "As the key names the user, else as the request does."),
  organization_id: orNull(text),
  client: described(orNull(text), "Address of the client, behind trusted proxies."),
  target: described(orNull(text), "Method and path, of a request that was refused before it was known what it asks."),
  backend: orNull(text),
  vendor_batch: described(orNull(text), "The batch of the backend's vendor that has answered, by the vendor's id."),
  status: orNull(integer),
  failure: orNull(text),
  code: described(orNull(text), "Of the error that the client was answered with."),
  attempts: count,
  duration_ms: number,
  first_byte_ms: orNull(number),
  prompt_tokens: orNull(count),
  completion_tokens: orNull(count),
};

export const requestRow = shape(rowMembers);
export type RequestRow = ValueOf<typeof requestRow>;

/** Members of every answer to a search. */
const searched = { total: count, searched_since: orNull(time) };

export const Requests = namedShape("Requests", { requests: list(requestRow), ...searched, next_cursor: orNull(text) });
export type Requests = ValueOf<typeof Requests>;

const candidate = shape(
  { backend: text, chosen: flag, why: text },
  { score: number, in_flight: count, latency_ms: number, excluded: text },
);
export type CandidateRow = ValueOf<typeof candidate>;

function step<const Kind extends string, Members extends Properties>(kinds: readonly Kind[], members: Members) {
  return shape({ kind: oneOfTexts(...kinds), at_ms: number, text: orNull(text), ...members });
}

export const RequestStep = component(
  "RequestStep",
  oneOf(
    step(["attempt"], {
      backend: text,
      model: text,
      strategy: orNull(text),
      score_means: orNull(text),
      candidates: list(candidate),
      outcome: oneOfTexts("failed", "running", "succeeded"),
      failure: orNull(text),
      detail: described(orNull(text), "What the backend said, or what the gateway says of the failure."),
      retry_after_ms: orNull(number),
      in_panic: described(flag, "Tried although its circuit was open, as those of all others were."),
      status: orNull(integer),
      duration_ms: orNull(number),
      first_byte_ms: orNull(number),
    }),
    step(["wait"], {
      duration_ms: number,
      reason: text,
      class: described(orNull(text), "Of a wait in the queue: the class of the request."),
    }),
    step(["fallback", "takeover"], { from: text, to: text, reason: text }),
    step(["shared"], { leader: text }),
    step(["file"], { field: text }),
    step(["hook"], {
      hook: text,
      event: text,
      verdict: text,
      duration_ms: number,
      detail: described(
        orNull(text),
        "The code of a refusal, names and sizes of what was changed, or why the hook failed.",
      ),
      note: described(orNull(mapOf(anyOf(number, flag))), "What the hook has noted, such as a score."),
    }),
    step(["refused"], { reason: text }),
  ),
);
export type RequestStep = ValueOf<typeof RequestStep>;
export type AttemptRow = Extract<RequestStep, { kind: "attempt" }>;

export const RequestStory = namedShape("RequestStory", {
  ...rowMembers,
  summary: described(text, "What happened, in one line."),
  route_reason: described(orNull(text), "The target that the route has chosen first, and why."),
  route_lot: described(
    orNull(number),
    "The lot of the session, where that has decided; only while the story is in memory.",
  ),
  explanation: described(list(text), "The same in sentences, one for each step and one for the end."),
  error: described(
    orNull(shape({ type: text, code: anyOf(text, integer, nothing), message: text })),
    "What the client was told, of the latest errors.",
  ),
  ended_by: described(orNull(text), "Of a failure: the rules by which no other backend and no other model was asked."),
  cache: orNull(shape({ decision: oneOfTexts("HIT", "MISS", "BYPASS"), reason: orNull(text) })),
  timings: shape({
    total_ms: number,
    gateway_ms: orNull(number),
    backend_ms: orNull(number),
    first_token_ms: orNull(number),
    first_byte_ms: orNull(number),
    until_first_attempt_ms: orNull(number),
    tokens_per_second: orNull(number),
    waiting_ms: number,
  }),
  steps: list(RequestStep),
  steps_dropped: count,
  others: list(text),
});

export type RequestStory = ValueOf<typeof RequestStory>;

/** Values of `by`, each with its column and with the member that shows it. */
export const GROUPS = {
  status: { column: "status", member: "status" },
  code: { column: "code", member: "code" },
  outcome: { column: "outcome", member: "outcome" },
  model: { column: "model", member: "model" },
  backend: { column: "backend", member: "backend" },
  key: { column: "keyId", member: "key_id" },
  user: { column: "userId", member: "user_id" },
  organization: { column: "organizationId", member: "organization_id" },
  client: { column: "clientAddress", member: "client" },
} as const satisfies Record<string, { column: ColumnName; member: string }>;

export type GroupName = keyof typeof GROUPS;
export const GROUP_NAMES = Object.keys(GROUPS) as GroupName[];

const groupMembers = {
  status: orNull(integer),
  code: orNull(text),
  outcome: orNull(text),
  model: orNull(text),
  backend: orNull(text),
  key_id: orNull(text),
  user_id: orNull(text),
  organization_id: orNull(text),
  client: orNull(text),
} satisfies Record<(typeof GROUPS)[GroupName]["member"], unknown>;

export const RequestGroups = namedShape("RequestGroups", {
  by: list(oneOfTexts(...GROUP_NAMES)),
  groups: list(shape({ count, first_at: time, last_at: time, example_id: text }, groupMembers)),
  omitted: count,
  ...searched,
});
export type RequestGroups = ValueOf<typeof RequestGroups>;
