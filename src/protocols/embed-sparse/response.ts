// Checks an answer of sparse vectors, which then passes unchanged: one list of {index, value} for each input.

import { isObject, isPresent } from "../../lib/json.ts";
import { answerFailed, DecodeError } from "../protocol.ts";
import type { SparseEmbeddingRequest } from "./read-request.ts";

/** The answer itself. Throws DecodeError for what is no such answer, AnswerFailed for an error under status 200. */
export function decodeSparseEmbedding(answer: unknown, request: SparseEmbeddingRequest): unknown[] {
  if (isObject(answer) && isPresent(answer.error)) throw answerFailed(answer.error);
  if (!Array.isArray(answer)) throw new DecodeError("a sparse embedding answer is no array");
  const expected = typeof request.inputs === "string" ? 1 : request.inputs.length;
  if (answer.length !== expected) throw new DecodeError("a sparse embedding answer has not one vector for each input");
  for (const vector of answer) {
    if (!Array.isArray(vector) || !vector.every(isEntry))
      throw new DecodeError("a sparse vector is no list of index and value");
  }
  return answer;
}

function isEntry(entry: unknown): boolean {
  return isObject(entry) && Number.isInteger(entry.index) && typeof entry.value === "number";
}
