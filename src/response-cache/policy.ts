// What may be cached: which requests, and which of their answers (specification, Limits, "Response cache").

import type { Operation } from "../backends/kinds.ts";
import type { Settings } from "../config/sections/registry.ts";
import { isObject, isPresent, type JsonObject, parseObject } from "../lib/json.ts";
import { eventData } from "../protocols/sse.ts";

/** Value of the header X-Cache. */
export type CacheDecision = "HIT" | "MISS" | "BYPASS";

/**
 * The specification speaks of chat answers, of temperature and of finish reasons; the other operations pass by the
 * cache and carry no X-Cache.
 */
export const CACHED_OPERATIONS: ReadonlySet<Operation> = new Set<Operation>(["chat"]);

type AnswerLimits = Pick<Settings["response_cache"], "max_response_size" | "max_stream_buffer_size">;

const decoder = new TextDecoder();

/** Whether the answer to a request may come from the cache and go into it. */
export function isCacheableRequest(operation: Operation, body: JsonObject): boolean {
  const { temperature } = body;
  const isDeterministic = temperature === undefined || temperature === null || temperature === 0;
  return CACHED_OPERATIONS.has(operation) && isDeterministic && !hasSideEffect(body);
}

/** The backend is to keep the answer for the client to fetch later: every such request must reach it. */
export function hasSideEffect(body: JsonObject): boolean {
  return body.store === true;
}

/** Whether a plain answer of status 200 may be stored: it has choices, and each of them was finished without error. */
export function isCacheablePlain(body: Uint8Array, limits: AnswerLimits): boolean {
  if (body.length > limits.max_response_size) return false;
  const answer = parseObject(decoder.decode(body));
  if (answer === undefined || isPresent(answer.error)) return false;
  const { choices } = answer;
  return Array.isArray(choices) && choices.length > 0 && choices.every(isFinishedWell);
}

/** Whether all bytes of a stream may be stored: nothing in it tells of an error, and its last event is [DONE]. */
export function isCacheableStream(body: Uint8Array, limits: AnswerLimits): boolean {
  if (body.length > limits.max_stream_buffer_size) return false;
  const text = decoder.decode(body);
  if (!/(?:^|[\r\n])data: ?\[DONE\]\s*$/.test(text.slice(-64))) return false;
  // Only events that hold the word can tell of an error, so most streams are not parsed at all.
  if (!text.includes('"error"')) return true;
  return eventData(text).every((data) => !data.includes('"error"') || !tellsOfError(data));
}

function tellsOfError(data: string): boolean {
  const event = parseObject(data);
  if (event === undefined || isPresent(event.error)) return true;
  return Array.isArray(event.choices) && event.choices.some((choice) => choice?.finish_reason === "error");
}

function isFinishedWell(choice: unknown): boolean {
  const reason = isObject(choice) ? choice.finish_reason : undefined;
  return typeof reason === "string" && reason !== "error";
}
