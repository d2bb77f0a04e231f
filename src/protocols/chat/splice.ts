// Joins the stream of a second backend to what a first one has sent, so that the client sees one answer: one id, one
// role, no text twice and none lost.

import { isObject } from "../../lib/json.ts";
import { eventData } from "../sse.ts";

const decoder = new TextDecoder();
const latin1 = new TextDecoder("latin1");
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

/** How the second stream begins: behind the text that was sent, or at the start of the answer. */
export type SpliceMode = "continued" | "restarted";

/** What stands between the text that was sent and a new answer that begins differently. */
const RESTART_SEPARATOR = "\n\n";

export class Splicer {
  readonly #transcript: Transcript;
  /** Text that a restarted answer repeats and that is swallowed while it does. */
  #expected: string;
  #swallowed = "";

  constructor(transcript: Transcript, mode: SpliceMode) {
    this.#transcript = transcript;
    this.#expected = mode === "restarted" ? transcript.text : "";
  }

  /** Whole events of the second stream -> whole events for the client; undefined when nothing is left of them. */
  push(events: Uint8Array): Uint8Array | undefined {
    let output = "";
    for (const data of eventData(decoder.decode(events))) output += this.#splice(data);
    return output === "" ? undefined : encoder.encode(output);
  }

  #splice(data: string): string {
    const chunk = parseChunk(data);
    if (chunk === undefined) return `data: ${data}\n\n`; // [DONE]
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
        const rest = this.#withoutRepetition(delta.content);
        if (rest === "") delete delta.content;
        else delta.content = rest;
      }
      // The new answer ends, or turns to tools, within what was sent: what it has said so far is not new.
      if (isSet(choice.finish_reason) || isSet(delta.tool_calls) || isSet(delta.function_call)) this.#end();
      if (isSet(choice.finish_reason) || Object.values(delta).some(isSet)) isEmpty = false;
    }
    return isEmpty ? "" : `data: ${JSON.stringify(chunk)}\n\n`;
  }

  /** Swallows text while it repeats what was sent; from the first difference on the new answer is shown whole. */
  #withoutRepetition(content: string): string {
    if (this.#expected === "") return content;
    const seen = this.#swallowed + content;
    if (this.#expected.startsWith(seen)) {
      this.#swallowed = seen;
      if (seen.length === this.#expected.length) this.#end();
      return "";
    }
    const expected = this.#expected;
    this.#end();
    return seen.startsWith(expected) ? seen.slice(expected.length) : RESTART_SEPARATOR + seen;
  }

  #end(): void {
    this.#expected = "";
    this.#swallowed = "";
  }
}

/**
 * Splits whole events at the first one that is a backend's error; undefined when none is. An answer that merely speaks
 * of errors is told apart by the place of the word.
 */
export function splitAtError(
  events: Uint8Array,
): { before: Uint8Array | undefined; error: unknown; data: string } | undefined {
  if (!Buffer.from(events.buffer, events.byteOffset, events.byteLength).includes('"error"')) return undefined;
  let offset = 0;
  // As Latin-1 every byte is one character, so that offsets are right whatever the bytes are.
  for (const block of latin1.decode(events).split(/(?<=\r\n\r\n|\n\n|\r\r)/)) {
    const [data] = eventData(decoder.decode(events.subarray(offset, offset + block.length)));
    const error = data === undefined ? undefined : parseChunk(data)?.error;
    if (data !== undefined && isSet(error)) {
      return { before: offset === 0 ? undefined : events.subarray(0, offset), error, data };
    }
    offset += block.length;
  }
  return undefined;
}

function parseChunk(data: string): Chunk | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? (value as Chunk) : undefined;
  } catch {
    return undefined;
  }
}

function choicesOf({ choices }: Chunk): Choice[] {
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === "object" && choice !== null) : [];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}
