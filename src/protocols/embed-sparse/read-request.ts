// Sparse embeddings in the form of text-embeddings-inference, with a model for routing.

import { isPresent, type JsonObject } from "../../lib/json.ts";
import { checkBoolean, checkString, invalidField, missingField, requireModel, wrongType } from "../fields.ts";
import { affinityOf, type RequestSummary } from "../request-summary.ts";

export interface SparseEmbeddingRequest extends RequestSummary {
  /** As written: a text gives one vector, a list one for each of its texts. */
  inputs: string | readonly string[];
  body: JsonObject;
}

/** Reads `inputs`, or `input` as the other embedding endpoint calls it. */
export function readSparseEmbeddingRequest(body: JsonObject): SparseEmbeddingRequest {
  const model = requireModel(body);
  const field = isPresent(body.inputs) ? "inputs" : "input";
  const inputs = body[field];
  if (!isPresent(inputs)) throw missingField("inputs", "a string or an array of strings.");
  checkInputs(inputs, field);
  checkBoolean(body, "truncate");
  checkString(body, "truncation_direction");
  checkString(body, "prompt_name");
  return { model, stream: false, choices: 0, affinity: affinityOf, inputs, body };
}

function checkInputs(inputs: unknown, field: string): asserts inputs is string | string[] {
  if (typeof inputs !== "string" && !Array.isArray(inputs)) {
    throw wrongType(field, "a string or an array of strings", inputs);
  }
  if (inputs.length === 0) throw invalidField(field, "must not be empty.");
  if (typeof inputs === "string") return;
  for (const [index, input] of inputs.entries()) {
    if (typeof input !== "string") throw wrongType(`${field}[${index}]`, "a string", input);
    if (input === "") throw invalidField(`${field}[${index}]`, "must not be empty.");
  }
}

/** The client's body under the names that backends know; other members pass. */
export function encodeSparseEmbedding(request: SparseEmbeddingRequest, model: string): JsonObject {
  const { input: _renamed, ...others } = request.body;
  return { ...others, model, inputs: request.inputs };
}
