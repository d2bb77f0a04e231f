// Joins the stream of a second backend to what a first one has sent to a Messages client: one message, one open block
// at a time, indexes without gaps, no text twice and none lost.

import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { hasMarker, markersOf } from "../markers.ts";
import { readEvents, type SseEvent } from "../sse.ts";
import {
  countAsAnswer,
  type JoinMode,
  limitsLeft,
  type OpeningFilter,
  openingFilter,
  prefillOf,
  refuseThought,
  type SentAnswer,
  type SplitStream,
  type StreamJoin,
  splitAt,
  withTextBehind,
} from "../stream-join.ts";
import { wrapSeal } from "./foreign-seal.ts";
import { arrayOf, type Block, isBlock, optionalCount, textOf } from "./wire.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export const messagesJoin: StreamJoin = { readSent, splitAtError, askForRest };

/** The block that the client waits for the end of. */
interface OpenBlock {
  index: number;
  type: string;
  hasText: boolean;
  /** Whether its signature has come, or will come in the stream that it goes on in. */
  isSigned: boolean;
}

/** Where the client's message stands. */
interface Progress {
  text: string;
  thinking: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  hasStarted: boolean;
  open: OpenBlock | undefined;
  nextIndex: number;
}

function readSent(events: readonly Uint8Array[]): SentAnswer | undefined {
  const progress: Progress = {
    text: "",
    thinking: "",
    pieces: 0,
    hasStarted: false,
    open: undefined,
    nextIndex: 0,
  };
  for (const event of readEvents(events.map((piece) => decoder.decode(piece)).join(""))) {
    if (!follow(progress, event)) return undefined;
  }
  return {
    text: progress.text,
    askToGoOn: (request) => askToGoOn(request, progress),
    joiner(mode) {
      // Nothing of the message was sent, so the second stream is the answer as it is.
      if (!progress.hasStarted) return (piece) => piece;
      const joiner = new Joiner(progress, mode);
      return (piece) => joiner.push(piece);
    },
  };
}

/** False when nothing can be joined behind this event. */
function follow(progress: Progress, event: SseEvent): boolean {
  if (isError(event)) return false; // the client has been told
  const { open } = progress;
  const { type, value } = readEvent(event);
  switch (type) {
    case "message_start":
      if (progress.hasStarted || (isObject(value.message) && arrayOf(value.message.content).length > 0)) return false;
      progress.hasStarted = true;
      return true;
    case "content_block_start":
      return followStart(progress, value);
    case "content_block_delta":
      return open !== undefined && open.index === value.index && followDelta(progress, open, value.delta);
    case "content_block_stop":
      if (open === undefined || open.index !== value.index) return false;
      progress.open = undefined;
      return true;
    case "message_delta":
      return !isObject(value.delta) || !isSet(value.delta.stop_reason);
    case "message_stop":
      return false;
    default:
      return true; // ping, and whatever comes to be
  }
}

function followStart(progress: Progress, { index, content_block: block }: JsonObject): boolean {
  if (!progress.hasStarted || progress.open !== undefined) return false;
  if (typeof index !== "number" || !Number.isInteger(index) || index < progress.nextIndex) return false;
  if (!isBlock(block) || !(block.type === "text" || isThinking(block)) || hasCitations(block)) return false;
  const text = block.type === "text" ? textOf(block.text) : "";
  progress.text += text;
  progress.nextIndex = index + 1;
  progress.open = { index, type: block.type, hasText: text !== "", isSigned: block.type !== "thinking" };
  return true;
}

/** Citations hold for the text of their whole block, so that nothing can be written behind them in it. */
function followDelta(progress: Progress, open: OpenBlock, delta: unknown): boolean {
  if (!isObject(delta) || delta.type === "citations_delta") return false;
  const text = delta.type === "text_delta" ? textOf(delta.text) : "";
  const thought = delta.type === "thinking_delta" ? textOf(delta.thinking) : "";
  progress.text += text;
  progress.thinking += thought;
  if (text !== "" || thought !== "") progress.pieces++;
  if (text !== "") open.hasText = true;
  if (delta.type === "signature_delta") open.isSigned = true;
  return true;
}

/** The second backend's block of which events come. */
interface SecondBlock {
  index: number;
  type: string;
  /** Its start, for when it is shown. */
  start: JsonObject;
  hasText: boolean;
  /** Whether the client's open block is this one, or goes on with it. */
  isShown: boolean;
  /** What came for a text block that may yet turn out to hold nothing new: citations. */
  held: JsonObject[];
}

/** The counts of the second backend's `message_start` that its `message_delta` need not repeat. */
const INPUT_COUNTS = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

const TOKEN_COUNTS = ["input_tokens", "output_tokens"] as const;

