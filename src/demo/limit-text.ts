// Cuts a finished text where max_tokens or a stop sequence would have ended a model that writes word by word.

import { splitTokens } from "./tokens.ts";

export interface Limits {
  maxTokens?: number | null | undefined;
  stop?: string | string[] | null | undefined;
}

interface LimitedText {
  tokens: string[];
  finishReason: "stop" | "length";
}

/** The text ends before the first stop sequence; a sequence that the token limit cuts through was never written. */
export function limitText(text: string, { maxTokens, stop }: Limits): LimitedText {
  const allTokens = splitTokens(text);
  const tokens = allTokens.slice(0, maxTokens ?? allTokens.length);
  const written = tokens.join("");
  const stopAt = firstOccurrence(written, [stop ?? []].flat());
  if (stopAt !== undefined) return { tokens: splitTokens(written.slice(0, stopAt)), finishReason: "stop" };
  return { tokens, finishReason: tokens.length < allTokens.length ? "length" : "stop" };
}

/** Ignores empty sequences. */
function firstOccurrence(text: string, sequences: readonly string[]): number | undefined {
  const places = sequences.filter((sequence) => sequence !== "").map((sequence) => text.indexOf(sequence));
  const found = places.filter((place) => place >= 0);
  return found.length > 0 ? Math.min(...found) : undefined;
}
