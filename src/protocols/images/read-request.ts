// Validation of a request for images.

import { isPresent, type JsonObject } from "../../lib/json.ts";
import { checkBoolean, checkString, invalidField, missingField, requireModel, wrongType } from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";
import { checkImageValues, imagesAskedFor } from "./check-values.ts";
import { rulesOfImageModel } from "./model-rules.ts";

/** The model is the canonical name where it has one; what other models take is for their backends to say. */
export function readImageRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  requirePrompt(body);
  const stream = checkBoolean(body, "stream");
  checkString(body, "user");
  const rules = rulesOfImageModel(model);
  if (rules !== undefined) checkImageValues(rules, "images", body);
  return { model: rules?.name ?? model, stream, choices: imagesAskedFor(body), affinity: affinityOf };
}

export function requirePrompt({ prompt }: JsonObject): void {
  if (!isPresent(prompt)) throw missingField("prompt", "a text that says what to draw.");
  if (typeof prompt !== "string") throw wrongType("prompt", "a string", prompt);
  if (prompt.trim() === "") throw invalidField("prompt", "must not be empty.");
}
