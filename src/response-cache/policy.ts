// What may be cached: which requests, and which of their answers. Each format says what that means for its
// bodies (protocols/kept-answers.ts).

import type { Settings } from "../config/sections/registry.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import { type KeptAnswers, temperatureIn } from "../protocols/kept-answers.ts";

/** Value of the header X-Cache; answers in formats that are never kept have none. */
export type CacheDecision = "HIT" | "MISS" | "BYPASS";

type AnswerLimits = Pick<Settings["response_cache"], "max_response_size" | "max_stream_buffer_size">;

const decoder = new TextDecoder();

/** Why the answer to a request may neither come from the cache nor go into it; undefined where it may. */
export function bypassReason(kept: KeptAnswers, body: JsonObject): string | undefined {
  const temperature = temperatureIn(kept, body);
  const isDeterministic = temperature === undefined || temperature === null || temperature === 0;
  if (!isDeterministic) return "not_deterministic";
  if (kept.hasSideEffect(body)) return "side_effect";
  return kept.dependsOnMore?.(body) === true ? "depends_on_more" : undefined;
}

/** True if a plain answer of status 200 may be stored. */
export function isCacheablePlain(kept: KeptAnswers, body: Uint8Array, limits: AnswerLimits): boolean {
  if (body.length > limits.max_response_size) return false;
  const answer = parseObject(decoder.decode(body));
  return answer !== undefined && kept.isWhole(answer);
}

/** True if all bytes of a stream may be stored. */
export function isCacheableStream(kept: KeptAnswers, body: Uint8Array, limits: AnswerLimits): boolean {
  return body.length <= limits.max_stream_buffer_size && kept.isWholeStream(decoder.decode(body));
}
