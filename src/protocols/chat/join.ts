// Chat streams of two backends as one: one id, one role.

import { parseObject } from "../../lib/json.ts";
import { eventData } from "../sse.ts";
import { type JoinMode, RepetitionFilter, type SplitStream, type StreamJoin, splitAt } from "../stream-join.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What the client has seen of an answer that broke off. */
export interface Transcript {
  id: unknown;
  created: unknown;
  model: unknown;
  text: string;
  hasRole: boolean;
  hasReasoning: boolean;
}

interface Chunk {
  id?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  error?: unknown;
}

interface Choice {
  index?: unknown;
  delta?: Delta | null;
  finish_reason?: unknown;
}

interface Delta {
  role?: unknown;
  content?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  refusal?: unknown;
  audio?: unknown;
}

/**
 * Reads whole events of one choice. Undefined when nothing can be joined to them: a tool call was begun (its arguments
 * could not be continued into valid JSON), a refusal or audio was sent, several choices run, or the answer was finished.
 */
export function readTranscript(events: readonly Uint8Array[]): Transcript | undefined {
  const transcript: Transcript = {
    id: undefined,
    created: undefined,
    model: undefined,
    text: "",
    hasRole: false,
    hasReasoning: false,
  };
  for (const data of eventData(events.map((piece) => decoder.decode(piece)).join(""))) {
    const chunk = parseChunk(data);
    if (chunk === undefined) continue;
    // Some backends send a first chunk without an id (Azure, with its content filter results).
    if (isSet(chunk.id)) transcript.id ??= chunk.id;
    if (isSet(chunk.created)) transcript.created ??= chunk.created;
    if (isSet(chunk.model)) transcript.model ??= chunk.model;
    for (const { index, delta, finish_reason } of choicesOf(chunk)) {
      if (index !== undefined && index !== 0) return undefined;
      if (isSet(finish_reason)) return undefined;
      if (delta === undefined || delta === null) continue;
      if (isSet(delta.role)) transcript.hasRole = true;
      if (isSet(delta.tool_calls) || isSet(delta.function_call) || isSet(delta.refusal) || isSet(delta.audio)) {
        return undefined;
      }
      if (typeof delta.content === "string") transcript.text += delta.content;
      if (isSet(delta.reasoning_content) || isSet(delta.reasoning)) transcript.hasReasoning = true;
    }
  }
  return transcript;
}

export class Splicer {
  readonly #transcript: Transcript;
  readonly #repetition: RepetitionFilter;

  constructor(transcript: Transcript, mode: JoinMode) {
    this.#transcript = transcript;
    this.#repetition = new RepetitionFilter(mode === "restarted" ? transcript.text : "");
  }

  /** Whole events of the second stream -> whole events for the client; undefined when nothing is left of them. */
  push(events: Uint8Array): Uint8Array | undefined {
    let output = "";
    for (const data of eventData(decoder.decode(events))) output += this.#splice(data);
    return output === "" ? undefined : encoder.encode(output);
  }

  #splice(data: string): string {
    const chunk = parseChunk(data);
    if (chunk === undefined || isSet(chunk.error)) return `data: ${data}\n\n`; // [DONE], or the last words
    const { id, created, model } = this.#transcript;
    if (id !== undefined) chunk.id = id;
    if (created !== undefined) chunk.created = created;
    if (model !== undefined) chunk.model = model;
    const choices = choicesOf(chunk);
    let isEmpty = choices.length > 0;
    for (const choice of choices) {
      const delta = choice.delta ?? {};
      if (this.#transcript.hasRole) delete delta.role;
      // Reasoning that was shown already is not shown a second time.
      if (this.#transcript.hasReasoning || this.#transcript.text !== "") {
        delete delta.reasoning_content;
        delete delta.reasoning;
      }
      if (typeof delta.content === "string") {
        const rest = this.#repetition.push(delta.content);
        if (rest === "") delete delta.content;
        else delta.content = rest;
      }
      if (isSet(choice.finish_reason) || isSet(delta.tool_calls) || isSet(delta.function_call)) this.#repetition.end();
      if (isSet(choice.finish_reason) || Object.values(delta).some(isSet)) isEmpty = false;
    }
    return isEmpty ? "" : `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

/** An answer that merely speaks of errors is told apart by the place of the word. */
export function splitAtError(events: Uint8Array): SplitStream | undefined {
  if (!Buffer.from(events.buffer, events.byteOffset, events.byteLength).includes('"error"')) return undefined;
  return splitAt(events, ({ data }) => parseChunk(data)?.error);
}

export const chatJoin: StreamJoin = {
  readSent(events) {
    const transcript = readTranscript(events);
    return (
      transcript && {
        text: transcript.text,
        joiner(mode) {
          const splicer = new Splicer(transcript, mode);
          return (more) => splicer.push(more);
        },
      }
    );
  },
  splitAtError,
  askForRest: ({ messages }, text, prompt) => ({
    messages: [...(messages as unknown[]), { role: "assistant", content: text }, { role: "user", content: prompt }],
  }),
};

function parseChunk(data: string): Chunk | undefined {
  return parseObject(data) as Chunk | undefined;
}

function choicesOf({ choices }: Chunk): Choice[] {
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === "object" && choice !== null) : [];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}
