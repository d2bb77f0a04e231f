// POST /v1/feedback: what a client says of an answer that it got.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import {
  anyObject,
  described,
  namedShape,
  number,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import type { RecordingsInUse } from "../recording/recording-part.ts";
import type { RequestSearch } from "../request-log/search.ts";
import { parseSmallBody } from "../server/parse-body.ts";
import type { RequestRecord } from "../stats/request-record.ts";

interface FeedbackParts {
  search: Pick<RequestSearch, "findOf">;
  recordings: RecordingsInUse;
  clock: Pick<Clock, "wallTime">;
  /** A target of a route has a score; `before`: the one that it replaces. */
  rated(record: RequestRecord, score: number, before: number | undefined): void;
}

const MAX_BODY_BYTES = 32 * 1024;
const MOST_COMMENT = 4_000;
const MOST_METADATA = 4_000;

const FeedbackObject = namedShape("Feedback", {
  object: { const: "feedback" } as const,
  request_id: described(text, "The gateway's own id of the request."),
  score: number,
  created_at: time,
});
type FeedbackObject = ValueOf<typeof FeedbackObject>;

const request = {
  ...shape(
    {
      request_id: described(
        { ...text, minLength: 1 },
        "From the header X-Signalbox-Request-ID of the answer; of a recent one also from X-Request-ID.",
      ),
      score: described({ ...number, minimum: 0, maximum: 1 }, "From 0, bad, to 1, good."),
    },
    {
      comment: { ...text, maxLength: MOST_COMMENT },
      metadata: described(anyObject, "Anything; at most 4,000 characters as JSON."),
    },
  ),
  additionalProperties: false,
};

/** @param parts - of the process that knows what became of requests */
export function feedbackRoutes(parts: () => FeedbackParts): DescribedEndpoint[] {
  return [
    {
      method: "POST",
      path: "/v1/feedback",
      id: "giveFeedback",
      tag: "Recordings",
      access: "write",
      schemas: schemasOf(FeedbackObject),
      summary: "Rate an answer",
      description: "By the key that asked. A second one for the same request replaces the first.",
      body: { schema: request, example: { request_id: "4f2k9d1x-7", score: 1, comment: "Just right." } },
      answers: [jsonAnswer(FeedbackObject, "The feedback.", 201)],
      errors: [400, 401, 403, 404, 408, 413, 429, 500, 503],
      async handle(call) {
        const bytes = await call.readBody(MAX_BODY_BYTES);
        const given = readFeedback(parseSmallBody(bytes, call.request.headers.get("content-encoding")));
        const { search, recordings, clock, rated } = parts();
        // The words do not depend on whether another key has such a request.
        const record = search.findOf(call.context.caller?.keyId, given.requestId);
        if (record === undefined || !record.isRead) throw unknownRequest();
        const store = await recordings(true);
        if (store === undefined) throw new Error("feedback is kept in the primary");
        const atMs = clock.wallTime();
        const before = store.feedback.put(record, given, atMs);
        rated(record, given.score, before);
        const { score } = given;
        const told = { object: "feedback", request_id: record.id, score, created_at: new Date(atMs).toISOString() };
        return Response.json(told satisfies FeedbackObject, { status: 201, headers: call.headers });
      },
    },
  ];
}

function unknownRequest(): GatewayError {
  const message = "request_id: there is no such request of this key, or it is not kept any more.";
  return new GatewayError(ERRORS.recordingNotFound, message, { param: "request_id" });
}

function readFeedback({ request_id, score, comment, metadata, ...others }: JsonObject) {
  const [other] = Object.keys(others);
  if (other !== undefined) throw refusal(other.slice(0, 64), "is no member of feedback");
  if (typeof request_id !== "string" || request_id === "") throw refusal("request_id", "must be the id of a request");
  if (typeof score !== "number" || !(score >= 0 && score <= 1)) throw refusal("score", "must be a number from 0 to 1");
  const isText =
    comment === undefined || comment === null || (typeof comment === "string" && comment.length <= MOST_COMMENT);
  if (!isText) throw refusal("comment", `must be a text of at most ${MOST_COMMENT} characters`);
  const isSmall =
    metadata === undefined ||
    metadata === null ||
    (isObject(metadata) && JSON.stringify(metadata).length <= MOST_METADATA);
  if (!isSmall) throw refusal("metadata", `must be an object of at most ${MOST_METADATA} characters`);
  return { requestId: request_id, score, comment: comment ?? null, metadata: metadata ?? null };
}

function refusal(param: string, fault: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param} ${fault}.`, { param });
}
