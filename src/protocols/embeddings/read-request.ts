// Validation of an embeddings request.

import { isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkNumbers,
  checkString,
  invalidField,
  missingField,
  NO_MAXIMUM,
  requireModel,
  wrongType,
} from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

export function readEmbeddingRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  const { input, encoding_format } = body;
  if (!isPresent(input)) throw missingField("input", "a string, an array of strings, or token ids.");
  if (typeof input !== "string" && !Array.isArray(input)) throw wrongType("input", "a string or an array", input);
  if (input.length === 0) throw invalidField("input", "must not be empty.");
  checkNumbers(body, [{ field: "dimensions", minimum: 1, maximum: NO_MAXIMUM, integer: true }]);
  if (isPresent(encoding_format) && encoding_format !== "float" && encoding_format !== "base64") {
    throw invalidField("encoding_format", 'expected "float" or "base64".');
  }
  checkString(body, "user");
  return { model, stream: false, choices: 0, affinity: affinityOf };
}