class Joiner {
  readonly #filter: OpeningFilter;
  /** Length of the text that has come. */
  #received = 0;
  readonly #pieces: number;
  /** Whether the second backend was told the text as the beginning of its own. */
  readonly #isBehindText: boolean;
  /** Thinking is not shown behind text or other thinking. */
  readonly #hidesThinking: boolean;
  #open: OpenBlock | undefined;
  #nextIndex: number;
  #block: SecondBlock | undefined;
  /** Events of blocks that were begun before the present one has ended. */
  #waiting: JsonObject[] = [];
  #startUsage: JsonObject = {};

  constructor({ text, pieces, open, nextIndex }: Progress, mode: JoinMode) {
    this.#filter = openingFilter(text, mode);
    this.#pieces = pieces;
    this.#isBehindText = mode === "exact" && prefillOf(text) !== "";
    this.#hidesThinking = nextIndex > 0;
    this.#open = open;
    this.#nextIndex = nextIndex;
  }

  push(events: Uint8Array): Uint8Array | undefined {
    let output = "";
    for (const event of readEvents(decoder.decode(events))) output += this.#join(event);
    return output === "" ? undefined : encoder.encode(output);
  }

  #join(event: SseEvent): string {
    const { type, value } = readEvent(event);
    switch (type) {
      case "content_block_start":
      case "content_block_delta":
      case "content_block_stop":
        return this.#sort({ ...value, type });
      case "message_start":
        return this.#dropStart(value.message);
      case "message_delta":
        return this.#endBlocks() + eventText(type, this.#withInputCounts(value));
      case "message_stop":
        return this.#endBlocks() + unchanged(event, type);
      default:
        return unchanged(event, type);
    }
  }

  /** Of the start of the second message remain its counts, and blocks that stand in it. */
  #dropStart(message: unknown): string {
    if (!isObject(message)) return "";
    if (isObject(message.usage)) this.#startUsage = message.usage;
    let output = "";
    for (const content_block of arrayOf(message.content).filter(isBlock)) {
      // No stream uses this index.
      output += this.#sort({ type: "content_block_start", index: -1, content_block }) + this.#end();
    }
    return output;
  }

  /** So that the counts are all the second backend's own: a client keeps those of the first for what is left out. */
  #withInputCounts(event: JsonObject): JsonObject {
    if (!isObject(event.usage)) return event;
    const usage = { ...event.usage };
    for (const member of INPUT_COUNTS) {
      const count = optionalCount(this.#startUsage[member]);
      if (!isSet(usage[member]) && count !== undefined) usage[member] = count;
    }
    return { ...event, usage: this.#isBehindText ? countAsAnswer(usage, TOKEN_COUNTS, this.#pieces) : usage };
  }

  /** One block after the other: what overlaps waits. */
  #sort(event: JsonObject): string {
    const index = indexOf(event);
    const isStart = event.type === "content_block_start";
    const ended = isStart && this.#block?.index === index ? this.#end() : "";
    if (this.#block !== undefined && this.#block.index !== index) {
      this.#waiting.push(event);
      return ended;
    }
    if (isStart) return ended + this.#begin(index, event);
    return event.type === "content_block_stop" ? this.#end() : this.#extend(index, event);
  }

  #begin(index: number, start: JsonObject): string {
    const { content_block: block } = start;
    if (!isBlock(block)) return "";
    const { type } = block;
    const begun: SecondBlock = { index, type, start, hasText: false, isShown: false, held: [] };
    this.#block = begun;
    if (type === "text") return this.#beginText(begun, block);
    if (this.#hidesThinking && isThinking(block)) return "";
    this.#filter.end();
    return this.#show(begun);
  }

  /** What a text block begins with comes as deltas, so that it can be left out. */
  #beginText(begun: SecondBlock, block: Block): string {
    const empty: Block = { ...block, text: "" };
    if (hasCitations(block)) {
      empty.citations = [];
      begun.held = arrayOf(block.citations).map((citation) => deltaOf({ type: "citations_delta", citation }));
    }
    begun.start = { ...begun.start, content_block: empty };
    return this.#extendText(begun, deltaOf({ type: "text_delta" }), textOf(block.text));
  }

  #extend(index: number, event: JsonObject): string {
    const { delta } = event;
    if (!isObject(delta)) return "";
    let begun = "";
    if (delta.type === "text_delta" && (this.#block === undefined || isThinking(this.#block))) {
      // A stream that skips the beginning of its text, or turns to it inside of its thinking.
      const content_block = { type: "text", text: "" };
      begun = this.#end() + this.#begin(index, { type: "content_block_start", index, content_block });
    }
    const block = this.#block;
    if (block === undefined) return "";
    if (this.#isBehindText) refuseThought(textOf(delta.thinking));
    if (block.type === "text" && delta.type === "text_delta") {
      return begun + this.#extendText(block, event, textOf(delta.text));
    }
    if (block.isShown) return begun + this.#write(event);
    if (block.type === "text") block.held.push(event);
    return begun;
  }

  #extendText(block: SecondBlock, event: JsonObject, text: string): string {
    if (text === "") return "";
    block.hasText = true;
    this.#received += text.length;
    const rest = this.#filter.push(text);
    if (rest === "") return "";
    let output = "";
    if (!block.isShown) {
      output = this.#show(block);
      for (const held of block.held) output += this.#write(held);
    }
    const delta = isObject(event.delta) ? event.delta : {};
    return output + this.#write({ ...event, delta: { ...delta, text: rest } });
  }

  /** Text goes on in an open text block; everything else has a block of its own. */
  #show(block: SecondBlock): string {
    block.isShown = true;
    const { type, start } = block;
    if (type === "text" && this.#open?.type === "text") return "";
    const closed = this.#close();
    this.#open = { index: this.#nextIndex++, type, hasText: false, isSigned: true };
    return closed + this.#write(start);
  }

  /** An event of the client's open block. */
  #write(event: JsonObject): string {
    return eventText(textOf(event.type), { ...event, index: this.#open?.index });
  }

  /** The second backend's block is over, and those that waited for that have their turn. */
  #end(): string {
    const block = this.#block;
    if (block === undefined) return "";
    this.#block = undefined;
    const isClientsToo = block.isShown || this.#endsWhatWasSent(block);
    let output = isClientsToo ? this.#close() : "";
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const event of waiting) output += this.#sort(event);
    return output;
  }

  /** Whether a block that was swallowed is the one that the client has open, to its last letter. */
  #endsWhatWasSent({ hasText }: SecondBlock): boolean {
    return hasText && this.#received === this.#filter.length && this.#open?.hasText === true;
  }

  #endBlocks(): string {
    let output = "";
    while (this.#block !== undefined) output += this.#end();
    return output + this.#close();
  }

  #close(): string {
    if (this.#open === undefined) return "";
    const { index, isSigned } = this.#open;
    const stop = eventText("content_block_stop", { type: "content_block_stop", index });
    // Thinking that broke off has no proof: the mark keeps it from backends that would refuse it.
    const mark = isSigned ? "" : this.#write(deltaOf({ type: "signature_delta", signature: wrapSeal({}) }));
    this.#open = undefined;
    return mark + stop;
  }
}

