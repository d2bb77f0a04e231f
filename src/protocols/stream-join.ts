// Going on with a stream that broke off, in the client's format: what it has seen, what to ask another backend for, and how
// that one's answer is written behind it: one answer with one id, no text twice and none lost. Each format has its own way;
// this is what they share. What of the second answer the client has already is found in seam.ts, for all of them.

import type { GenerationRequest } from "../generation/request.ts";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import type { AnswerContext, ClientProtocol, StreamEncoder } from "./protocol.ts";
import { type JoinMode, Seam, type SentText } from "./seam.ts";
import { readEvents, type SseEvent, singleEvents } from "./sse.ts";

/** What a client has seen of an answer that broke off. */
export interface SentAnswer extends SentText {
  /**
   * The members of the request in which what was sent stands as the beginning of the model's turn, with what is left of
   * the limit of tokens; undefined where the request has no place for it.
   */
  askToGoOn(request: JsonObject): JsonObject | undefined;
  /** Writes behind what was sent. Undefined where no answer was begun, so that the second one is the answer as it is. */
  encoder?: ((context: AnswerContext) => StreamEncoder) | undefined;
}

/**
 * The request behind the rest of an answer, where that comes in the client's own format: all of it is shown. It lasts as
 * long as the stream, and keeps nothing of what was parsed.
 */
export function requestInOwnFormat({ name }: ClientProtocol, body: { readonly value: JsonObject }): GenerationRequest {
  return {
    model: "",
    system: [],
    messages: [],
    tools: [],
    sampling: {},
    reasoning: { visible: true, sealed: true },
    stream: true,
    origin: {
      protocol: name,
      get body() {
        return body.value;
      },
    },
    extensions: {},
  };
}

/** A backend's own error event, and what comes before it. */
export interface SplitStream {
  before: Uint8Array | undefined;
  error: unknown;
  /** The event as it came. */
  data: string;
}

export interface StreamJoin {
  /**
   * Reads all events that were sent. Undefined when nothing can be joined to them: a tool call was begun (its arguments
   * could not be continued into valid JSON), a refusal or audio was sent, or the answer was finished.
   */
  readSent(events: readonly SseEvent[]): SentAnswer | undefined;
  /** Splits whole events at the first one in which a backend tells of an error; undefined when none does. */
  splitAtError(events: Uint8Array): SplitStream | undefined;
  /**
   * The members of the request in which the text stands as the model's own turn, and the prompt to go on behind it.
   * Undefined for a format that knows no turns.
   */
  askForRest(request: JsonObject, text: string, prompt: string): JsonObject | undefined;
}

const decoder = new TextDecoder();

export function sentEvents(pieces: readonly Uint8Array[]): SseEvent[] {
  return readEvents(pieces.map((piece) => decoder.decode(piece)).join(""));
}

/** The client's format for the rest of an answer; undefined where that is the whole of it. */
export function goingOn(
  client: ClientProtocol,
  sent: SentText & Pick<SentAnswer, "encoder">,
  mode: JoinMode,
): ClientProtocol | undefined {
  const { encoder } = sent;
  return encoder && { ...client, streamEncoder: (context) => new Seam(sent, mode, encoder(context)) };
}

/** Splits whole events at the first one that holds an error, as `errorIn` finds it; undefined when none does. */
export function splitAt(events: Uint8Array, errorIn: (event: SseEvent) => unknown): SplitStream | undefined {
  let offset = 0;
  for (const block of singleEvents(events)) {
    const [event] = readEvents(decoder.decode(block));
    const error = event === undefined ? undefined : errorIn(event);
    if (event !== undefined && error !== undefined && error !== null && error !== "") {
      return { before: offset === 0 ? undefined : events.subarray(0, offset), error, data: event.data };
    }
    offset += block.length;
  }
  return undefined;
}

/** The same for formats that tell of an error in a member of that name. */
export function splitAtErrorMember(events: Uint8Array): SplitStream | undefined {
  if (!Buffer.from(events.buffer, events.byteOffset, events.byteLength).includes('"error"')) return undefined;
  // An answer that merely speaks of errors is told apart by the place of the word.
  return splitAt(events, ({ data }) => parseObject(data)?.error);
}

/** Counts as the backend told them, but for those of the named members that it told, which are the gateway's. */
export function recounted(own: JsonObject, counts: JsonObject, names: readonly string[]): JsonObject {
  const told = names.filter((name) => typeof own[name] === "number");
  return { ...own, ...Object.fromEntries(told.map((name) => [name, counts[name]])) };
}

/** The members of a request of turns in which the text stands as the model's own, and the prompt to go on behind it. */
export function askInTurns({ messages }: JsonObject, text: string, prompt: string): JsonObject {
  const turns = [
    { role: "assistant", content: text },
    { role: "user", content: prompt },
  ];
  return { messages: [...(Array.isArray(messages) ? (messages as unknown[]) : []), ...turns] };
}

/**
 * The turns of a conversation with what was sent as the beginning of the last one; undefined where that cannot be
 * prolonged.
 * @param turn - the model's own, where the client has not begun it itself; else the text is put behind what is there
 */
export function turnsBehind(messages: unknown, turn: JsonObject, text: string, isText: (last: JsonObject) => boolean) {
  const turns = Array.isArray(messages) ? (messages as unknown[]) : [];
  const last = turns.at(-1);
  if (!isObject(last) || last.role !== "assistant") return [...turns, { role: "assistant", ...turn }];
  const content = isText(last) ? withTextBehind(last.content, text) : undefined;
  return content === undefined ? undefined : [...turns.slice(0, -1), { ...last, content }];
}

/** A message's content with more text behind it; undefined where it does not end with text. */
function withTextBehind(content: unknown, text: string): unknown {
  if (typeof content === "string") return content + text;
  const last: unknown = Array.isArray(content) ? content.at(-1) : undefined;
  if (!isObject(last) || typeof last.text !== "string") return undefined;
  return [...(content as unknown[]).slice(0, -1), { ...last, text: last.text + text }];
}

/**
 * The named limits of tokens, less what was spent; one is always left, for the end of the answer.
 * @param pieces - how many pieces of text and thought were sent: engines send one for each token, or for a few of them
 */
export function limitsLeft(request: JsonObject, names: readonly string[], pieces: number): JsonObject {
  const left: JsonObject = {};
  for (const name of names) {
    const limit = request[name];
    if (typeof limit === "number") left[name] = Math.max(1, limit - pieces);
  }
  return left;
}
