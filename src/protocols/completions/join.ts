// Streams of text completions of two backends as one: one id, and the second goes on behind prompt and text.

import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { eventData } from "../sse.ts";
import {
  countAsAnswer,
  type JoinMode,
  limitsLeft,
  openingFilter,
  prefillOf,
  type SentAnswer,
  type StreamJoin,
  splitAtErrorMember,
} from "../stream-join.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What the client has seen of an answer that broke off. */
interface Progress {
  identity: JsonObject;
  text: string;
  pieces: number;
}

const IDENTITY = ["id", "created", "model"] as const;

export const completionsJoin: StreamJoin = {
  readSent,
  splitAtError: splitAtErrorMember,
  askForRest: () => undefined, // nobody can be asked in words
};

function readSent(events: readonly Uint8Array[]): SentAnswer | undefined {
  const progress: Progress = { identity: {}, text: "", pieces: 0 };
  for (const data of eventData(events.map((piece) => decoder.decode(piece)).join(""))) {
    const chunk = parseObject(data);
    if (chunk === undefined) continue;
    for (const name of IDENTITY) progress.identity[name] ??= chunk[name];
    for (const { index, text, finish_reason } of choicesOf(chunk)) {
      if ((index !== undefined && index !== 0) || isSet(finish_reason)) return undefined;
      if (typeof text !== "string" || text === "") continue;
      progress.text += text;
      progress.pieces++;
    }
  }
  return {
    text: progress.text,
    askToGoOn: (request) => askToGoOn(request, progress),
    joiner: (mode) => joiner(progress, mode),
  };
}

/** What is more than one text, or ends behind the answer, cannot be prolonged. */
function askToGoOn(request: JsonObject, { text, pieces }: Progress): JsonObject | undefined {
  const { prompt, suffix, echo } = request;
  if (typeof prompt !== "string" || isSet(suffix) || echo === true) return undefined;
  return { prompt: prompt + prefillOf(text), ...limitsLeft(request, ["max_tokens"], pieces) };
}

function joiner({ identity, text, pieces }: Progress, mode: JoinMode): (events: Uint8Array) => Uint8Array | undefined {
  const opening = openingFilter(text, mode);
  const isBehindText = mode === "exact" && prefillOf(text) !== "";

  function join(data: string): string {
    const chunk = parseObject(data);
    if (chunk === undefined || isSet(chunk.error)) return `data: ${data}\n\n`; // [DONE], or the last words
    for (const name of IDENTITY) if (identity[name] !== undefined) chunk[name] = identity[name];
    if (isBehindText && isObject(chunk.usage)) {
      chunk.usage = countAsAnswer(chunk.usage, ["prompt_tokens", "completion_tokens"], pieces);
    }
    const choices = choicesOf(chunk);
    for (const choice of choices) {
      if (typeof choice.text !== "string") continue;
      const rest = opening.push(choice.text);
      if (rest !== choice.text) choice.logprobs = null; // they speak of the whole of it
      choice.text = rest;
    }
    const isEmpty = choices.length > 0 && choices.every((choice) => choice.text === "" && !isSet(choice.finish_reason));
    return isEmpty ? "" : `data: ${JSON.stringify(chunk)}\n\n`;
  }

  return (events) => {
    const output = eventData(decoder.decode(events)).map(join).join("");
    return output === "" ? undefined : encoder.encode(output);
  };
}

function choicesOf({ choices }: JsonObject): JsonObject[] {
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
