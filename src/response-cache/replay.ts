// A cached answer given again: its exact bytes, or, when only the other form was kept, that form made of it.

import type { KeptAnswers } from "../protocols/kept-answers.ts";
import type { CachedAnswer } from "./cache.ts";

export interface Replay {
  contentType: string;
  body: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Undefined when an answer in the other form has parts that cannot be carried over; the request then is a miss.
 * @param includeUsage - stream_options.include_usage
 */
export function replayAnswer(
  kept: KeptAnswers,
  answer: CachedAnswer,
  stream: boolean,
  includeUsage: boolean,
): Replay | undefined {
  if ((answer.form === "stream") === stream) return { contentType: answer.contentType, body: answer.body };
  const text = decoder.decode(answer.body);
  const told = stream ? kept.asStream(text, includeUsage) : kept.asWhole(text);
  if (told === undefined) return undefined;
  const contentType = stream ? "text/event-stream; charset=utf-8" : "application/json";
  return { contentType, body: encoder.encode(told) };
}
