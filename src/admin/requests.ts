// GET /admin/requests: the latest requests; GET /admin/requests/{id}: what became of one of them, step by step.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { TIME_FORMS } from "../lib/parse-time.ts";
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
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { timeText } from "./query.ts";
import { queryOf } from "./request.ts";
import { explainRequest, listRequests, SHOWN_OUTCOMES, STATUS_PATTERN } from "./request-view.ts";

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
  Requests: shape({ requests: list(shape(requestRowProperties)), total: count, next_cursor: orNull(text) }),
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

export function requestRoutes({ stories, errors }: Pick<AdminParts, "stories" | "errors">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/requests", {
      id: "listRequests",
      summary: "The latest requests, the newest first",
      parameters: [
        queryParameter("model", "Asked for, or answering."),
        queryParameter("backend", "Of any attempt."),
        queryParameter("status", "Such as 502, or 5xx.", { ...text, pattern: STATUS_PATTERN }),
        queryParameter("key", "Id of the caller's key."),
        queryParameter("user", "Id of the user."),
        queryParameter("organization", "Id of the organization."),
        queryParameter("outcome", "How it ended.", oneOfTexts(...SHOWN_OUTCOMES)),
        queryParameter("min_duration_ms", "At least so long.", { type: "integer", minimum: 0 }),
        queryParameter("since", `${TIME_FORMS}; inclusive.`, timeText),
        queryParameter("until", "The same, exclusive.", timeText),
        queryParameter("id", "A part of either id."),
        queryParameter("limit", "Most requests, up to 1,000.", { type: "integer", minimum: 1, default: 50 }),
        queryParameter("cursor", "next_cursor of the page before."),
      ],
      answers: [jsonAnswer("Requests", "The requests.")],
      handle: (call) => answer(call, listRequests(stories, queryOf(call))),
    }),
    endpoint("GET /admin/requests/{request_id...}", {
      id: "explainRequest",
      summary: "What became of one request, step by step",
      parameters: [requestId],
      answers: [jsonAnswer("RequestStory", "The explanation.")],
      handle: (call) =>
        answer(
          call,
          explainRequest(stories, call.parameters.request_id, (id) => errors.byId(id)),
        ),
    }),
  ];
}
