// Validation of an embeddings request (wire/openai-chat.md, section 8).

import type { JsonObject } from "../../lib/json.ts";
import {
  checkNumbers,
  checkString,
  describe,
  invalidField,
  missingField,
  NO_MAXIMUM,
  requireModel,
} from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

export function readEmbeddingRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  const { input, encoding_format } = body;
  if (input === undefined || input === null)
    throw missingField("input", "a string, an array of strings, or token ids.");
  if (typeof input !== "string" && !Array.isArray(input)) {
    throw invalidField("input", `expected a string or an array, got ${describe(input)}.`);
  }
  if (input.length === 0) throw invalidField("input", "must not be empty.");
  checkNumbers(body, [{ field: "dimensions", minimum: 1, maximum: NO_MAXIMUM, integer: true }]);
  if (
    encoding_format !== undefined &&
    encoding_format !== null &&
    encoding_format !== "float" &&
    encoding_format !== "base64"
  ) {
    throw invalidField("encoding_format", 'expected "float" or "base64".');
  }
  checkString(body, "user");
  return { model, stream: false, choices: 0, affinity: affinityOf };
}
