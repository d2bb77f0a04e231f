// Bedrock's CountTokens for a model that is asked by InvokeModel: the body that would be sent stands in the question.

import type { JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import { objectOf, wholeNumberOf } from "../reading.ts";

/** @param body - of a request for a count, which has no limit of output tokens, though an invocation needs one */
export function encodeCount(body: JsonObject): JsonObject {
  // A budget for thinking has to fit below the limit.
  const budget = wholeNumberOf(objectOf(body.thinking).budget_tokens) ?? 0;
  const invoked = JSON.stringify({ max_tokens: budget + 1, ...body });
  return { input: { invokeModel: { body: Buffer.from(invoked).toString("base64") } } };
}

/** In the words of the Messages API. */
export function decodeCount(answer: unknown): JsonObject {
  const count = wholeNumberOf(objectOf(answer).inputTokens);
  if (count === undefined) throw new DecodeError("has no count");
  return { input_tokens: count };
}
