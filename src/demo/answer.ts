// What the demo's generating endpoints have in common: identity, usage, and plain or streamed delivery.

import type { Clock } from "../lib/clock.ts";
import { pacedEventStream } from "./paced-stream.ts";

export interface DemoContext {
  clock: Clock;
  random: () => number;
  wordDelayMs: number;
}

export function newId(prefix: string, random: () => number): string {
  const digits = Array.from({ length: 24 }, () => Math.floor(random() * 16).toString(16));
  return prefix + digits.join("");
}

export function createdNow(context: DemoContext): number {
  return Math.floor(context.clock.wallTime() / 1_000);
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

export function toUsage(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

/** Choices are written side by side: step k holds token k of every choice that has one. */
export function* tokenSteps(
  choices: readonly { tokens: readonly string[] }[],
  toEvent: (index: number, token: string) => string,
): Generator<string, void> {
  const longest = Math.max(...choices.map((choice) => choice.tokens.length));
  for (let position = 0; position < longest; position++) {
    const events = choices.map((choice, index) => {
      const token = choice.tokens[position];
      return token === undefined ? "" : toEvent(index, token);
    });
    yield events.join("");
  }
}

export function streamResponse(steps: Iterator<string>, signal: AbortSignal, context: DemoContext): Response {
  return new Response(pacedEventStream(steps, { delayMs: context.wordDelayMs, signal }), {
    headers: { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" },
  });
}
