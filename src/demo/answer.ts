// The answers of the demo's generating endpoints, whole or streamed: their identity, their usage, their choices.

import type { Clock } from "../lib/clock.ts";
import { pacedEventStream } from "./paced-stream.ts";

export interface DemoContext {
  clock: Clock;
  random: () => number;
  wordDelayMs: number;
}

export interface DemoChoice {
  /** The written tokens; a stream has a piece for each. */
  tokens: readonly string[];
  /** How many of them repeat the prompt, and are no usage. */
  echoed?: number;
  finishReason: "stop" | "length" | "tool_calls";
}

/** The parts of an answer in which the endpoints differ. */
export interface DemoForm<Own extends DemoChoice> {
  idPrefix: string;
  object: string;
  chunkObject: string;
  /** A choice as it stands in an answer or in a chunk: `content` is one of those below. */
  choice(index: number, content: object, finishReason: string | null): object;
  whole(choice: Own, text: string): object;
  /** Chunks of a stream before its first token. */
  opening(choice: Own): object[];
  piece(choice: Own, text: string): object;
  end: object;
}

interface DemoQuestion {
  model: string;
  stream?: boolean | null | undefined;
  stream_options?: { include_usage?: boolean | null | undefined } | null | undefined;
}

export function respond<Own extends DemoChoice>(
  form: DemoForm<Own>,
  { model, stream, stream_options }: DemoQuestion,
  answer: { promptTokens: number; choices: readonly Own[] },
  { signal }: Request,
  { clock, random, wordDelayMs }: DemoContext,
): Response {
  const { promptTokens, choices } = answer;
  const completionTokens = choices.reduce((sum, { tokens, echoed = 0 }) => sum + tokens.length - echoed, 0);
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
  const envelope = {
    id: newId(form.idPrefix, random),
    object: stream ? form.chunkObject : form.object,
    created: Math.floor(clock.wallTime() / 1_000),
    model,
  };
  if (stream) {
    const steps = chunkSteps(form, envelope, choices, stream_options?.include_usage ? usage : undefined);
    return new Response(pacedEventStream(steps, { delayMs: wordDelayMs, signal }), {
      headers: { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" },
    });
  }
  const whole = choices.map((choice, index) =>
    form.choice(index, form.whole(choice, choice.tokens.join("")), choice.finishReason),
  );
  return Response.json({ ...envelope, choices: whole, usage });
}

export function newId(prefix: string, random: () => number): string {
  const digits = Array.from({ length: 24 }, () => Math.floor(random() * 16).toString(16));
  return prefix + digits.join("");
}

/**
 * The opening of each choice, then its tokens, then the finish reasons, then usage if asked, then the end mark. Choices are
 * written side by side: step k holds token k of every choice that has one.
 */
function* chunkSteps<Own extends DemoChoice>(
  form: DemoForm<Own>,
  envelope: object,
  choices: readonly Own[],
  usage: object | undefined,
): Generator<string, void> {
  const event = (chunks: object[], ending: object | undefined) =>
    `data: ${JSON.stringify({ ...envelope, choices: chunks, ...ending })}\n\n`;
  const chunk = (index: number, content: object, finishReason: string | null = null) =>
    event([form.choice(index, content, finishReason)], usage && { usage: null });
  const side = (toChunks: (choice: Own, index: number) => string) => choices.map(toChunks).join("");

  const opening = side((choice, index) =>
    form
      .opening(choice)
      .map((content) => chunk(index, content))
      .join(""),
  );
  if (opening !== "") yield opening;
  const longest = Math.max(...choices.map(({ tokens }) => tokens.length));
  for (let position = 0; position < longest; position++) {
    yield side((choice, index) => {
      const text = choice.tokens[position];
      return text === undefined ? "" : chunk(index, form.piece(choice, text));
    });
  }
  const finish = side(({ finishReason }, index) => chunk(index, form.end, finishReason));
  yield `${finish}${usage ? event([], { usage }) : ""}data: [DONE]\n\n`;
}
