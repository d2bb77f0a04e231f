// Embeddings in Ollama's words: /api/embed, and the older /api/embeddings for one text.

import type { JsonObject } from "../../lib/json.ts";
import { numberOf, objectOf, objectsOf } from "../reading.ts";

/** Members that an engine of Ollama's knows alone. */
const OWN = ["keep_alive", "options", "truncate"] as const;

interface EmbedRequest {
  /** Members that change a body into one of the embeddings endpoint; undefined ones are removed. */
  members: JsonObject;
  /** What is left out of it. */
  lost: readonly string[];
}

export function encodeEmbedRequest(body: JsonObject): EmbedRequest {
  const { input = body.prompt, dimensions } = body;
  const others = Object.fromEntries(Object.keys(body).map((name) => [name, undefined]));
  return {
    members: { ...others, model: body.model, input, dimensions },
    lost: OWN.filter((name) => body[name] !== undefined && body[name] !== null),
  };
}

/** Whether there is nothing to embed, which loads a model. */
export function embedsNothing({ input, prompt }: JsonObject): boolean {
  const text = input ?? prompt;
  return text === "" || (Array.isArray(text) && text.length === 0);
}

/** @param answer - of the embeddings endpoint */
export function encodeEmbeddings(answer: JsonObject, model: string, elapsedMs: number): JsonObject {
  const count = numberOf(objectOf(answer.usage).prompt_tokens);
  return {
    model,
    embeddings: vectorsOf(answer),
    total_duration: Math.round(elapsedMs * 1e6),
    ...(count !== undefined && { prompt_eval_count: count }),
  };
}

export function encodeEmbedding(answer: JsonObject): JsonObject {
  return { embedding: vectorsOf(answer)[0] ?? [] };
}

function vectorsOf({ data }: JsonObject): unknown[] {
  const entries = objectsOf(data);
  return entries.toSorted((one, other) => Number(one.index) - Number(other.index)).map(({ embedding }) => embedding);
}
