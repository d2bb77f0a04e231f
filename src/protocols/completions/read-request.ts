// Validation of a legacy text completion request.

import type { JsonObject } from "../../lib/json.ts";
import {
  checkBoolean,
  checkNumbers,
  checkObject,
  checkStop,
  checkString,
  missingField,
  NO_MAXIMUM,
  requireModel,
  SAMPLING_NUMBERS,
  wrongType,
} from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

export function readCompletionRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  const { prompt } = body;
  if (prompt === undefined) throw missingField("prompt", "a string, an array of strings, or token ids.");
  if (prompt !== null && typeof prompt !== "string" && !Array.isArray(prompt)) {
    throw wrongType("prompt", "a string or an array", prompt);
  }
  checkNumbers(body, SAMPLING_NUMBERS);
  checkNumbers(body, [
    { field: "max_tokens", minimum: 0, maximum: NO_MAXIMUM, integer: true },
    { field: "best_of", minimum: 1, maximum: NO_MAXIMUM, integer: true },
  ]);
  const stream = checkBoolean(body, "stream");
  checkObject(body, "stream_options");
  checkStop(body);
  checkObject(body, "logit_bias");
  checkString(body, "user");
  return {
    model,
    stream,
    choices: countPrompts(prompt) * (typeof body.n === "number" ? body.n : 1),
    affinity: affinityOf,
  };
}

/** A list of numbers is one prompt in tokens; any other list has a prompt per entry. */
function countPrompts(prompt: unknown): number {
  return Array.isArray(prompt) && typeof prompt[0] !== "number" ? Math.max(prompt.length, 1) : 1;
}
