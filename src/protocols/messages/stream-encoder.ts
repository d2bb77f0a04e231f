// Neutral events -> event stream of a Messages answer. Blocks follow one another without gaps: what belongs to a later
// block waits until the one before is complete.

import type { Citation } from "../../generation/content.ts";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import type { Finish } from "../../generation/result.ts";
import type { Usage } from "../../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { recounted } from "../stream-join.ts";
import { FREE_FORM_MEMBER } from "../tool-input.ts";
import { encodeSearchResult } from "./content-encoder.ts";
import { failureEvent } from "./errors.ts";
import { encodeFinish } from "./finish-reason.ts";
import { wrapSeal } from "./foreign-seal.ts";
import { callId, encodeCitation, messageId, signatureOf } from "./response-encoder.ts";
import { encodeUsage } from "./usage.ts";
import { type Block, eventText, isBlock } from "./wire.ts";

type ToolStart = Extract<PartStart, { type: "tool-call" }>;
type SealEvent = Extract<GenerationEvent, { type: "seal" }>;

interface SpokenPartState {
  kind: "text" | "reasoning";
  /** What every delta begins with; undefined until the block is open. */
  prefix: string | undefined;
  itemId: string | undefined;
  seal: SealEvent | undefined;
}

interface ToolPartState {
  kind: "tool";
  start: ToolStart;
  part: number;
  prefix: string | undefined;
  /** Arguments that came while another call was open. */
  waiting: string;
  hasEnded: boolean;
}

type PartState = SpokenPartState | ToolPartState;

const SPOKEN = {
  text: { block: { type: "text", text: "" }, delta: "text_delta", member: "text" },
  reasoning: {
    block: { type: "thinking", thinking: "", signature: "" },
    delta: "thinking_delta",
    member: "thinking",
  },
} as const;

const DELTA_SUFFIX = "}}\n\n";

/** The block of an earlier backend's that the client waits for the end of. */
export interface SentBlock {
  index: number;
  type: string;
  /** Whether its signature has come, or needs not to. */
  isSigned: boolean;
}

/** How far an earlier backend has come with a message. */
interface SentBlocks {
  nextIndex: number;
  open: SentBlock | undefined;
}

/** @param sent - what an earlier backend has said of this message: this one goes on behind it */
export function createStreamEncoder(context: AnswerContext, sent?: SentBlocks): StreamEncoder {
  return new MessagesStreamEncoder(context, sent);
}

class MessagesStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #parts = new Map<number, PartState>();
  /** Calls that are not written to their end; the first of them is open. */
  #calls: ToolPartState[] = [];
  /** Blocks written to their end so far. */
  #blocks: number;
  #hasStarted: boolean;
  /** Until something follows it. Text goes on in it; anything else closes it. */
  #left: SentBlock | undefined;
  #hasToolCalls = false;
  #hasRefusal = false;
  #usage: Usage | undefined;
  #finish: Finish = { reason: "stop" };
  /** The same as a backend of this format tells it. */
  #ownUsage: JsonObject | undefined;
  #ownEnd: JsonObject | undefined;

  constructor(context: AnswerContext, sent: SentBlocks | undefined) {
    this.#context = context;
    this.#hasStarted = sent !== undefined;
    this.#left = sent?.open;
    this.#blocks = sent?.open?.index ?? sent?.nextIndex ?? 0;
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "delta":
        return this.#delta(event);
      case "start":
        return this.#start(event.id);
      case "part-start":
        return this.#start("") + this.#startPart(event.index, event.part);
      case "part-end":
        return this.#endPart(event.index);
      case "seal": {
        const part = this.#parts.get(event.index);
        if (part?.kind === "reasoning") part.seal = event;
        return "";
      }
      case "citation":
        return this.#cite(event.index, event.citation);
      case "usage":
        this.#usage = event.usage;
        this.#ownUsage = event.own;
        return "";
      case "finish":
        this.#finish = event.finish;
        this.#ownEnd = event.own;
        return "";
      case "failure":
        return failureEvent(event.failure);
      case "unknown":
        return eventText(String(event.value.type), event.value);
    }
  }

  end(): string {
    let text = this.#start("");
    for (const index of [...this.#parts.keys()]) text += this.#endPart(index);
    text += this.#closeLeft();
    text += eventText("message_delta", this.#ownEnd === undefined ? this.#messageDelta() : this.#counted(this.#ownEnd));
    return `${text}event: message_stop\ndata: {"type":"message_stop"}\n\n`;
  }

  #messageDelta(): JsonObject {
    const shape = { hasToolCalls: this.#hasToolCalls, hasRefusal: this.#hasRefusal };
    const delta = { ...encodeFinish(this.#finish, shape), container: null };
    return { type: "message_delta", delta, usage: encodeUsage(this.#usage) };
  }

  /** The backend's own last words, with the counts of its start: a client would keep those of an earlier one instead. */
  #counted(end: JsonObject): JsonObject {
    const event = { ...end, type: "message_delta" };
    if (!isObject(end.usage) || this.#ownUsage === undefined) return event;
    const counts = recounted(this.#ownUsage, encodeUsage(this.#usage), ["input_tokens", "output_tokens"]);
    return { ...event, usage: { ...end.usage, ...counts } };
  }

  #start(id: string): string {
    if (this.#hasStarted) return "";
    this.#hasStarted = true;
    const message = {
      id: messageId(id, this.#context.nonce),
      type: "message",
      role: "assistant",
      model: this.#context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: encodeUsage(undefined),
    };
    return eventText("message_start", { type: "message_start", message });
  }

  #startPart(index: number, part: PartStart): string {
    switch (part.type) {
      case "refusal":
        this.#hasRefusal = true;
        return this.#expect(index, { kind: "text" });
      case "text": {
        const goesOn = this.#left?.type === "text";
        if (goesOn) this.#left = undefined;
        return this.#expect(index, { kind: "text", prefix: goesOn ? this.#spokenPrefix("text") : undefined });
      }
      case "reasoning":
        return this.#expect(index, { kind: "reasoning", itemId: part.itemId });
      case "tool-call":
        return this.#startCall(index, part);
      case "search-result":
        return this.#wholeBlock(encodeSearchResult(part));
      case "opaque":
        return part.protocol === "messages" && isBlock(part.value) ? this.#wholeBlock(part.value) : "";
      default:
        return ""; // Pictures and sound have no place in an answer of this format.
    }
  }

  /** The block begins with its first text, so that an empty part leaves no trace. */
  #expect(index: number, part: Pick<SpokenPartState, "kind"> & Partial<SpokenPartState>): string {
    this.#parts.set(index, { prefix: undefined, itemId: undefined, seal: undefined, ...part });
    return "";
  }

  #startCall(part: number, start: ToolStart): string {
    const call: ToolPartState = { kind: "tool", start, part, prefix: undefined, waiting: "", hasEnded: false };
    if (start.serverSide !== true) this.#hasToolCalls = true;
    this.#parts.set(part, call);
    this.#calls.push(call);
    return this.#calls.length === 1 ? this.#openCall(call) : "";
  }

  #openCall(call: ToolPartState): string {
    const { start, part } = call;
    const isServerSide = start.serverSide === true;
    const type = isServerSide ? "server_tool_use" : "tool_use";
    const id = callId(start.id, isServerSide, part, this.#context.nonce);
    const text = this.#openBlock({ type, id, name: start.name, input: {} });
    call.prefix = this.#deltaPrefix("input_json_delta", "partial_json");
    if (start.custom !== true) return text;
    // Free-form text becomes the one member of an object, written as it arrives.
    return `${text}${call.prefix}${JSON.stringify(`{"${FREE_FORM_MEMBER}":"`)}${DELTA_SUFFIX}`;
  }

  #delta({ index, text, own }: Extract<GenerationEvent, { type: "delta" }>): string {
    const part = this.#parts.get(index);
    if (part === undefined) return "";
    if (part.kind === "tool") return this.#argue(part, text);
    const opened = part.prefix === undefined ? this.#openSpoken(part) : "";
    if (own === undefined) return `${opened}${part.prefix}${JSON.stringify(text)}${DELTA_SUFFIX}`;
    const { delta, ...event } = own;
    const place = { type: "content_block_delta", index: this.#blocks };
    const written = { ...place, delta: { type: "text_delta", text, ...(delta as object) }, ...event };
    return opened + eventText("content_block_delta", written);
  }

  #argue(call: ToolPartState, text: string): string {
    const json = call.start.custom === true ? JSON.stringify(text).slice(1, -1) : text;
    if (call.prefix !== undefined) return `${call.prefix}${JSON.stringify(json)}${DELTA_SUFFIX}`;
    call.waiting += json;
    return "";
  }

  #openSpoken(part: SpokenPartState): string {
    const text = this.#openBlock(SPOKEN[part.kind].block);
    part.prefix = this.#spokenPrefix(part.kind);
    return text;
  }

  #spokenPrefix(kind: SpokenPartState["kind"]): string {
    const { delta, member } = SPOKEN[kind];
    return this.#deltaPrefix(delta, member);
  }

  #cite(index: number, citation: Citation): string {
    const part = this.#parts.get(index);
    const encoded = encodeCitation(citation);
    if (part?.kind !== "text" || encoded === undefined) return "";
    const opened = part.prefix === undefined ? this.#openSpoken(part) : "";
    return `${opened}${this.#deltaPrefix("citations_delta", "citation")}${JSON.stringify(encoded)}${DELTA_SUFFIX}`;
  }

  #endPart(index: number): string {
    const part = this.#parts.get(index);
    if (part === undefined) return "";
    this.#parts.delete(index);
    switch (part.kind) {
      case "text":
        return part.prefix === undefined ? "" : this.#closeBlock();
      case "reasoning":
        return this.#endReasoning(part);
      case "tool":
        part.hasEnded = true;
        return this.#advanceCalls();
    }
  }

  #endReasoning(part: SpokenPartState): string {
    const { seal, itemId } = part;
    const signature = seal && signatureOf({ ...seal, ...compact({ itemId }) });
    let text = "";
    if (part.prefix !== undefined || signature !== undefined) {
      if (part.prefix === undefined) text += this.#openSpoken(part);
      const signed = JSON.stringify(signature ?? wrapSeal({}));
      text += this.#deltaPrefix("signature_delta", "signature") + signed + DELTA_SUFFIX + this.#closeBlock();
    }
    if (seal?.origin === "messages" && seal.sealed !== undefined) {
      text += this.#wholeBlock({ type: "redacted_thinking", data: seal.sealed });
    }
    return text;
  }

  /** Closes the calls that are complete and opens the next one with what has come for it. */
  #advanceCalls(): string {
    let text = "";
    for (let call = this.#calls[0]; call !== undefined; call = this.#calls[0]) {
      if (call.prefix === undefined) {
        text += this.#openCall(call);
        if (call.waiting !== "") text += `${call.prefix}${JSON.stringify(call.waiting)}${DELTA_SUFFIX}`;
        call.waiting = "";
      }
      if (!call.hasEnded) return text;
      if (call.start.custom === true) text += `${call.prefix}${JSON.stringify('"}')}${DELTA_SUFFIX}`;
      text += this.#closeBlock();
      this.#calls.shift();
    }
    return text;
  }

  #wholeBlock(block: Block): string {
    return this.#openBlock(block) + this.#closeBlock();
  }

  #openBlock(block: Block): string {
    const closed = this.#closeLeft();
    const start = { type: "content_block_start", index: this.#blocks, content_block: block };
    return closed + eventText("content_block_start", start);
  }

  #closeLeft(): string {
    const left = this.#left;
    this.#left = undefined;
    if (left === undefined) return "";
    // Thinking that broke off has no proof: the mark keeps it from backends that would refuse it.
    const mark = `${this.#deltaPrefix("signature_delta", "signature")}${JSON.stringify(wrapSeal({}))}${DELTA_SUFFIX}`;
    return (left.isSigned ? "" : mark) + this.#closeBlock();
  }

  #closeBlock(): string {
    const index = this.#blocks++;
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
  }

  /** The constant beginning of the deltas of the open block. */
  #deltaPrefix(type: string, member: string): string {
    const data = `{"type":"content_block_delta","index":${this.#blocks},"delta":{"type":"${type}","${member}":`;
    return `event: content_block_delta\ndata: ${data}`;
  }
}
