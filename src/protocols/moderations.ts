// Requests for moderations: which are refused, and what routing needs to know of the others (OpenAI's Moderations API).

import { isPresent, type JsonObject } from "../lib/json.ts";
import { invalidField, missingField, requireModel, wrongType } from "./fields.ts";
import { affinityOf, type RequestSummary } from "./request-summary.ts";

/** What OpenAI's API takes where a request names no model. */
const DEFAULT_MODEL = "omni-moderation-latest";

export function readModerationRequest(body: JsonObject): RequestSummary {
  const { input } = body;
  if (!isPresent(input)) throw missingField("input", "a string, an array of strings, or an array of content parts.");
  if (typeof input !== "string" && !Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  if (input.length === 0) throw invalidField("input", "must not be empty.");
  const model = isPresent(body.model) ? requireModel(body) : DEFAULT_MODEL;
  return { model, stream: false, choices: 0, affinity: affinityOf };
}