/** Only an event that is one has these bytes outside of a string; most have none of them. */
const ERROR_MARKERS = markersOf('"error"', "event: error", "event:error");

function splitAtError(events: Uint8Array): SplitStream | undefined {
  if (!hasMarker(events, ERROR_MARKERS)) return undefined;
  return splitAt(events, (event) => {
    if (!isError(event)) return undefined;
    const { value } = readEvent(event);
    return value.error ?? value;
  });
}

/** Proxies send errors without a type, or with data that is no JSON. */
function isError(event: SseEvent): boolean {
  const { type, value } = readEvent(event);
  return type === "error" || event.name === "error" || (type === "" && isSet(value.error));
}

function askForRest(request: JsonObject, text: string, prompt: string): JsonObject {
  const turns = [
    { role: "assistant", content: text },
    { role: "user", content: prompt },
  ];
  return { messages: [...arrayOf(request.messages), ...turns] };
}

function askToGoOn(request: JsonObject, { text, thinking, pieces }: Progress): JsonObject | undefined {
  const messages = arrayOf(request.messages);
  const prefill = prefillOf(text);
  const limits = limitsLeft(request, ["max_tokens"], pieces);
  const last = messages.at(-1);
  if (!isObject(last) || last.role !== "assistant") {
    // The mark keeps the thinking from backends that would ask for its proof.
    const thoughts = thinking === "" ? [] : [{ type: "thinking", thinking, signature: wrapSeal({}) }];
    const turn = { role: "assistant", content: [...thoughts, { type: "text", text: prefill }] };
    return { messages: [...messages, turn], ...limits };
  }
  // The client had begun the turn itself.
  const content = thinking === "" ? withTextBehind(last.content, prefill) : undefined;
  return content === undefined ? undefined : { messages: [...messages.slice(0, -1), { ...last, content }], ...limits };
}

/** As in the vendor's format the type stands in the data; the name of the event is what it falls back to. */
function readEvent({ name, data }: SseEvent): { type: string; value: JsonObject } {
  const value = parseObject(data) ?? {};
  return { type: typeof value.type === "string" ? value.type : (name ?? ""), value };
}

function eventText(name: string, value: JsonObject): string {
  return `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;
}

function unchanged({ name, data }: SseEvent, type: string): string {
  const eventName = name ?? type;
  const line = eventName === "" ? "" : `event: ${eventName}\n`;
  return `${line}data: ${data.replaceAll("\n", "\ndata: ")}\n\n`;
}

function deltaOf(delta: JsonObject): JsonObject {
  return { type: "content_block_delta", index: -1, delta };
}

function indexOf({ index }: JsonObject): number {
  return typeof index === "number" ? index : 0;
}

function isThinking({ type }: { type: string }): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

function hasCitations(block: Block): boolean {
  return arrayOf(block.citations).length > 0;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
