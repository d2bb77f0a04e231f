// The answers of rerank services, in any of their forms -> the gateway's own.

import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { answerFailed, DecodeError } from "../protocol.ts";
import { countOf, nonEmptyText, objectOf } from "../reading.ts";
import type { RerankRequest } from "./read-request.ts";

interface RerankContext {
  /** 32 random hex digits, for services that give no id. */
  nonce: string;
  /** Tokens that a response header tells of, where the body has no usage (TEI: x-compute-tokens). */
  tokens?: number;
}

interface Ranked {
  index: number;
  score: number;
}

/**
 * Throws DecodeError for what is no such answer, AnswerFailed for an error under status 200. Scores are what the model
 * gave, raw logits included.
 */
export function decodeRerank(answer: unknown, request: RerankRequest, context: RerankContext): JsonObject {
  const envelope = objectOf(answer);
  const ranked = readResults(resultsOf(answer), request.documents.length);
  // Equal scores keep the order in which the service ranked them.
  ranked.sort((first, second) => second.score - first.score);
  const results = ranked.slice(0, request.topN).map(({ index, score }) => {
    const result = { index, relevance_score: score };
    return request.returnDocuments ? { ...result, document: shown(request, index) } : result;
  });
  const usage = usageOf(envelope, context.tokens);
  return {
    id: nonEmptyText(envelope.id) ?? `rerank-${context.nonce}`,
    object: "list",
    model: request.model,
    results,
    ...compact({ usage, meta: isObject(envelope.meta) ? envelope.meta : undefined }),
  };
}

/** results (Jina, Cohere, vLLM, llama.cpp), data (Voyage), or a bare array (TEI). */
function resultsOf(answer: unknown): unknown[] {
  if (Array.isArray(answer)) return answer;
  if (!isObject(answer)) throw new DecodeError("a rerank answer is neither an object nor an array");
  const { error, results, data } = answer;
  if (Array.isArray(results)) return results;
  if (isPresent(error)) throw answerFailed(error);
  if (Array.isArray(data)) return data;
  throw new DecodeError("a rerank answer has no results");
}

function readResults(entries: readonly unknown[], documentCount: number): Ranked[] {
  const seen = new Set<number>();
  return entries.map((entry) => {
    if (!isObject(entry)) throw new DecodeError("a rerank result is no object");
    const { index, relevance_score, score } = entry;
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= documentCount) {
      throw new DecodeError("a rerank result names no document of the request");
    }
    if (seen.has(index)) throw new DecodeError("a rerank answer names a document twice");
    seen.add(index);
    const value = relevance_score ?? score;
    if (typeof value !== "number") throw new DecodeError("a rerank result has no score");
    return { index, score: value };
  });
}

function shown({ documents }: RerankRequest, index: number): unknown {
  const document = documents[index];
  return typeof document === "string" ? { text: document } : document;
}

function usageOf({ usage }: JsonObject, tokens: number | undefined): JsonObject | undefined {
  const counts = objectOf(usage);
  const total = countOf(counts.total_tokens) ?? countOf(counts.prompt_tokens) ?? tokens;
  if (total === undefined) return undefined;
  return { prompt_tokens: countOf(counts.prompt_tokens) ?? total, total_tokens: total };
}
