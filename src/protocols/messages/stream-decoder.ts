// A Messages backend's event stream -> neutral events. Blocks come one after the other; streams that overlap them, skip
// their beginning or change their kind are put in order as far as nothing gets lost.

import type { Citation } from "../../generation/content.ts";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import { compact, isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { DecodeError, type KeptMembers, type StreamDecoder } from "../protocol.ts";
import { arrayOf, objectOf, optionalText, textOf } from "../reading.ts";
import { argumentsOf, decodeAnswerBlock, decodeCitation, decodeCitations, sealOf } from "./content-decoder.ts";
import { decodeError } from "./errors.ts";
import { decodeFinish } from "./finish-reason.ts";
import { refusalText } from "./response-decoder.ts";
import { decodeUsage, mergeUsage } from "./usage.ts";
import { type Block, isBlock } from "./wire.ts";

interface SpokenBlock {
  kind: "text" | "reasoning";
  part: number;
  signature: string;
}

type OpenBlock =
  | SpokenBlock
  | { kind: "tool"; part: number; input: unknown; hasArguments: boolean }
  /** A block that is passed on whole once it is complete. */
  | { kind: "opaque"; value: Block; json: string };

export function createStreamDecoder(keeps?: KeptMembers): StreamDecoder {
  return new MessagesStreamDecoder(keeps !== undefined);
}

class MessagesStreamDecoder implements StreamDecoder {
  readonly #keepsOwn: boolean;
  #events: GenerationEvent[] = [];
  /** By the index of the wire. */
  readonly #open = new Map<number, OpenBlock>();
  #nextPart = 0;
  #hasStarted = false;
  #id = "";
  #isOver = false;
  #hasToolCalls = false;
  #usage: JsonObject | undefined;
  #stop: JsonObject = {};
  /** The last message_delta. */
  #end: JsonObject | undefined;

  constructor(keepsOwn: boolean) {
    this.#keepsOwn = keepsOwn;
  }

  push(data: string, name?: string): readonly GenerationEvent[] {
    if (this.#isOver || data === "" || data === "[DONE]") return [];
    const event = parseObject(data);
    if (event === undefined) throw new DecodeError("is no JSON object");
    this.#read(event, optionalText(event.type) ?? name ?? "");
    return this.#take();
  }

  end(): readonly GenerationEvent[] {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#closeAll();
    }
    return this.#take();
  }

  #take(): readonly GenerationEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #read(event: JsonObject, type: string): void {
    switch (type) {
      case "content_block_delta":
        if (isObject(event.delta)) this.#delta(indexOf(event), event.delta, event);
        break;
      case "content_block_start":
        if (isBlock(event.content_block)) this.#startBlock(indexOf(event), event.content_block);
        break;
      case "content_block_stop":
        this.#close(indexOf(event));
        break;
      case "message_start":
        this.#startMessage(event.message);
        break;
      case "message_delta":
        this.#end = event;
        if (isObject(event.delta)) this.#stop = { ...this.#stop, ...event.delta };
        this.#countUsage(event.usage);
        break;
      case "message_stop":
        this.#finish();
        break;
      case "error":
        this.#isOver = true;
        this.#events.push({ type: "failure", failure: decodeError(200, event) });
        break;
      default: // ping, and whatever comes to be
        if (this.#keepsOwn) this.#events.push({ type: "unknown", value: { ...event, type } });
    }
  }

  #startMessage(message: unknown): void {
    const value = objectOf(message);
    const id = textOf(value.id);
    if (!this.#hasStarted) this.#start(id, textOf(value.model));
    // A proxy asked again and sent both answers as one: what came of the first was never finished.
    else if (this.#nextPart > 0 && id !== this.#id) throw new DecodeError("begins a second message inside the first");
    this.#countUsage(value.usage);
    // Calls that were put off until now stand in the start of the message.
    for (const block of arrayOf(value.content).filter(isBlock)) this.#wholeBlock(block);
  }

  #start(id = "", model = ""): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#id = id;
    this.#events.push({ type: "start", id, model, createdAt: 0 });
  }

  #countUsage(value: unknown): void {
    const merged = mergeUsage(this.#usage, value);
    if (merged === this.#usage) return;
    this.#usage = merged;
    this.#start();
    const usage = decodeUsage(merged);
    if (usage === undefined) return;
    this.#events.push({ type: "usage", usage, ...(this.#keepsOwn && { own: merged as JsonObject }) });
  }

  #startBlock(index: number, block: Block): void {
    this.#close(index);
    switch (block.type) {
      case "text":
        this.#startText(index, block);
        break;
      case "thinking":
        this.#startThinking(index, block);
        break;
      case "tool_use":
      case "server_tool_use":
        this.#startTool(index, block);
        break;
      case "redacted_thinking":
      case "web_search_tool_result":
        this.#wholeBlock(block);
        break;
      default:
        this.#open.set(index, { kind: "opaque", value: { ...block }, json: "" });
    }
  }

  /** The part begins with its first text, so that an empty block leaves no trace. */
  #startText(index: number, block: Block): void {
    const text = textOf(block.text);
    const citations = decodeCitations(block.citations);
    if (text !== "") this.#emitText(this.#ensure("text", index).part, text);
    for (const citation of citations) this.#cite(index, citation);
  }

  #startThinking(index: number, block: Block): void {
    const open = this.#ensure("reasoning", index);
    open.signature = textOf(block.signature);
    this.#emitText(open.part, textOf(block.thinking));
  }

  #startTool(index: number, block: Block): void {
    this.#closeAll("tool");
    const call = decodeAnswerBlock(block);
    if (call.type !== "tool-call") return;
    const start: PartStart = { type: "tool-call", id: call.id, name: call.name };
    if (call.serverSide === true) start.serverSide = true;
    else this.#hasToolCalls = true;
    this.#open.set(index, { kind: "tool", part: this.#startPart(start), input: block.input, hasArguments: false });
  }

  #delta(index: number, delta: JsonObject, event: JsonObject): void {
    switch (delta.type) {
      case "text_delta":
        if (this.#open.get(index)?.kind === "opaque") this.#extendOpaque(index, "text", delta.text);
        else if (textOf(delta.text) !== "") {
          const own = this.#keepsOwn ? ownMembers(event, delta) : undefined;
          this.#emitText(this.#ensure("text", index).part, textOf(delta.text), own);
        }
        break;
      case "input_json_delta":
        this.#argue(index, textOf(delta.partial_json));
        break;
      case "thinking_delta":
        this.#emitText(this.#ensure("reasoning", index).part, textOf(delta.thinking));
        break;
      case "signature_delta":
        this.#sign(index, textOf(delta.signature));
        break;
      case "citations_delta":
        if (isObject(delta.citation)) this.#cite(index, decodeCitation(delta.citation));
        break;
      case "compaction_delta":
        this.#extendOpaque(index, "content", delta.content);
        break;
      default: // a kind of delta that this gateway does not know
    }
  }

  #emitText(index: number, text: string, own?: JsonObject): void {
    if (text === "") return;
    this.#events.push(own === undefined ? { type: "delta", index, text } : { type: "delta", index, text, own });
  }

  #cite(index: number, citation: Citation): void {
    this.#events.push({ type: "citation", index: this.#ensure("text", index).part, citation });
  }

  #argue(index: number, fragment: string): void {
    const open = this.#open.get(index);
    if (open?.kind === "opaque") open.json += fragment;
    else if (open?.kind === "tool") {
      if (fragment === "") return;
      open.hasArguments = true;
      this.#emitText(open.part, fragment);
    } else if (fragment !== "") throw new DecodeError("has arguments outside of a tool call");
  }

  /** As in the vendor's own library the last signature counts. */
  #sign(index: number, signature: string): void {
    const open = this.#open.get(index);
    if (open?.kind === "opaque") open.value.signature = signature;
    else this.#ensure("reasoning", index).signature = signature;
  }

  #extendOpaque(index: number, member: string, text: unknown): void {
    const open = this.#open.get(index);
    if (open?.kind === "opaque") open.value[member] = textOf(open.value[member]) + textOf(text);
  }

  #ensure(kind: SpokenBlock["kind"], index: number): SpokenBlock {
    const open = this.#open.get(index);
    if (open?.kind === kind) return open as SpokenBlock;
    this.#closeAll();
    const started = { kind, part: this.#startPart({ type: kind }), signature: "" };
    this.#open.set(index, started);
    return started;
  }

  #startPart(part: PartStart): number {
    this.#start();
    const index = this.#nextPart++;
    this.#events.push({ type: "part-start", index, part });
    return index;
  }

  /** A block that has all it will have. */
  #wholeBlock(block: Block): void {
    this.#closeAll();
    const part = decodeAnswerBlock(block);
    if (part.type === "reasoning") {
      const index = this.#startPart({ type: "reasoning" });
      this.#emitText(index, part.text);
      this.#seal(index, part);
      this.#events.push({ type: "part-end", index });
    } else if (part.type === "search-result" || part.type === "opaque") {
      this.#events.push({ type: "part-end", index: this.#startPart(part) });
    } else {
      // Text and calls are read as if they were streamed; no stream uses this index.
      this.#startBlock(-1, block);
      this.#close(-1);
    }
  }

  #seal(index: number, { origin, signature, sealed }: ReturnType<typeof sealOf>): void {
    if (origin === undefined) return;
    this.#events.push({ type: "seal", index, origin, ...compact({ signature, sealed }) });
  }

  #close(index: number): void {
    const open = this.#open.get(index);
    if (open === undefined) return;
    this.#open.delete(index);
    const isCutOff = this.#isOver; // Only then is something closed that the backend did not complete.
    if (open.kind === "opaque") {
      if (isCutOff) return;
      if (open.json !== "") open.value.input = parseOr(open.json, open.value.input);
      const part: PartStart = { type: "opaque", protocol: "messages", value: open.value };
      this.#events.push({ type: "part-end", index: this.#startPart(part) });
      return;
    }
    if (open.kind === "tool" && !open.hasArguments && !isCutOff) this.#emitText(open.part, argumentsOf(open.input));
    if (open.kind === "reasoning") this.#seal(open.part, sealOf(open.signature));
    this.#events.push({ type: "part-end", index: open.part });
  }

  /** Closes all but blocks of the kind that may stay open beside a new one. */
  #closeAll(kept?: OpenBlock["kind"]): void {
    if (this.#open.size === 0) return;
    for (const [index, open] of [...this.#open]) {
      if (open.kind !== kept) this.#close(index);
    }
  }

  #finish(): void {
    this.#start();
    this.#closeAll();
    this.#isOver = true;
    const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = this.#stop;
    const explanation = refusalText(details);
    if (explanation !== undefined) {
      const index = this.#startPart({ type: "refusal" });
      this.#emitText(index, explanation);
      this.#events.push({ type: "part-end", index });
    }
    const finish = decodeFinish(reason, sequence, this.#hasToolCalls);
    const own = this.#keepsOwn && this.#end !== undefined && { own: { ...this.#end, delta: this.#stop } };
    this.#events.push({ type: "finish", finish, ...own });
  }
}

/** What is unknown of an event with text. */
function ownMembers(event: JsonObject, delta: JsonObject): JsonObject | undefined {
  const { type: _, index: _place, delta: _delta, ...own } = event;
  const { type: _kind, text: _text, ...ownDelta } = delta;
  if (Object.keys(ownDelta).length > 0) own.delta = ownDelta;
  return Object.keys(own).length > 0 ? own : undefined;
}

function parseOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

function indexOf({ index }: JsonObject): number {
  return typeof index === "number" ? index : 0;
}
