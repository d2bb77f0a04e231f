// GET /admin/requests: requests, by what one looks for; /admin/requests/groups: those that are alike, counted;
// /admin/requests/{id}: what became of one of them, step by step.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyOf,
  count,
  described,
  flag,
  list,
  number,
  oneOfTexts,
  orNull,
  type Properties,
  ref,
  type Schemas,
  shape,
  text,
  time,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter } from "../openapi/operation.ts";
import type { RequestSearch } from "../request-log/search.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf } from "./request.ts";
import {
  callerOf,
  explainRequest,
  GROUP_SCHEMAS,
  groupParameters,
  groupRequests,
  listParameters,
  listRequests,
  searched,
} from "./request-query.ts";
import { SHOWN_OUTCOMES } from "./request-view.ts";

export const requestId = pathParameter(
  "request_id",
  "From the header X-Signalbox-Request-ID of the answer, or from X-Request-ID: of several requests the newest.",
);

export const requestRowProperties: Properties = {
  id: text,
  request_id: text,
  started_at: time,
  finished: flag,
  outcome: oneOfTexts(...SHOWN_OUTCOMES),
  operation: text,
  model: text,
  answered_by: orNull(text),
  stream: flag,
  key_id: orNull(text),
  user_id: described(orNull(text), "As the key names the user, else as the request does."),
  organization_id: orNull(text),
  client: described(orNull(text), "Address of the client, behind trusted proxies."),
  target: described(orNull(text), "Method and path, of a request that was refused before it was known what it asks."),
  backend: orNull(text),
  status: orNull({ type: "integer" }),
  failure: orNull(text),
  code: described(orNull(text), "Of the error that the client was answered with."),
  attempts: count,
  duration_ms: number,
  first_byte_ms: orNull(number),
  prompt_tokens: orNull(count),
  completion_tokens: orNull(count),
};

const SCHEMAS: Schemas = {
  ...GROUP_SCHEMAS,
  Requests: shape({ requests: list(shape(requestRowProperties)), ...searched, next_cursor: orNull(text) }),
  RequestStory: shape({
    ...requestRowProperties,
    summary: described(text, "What happened, in one line."),
    explanation: described(list(text), "The same in sentences, one for each step and one for the end."),
    error: described(
      orNull(shape({ type: text, code: anyOf(text, { type: "integer" }, { type: "null" }), message: text })),
      "What the client was told, of the latest errors.",
    ),
    ended_by: described(
      orNull(text),
      "Of a failure: the rules by which no other backend and no other model was asked.",
    ),
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
    steps: list(ref("RequestStep")),
    steps_dropped: count,
    others: list(text),
  }),
  RequestStep: requestStep(),
};

function requestStep(): JsonSchema {
  const step = (kinds: readonly string[], members: Properties): JsonSchema =>
    shape({ kind: oneOfTexts(...kinds), at_ms: number, text: orNull(text), ...members });
  const candidate = shape(
    { backend: text, chosen: flag, why: text },
    { score: number, in_flight: count, latency_ms: number, excluded: text },
  );
  return {
    oneOf: [
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
        status: orNull({ type: "integer" }),
        duration_ms: orNull(number),
        first_byte_ms: orNull(number),
      }),
      step(["wait"], { duration_ms: number, reason: text }),
      step(["fallback", "takeover"], { from: text, to: text, reason: text }),
      step(["shared"], { leader: text }),
      step(["file"], { field: text }),
      step(["refused"], { reason: text }),
    ],
  };
}

const endpoint = adminGroup("Observation", SCHEMAS);

export function requestRoutes({
  search,
  stories,
  errors,
  clock,
}: Pick<AdminParts, "stories" | "errors" | "clock"> & { search: RequestSearch }): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/requests", {
      id: "listRequests",
      summary: "Requests, those in memory and those on disk",
      parameters: listParameters,
      answers: [jsonAnswer("Requests", "The requests.")],
      errors: [503],
      handle: async (call) => answer(call, await listRequests(search, stories, queryOf(call), callerOf(call, clock))),
    }),
    endpoint("GET /admin/requests/groups", {
      id: "groupRequests",
      summary: "Requests that are alike, counted",
      parameters: groupParameters,
      answers: [jsonAnswer("RequestGroups", "The groups, the largest first.")],
      errors: [503],
      handle: async (call) => answer(call, await groupRequests(search, queryOf(call), callerOf(call, clock))),
    }),
    endpoint("GET /admin/requests/{request_id...}", {
      id: "explainRequest",
      summary: "What became of one request, step by step",
      parameters: [requestId],
      answers: [jsonAnswer("RequestStory", "The explanation.")],
      errors: [503],
      async handle(call) {
        const { request_id: id } = call.parameters;
        return answer(call, await explainRequest(search, stories, id, (ownId) => errors.byId(ownId)));
      },
    }),
  ];
}
