// Chat streams of two backends as one: one id, one role.

import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { eventData } from "../sse.ts";
import {
  countAsAnswer,
  type JoinMode,
  limitsLeft,
  type OpeningFilter,
  openingFilter,
  prefillOf,
  refuseThought,
  type StreamJoin,
  splitAtErrorMember,
  withTextBehind,
} from "../stream-join.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What the client has seen of an answer that broke off. */
export interface Transcript {
  id: unknown;
  created: unknown;
  model: unknown;
  text: string;
  reasoning: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  hasRole: boolean;
}

interface Chunk {
  id?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  usage?: unknown;
  error?: unknown;
}

interface Choice {
  index?: unknown;
  delta?: Delta | null;
  logprobs?: unknown;
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
    reasoning: "",
    pieces: 0,
    hasRole: false,
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
      const thought = thoughtOf(delta);
      transcript.reasoning += thought;
      if (typeof delta.content === "string") transcript.text += delta.content;
      if (isSet(delta.content) || thought !== "") transcript.pieces++;
    }
  }
  return transcript;
}

export class Splicer {
  readonly #transcript: Transcript;
  /** Whether the second backend was told the text as the beginning of its own. */
  readonly #isBehindText: boolean;
  readonly #opening: OpeningFilter;

  constructor(transcript: Transcript, mode: JoinMode) {
    this.#transcript = transcript;
    this.#isBehindText = mode === "exact" && prefillOf(transcript.text) !== "";
    this.#opening = openingFilter(transcript.text, mode);
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
    const { id, created, model, text, reasoning, hasRole } = this.#transcript;
    if (id !== undefined) chunk.id = id;
    if (created !== undefined) chunk.created = created;
    if (model !== undefined) chunk.model = model;
    if (this.#isBehindText && isObject(chunk.usage)) {
      chunk.usage = countAsAnswer(chunk.usage, ["prompt_tokens", "completion_tokens"], this.#transcript.pieces);
    }
    const choices = choicesOf(chunk);
    let isEmpty = choices.length > 0;
    for (const choice of choices) {
      const delta = choice.delta ?? {};
      if (hasRole) delete delta.role;
      if (this.#isBehindText) refuseThought(thoughtOf(delta));
      // Reasoning that was shown already is not shown a second time.
      if (reasoning !== "" || text !== "") {
        delete delta.reasoning_content;
        delete delta.reasoning;
      }
      if (typeof delta.content === "string") {
        const rest = this.#opening.push(delta.content);
        if (rest !== delta.content) delete choice.logprobs; // they speak of the whole of it
        if (rest === "") delete delta.content;
        else delta.content = rest;
      }
      if (isSet(choice.finish_reason) || isSet(delta.tool_calls) || isSet(delta.function_call)) this.#opening.end();
      if (isSet(choice.finish_reason) || Object.values(delta).some(isSet)) isEmpty = false;
    }
    return isEmpty ? "" : `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

export const chatJoin: StreamJoin = {
  readSent(events) {
    const transcript = readTranscript(events);
    return (
      transcript && {
        text: transcript.text,
        askToGoOn: (request) => askToGoOn(request, transcript),
        joiner(mode) {
          const splicer = new Splicer(transcript, mode);
          return (more) => splicer.push(more);
        },
      }
    );
  },
  splitAtError: splitAtErrorMember,
  askForRest: ({ messages }, text, prompt) => ({
    messages: [...(messages as unknown[]), { role: "assistant", content: text }, { role: "user", content: prompt }],
  }),
};

function askToGoOn(request: JsonObject, { text, reasoning, pieces }: Transcript): JsonObject | undefined {
  const messages = Array.isArray(request.messages) ? (request.messages as unknown[]) : [];
  const prefill = prefillOf(text);
  const limits = limitsLeft(request, ["max_tokens", "max_completion_tokens"], pieces);
  const last = messages.at(-1);
  if (!isObject(last) || last.role !== "assistant") {
    const turn = { role: "assistant", content: prefill, ...(reasoning !== "" && { reasoning_content: reasoning }) };
    return { messages: [...messages, turn], ...limits };
  }
  // The client had begun the turn itself.
  const content = reasoning === "" && !isSet(last.tool_calls) ? withTextBehind(last.content, prefill) : undefined;
  return content === undefined ? undefined : { messages: [...messages.slice(0, -1), { ...last, content }], ...limits };
}

/** The same thought may stand in both members. */
function thoughtOf({ reasoning_content, reasoning }: Delta): string {
  if (typeof reasoning_content === "string" && reasoning_content !== "") return reasoning_content;
  return typeof reasoning === "string" ? reasoning : "";
}

function parseChunk(data: string): Chunk | undefined {
  return parseObject(data) as Chunk | undefined;
}

function choicesOf({ choices }: Chunk): Choice[] {
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === "object" && choice !== null) : [];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}
