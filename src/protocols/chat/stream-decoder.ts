// A chat backend's stream -> neutral events. Engines take the format loosely; what is known of them is read here.

import { MAX_CITATIONS } from "../../generation/answer-losses.ts";
import type { Citation, OpaquePart, ProtocolName } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { decodeUsage } from "../chunk-usage.ts";
import { ownMembers } from "../chunks.ts";
import { PartEvents } from "../part-events.ts";
import { decodeObject, type KeptMembers, type StreamDecoder } from "../protocol.ts";
import { textOf } from "../reading.ts";
import { decodeError, embeddedError } from "./errors.ts";
import { decodeFinish, isBroken, readFinishReason } from "./finish-reason.ts";
import { decodeAnnotations } from "./message-decoder.ts";
import { decodeProof, detailEntries, detailText, reasoningText } from "./reasoning-details.ts";
import {
  brokenOff,
  contentPieces,
  decodeHead,
  decodeImages,
  decodeOwn,
  decodeSources,
  firstChoice,
} from "./response-decoder.ts";
import { ToolCallAssembler } from "./tool-call-assembler.ts";
import { readThoughtSignature } from "./wire.ts";

type TextKind = "text" | "reasoning" | "refusal";

export class ChatStreamDecoder implements StreamDecoder {
  readonly #out = new PartEvents();
  #hasStarted = false;
  #isOver = false;
  /** The last text, refusal or reasoning part. */
  #last: { kind: TextKind; index: number; isSealed: boolean } | undefined;
  #hasPlainThoughts = false;
  readonly #calls = new ToolCallAssembler(this.#out);
  /** Where the open text part begins in the whole content, in which annotations count. */
  #textOffset = 0;
  #contentLength = 0;
  /** Citations that came before the text, as some routers send them. */
  #heldCitations: Citation[] = [];
  /** What the vendor names beside the choices, in one chunk or in each; for answers without annotations. */
  #sources: Citation[] = [];
  #hasCitations = false;
  #finishReason: string | undefined;
  #stopSequence: unknown;
  /** They wait for the end: a part of their own would cut the text that they come beside. */
  #ownParts: OpaquePart[] = [];
  readonly #keeps: KeptMembers | undefined;
  /** What only this format knows of the chunk that is read, until an event has it; and of the one with the finish. */
  #own: JsonObject | undefined;
  #ownOfFinish: JsonObject | undefined;

  readonly #isText: boolean;

  /** @param says - where the choice of a chunk has its text: `text` in a text completion */
  constructor(keeps?: KeptMembers, says: "delta" | "text" = "delta") {
    this.#keeps = keeps;
    this.#isText = says === "text";
  }

  push(data: string, name?: string): readonly GenerationEvent[] {
    if (this.#isOver || data === "") return [];
    if (data.trim() === "[DONE]") {
      if (this.#hasStarted) this.#finish();
      return this.#out.take();
    }
    const chunk = decodeObject(data, "has an event that ");
    const failure = name === "error" ? decodeError(200, chunk) : embeddedError(chunk);
    if (failure !== undefined) {
      this.#isOver = true;
      return [{ type: "failure", failure }];
    }
    this.#readChunk(chunk);
    return this.#out.take();
  }

  /** Some backends leave out [DONE]; an answer with a finish reason is complete all the same. */
  end(): readonly GenerationEvent[] {
    if (this.#isOver) return [];
    if (this.#finishReason !== undefined) this.#finish();
    else this.#isOver = true;
    return this.#out.take();
  }

  /**
   * The finish waits for the end of the stream: some backends repeat the finish reason in several chunks, and send
   * pieces of the answer behind the first one.
   */
  #finish(): void {
    this.#isOver = true;
    this.#calls.checkNames();
    if (!this.#hasCitations) this.#addCitations(this.#sources);
    this.#out.endAll();
    for (const part of this.#ownParts) this.#out.whole(part);
    const finish = decodeFinish(this.#finishReason, this.#calls.count > 0, this.#stopSequence);
    this.#out.push({ type: "finish", finish, ...(this.#ownOfFinish && { own: this.#ownOfFinish }) });
  }

  #readChunk(chunk: JsonObject): void {
    const choice = firstChoice(chunk);
    const usage = chunk.usage === undefined || chunk.usage === null ? undefined : decodeUsage(chunk.usage);
    // Chunks before the answer (Azure's filter results) have no id and no choice.
    if (!this.#hasStarted && (choice !== undefined || usage !== undefined || isFilled(chunk.id))) {
      this.#hasStarted = true;
      this.#out.push({ type: "start", ...decodeHead(chunk) });
    }
    // A chat client has the chunk itself.
    if (this.#keeps === undefined && (chunk.search_results ?? chunk.citations) !== undefined) {
      const sources = decodeSources(chunk);
      if (sources.length > 0) this.#sources = sources;
    }
    if (choice !== undefined) {
      if (this.#keeps !== undefined) this.#own = ownMembers(chunk, choice, KNOWN_MEMBERS);
      this.#readChoice(choice);
    }
    const isHidden = this.#keeps === undefined || (this.#keeps.hidesUsage && isObject(chunk.usage));
    if (choice === undefined && usage === undefined && !isHidden) this.#out.push({ type: "unknown", value: chunk });
    if (usage === undefined || this.#isOver) return;
    const isOwn = this.#keeps?.hidesUsage === false;
    this.#out.push({ type: "usage", usage, ...(isOwn && { own: chunk.usage as JsonObject }) });
  }

  #readChoice(choice: JsonObject): void {
    const delta = isObject(choice.delta) ? choice.delta : choice.message; // some send the whole message in one chunk
    if (this.#isText) this.#addText("text", textOf(choice.text));
    else if (isObject(delta)) this.#readDelta(delta);
    const reason = readFinishReason(choice);
    if (isBroken(reason)) {
      this.#isOver = true;
      this.#out.push({ type: "failure", failure: brokenOff(reason) });
      return;
    }
    if (reason === undefined) return;
    this.#finishReason = reason;
    this.#ownOfFinish = this.#takeOwn() ?? this.#ownOfFinish;
    this.#stopSequence = choice.stop_reason ?? this.#stopSequence;
  }

  #readDelta(delta: JsonObject): void {
    const thought = reasoningText(delta);
    if (thought !== "") this.#addThought(thought);
    if (delta.reasoning_details !== undefined) this.#addDetails(delta);
    const { content, refusal } = delta;
    if (typeof content === "string") this.#addText("text", content);
    else if (Array.isArray(content)) this.#addPieces(content);
    if (typeof refusal === "string") this.#addText("refusal", refusal);
    if (delta.annotations !== undefined) this.#addCitations(decodeAnnotations(delta.annotations));
    if (delta.extra_content !== undefined) this.#addSignature(delta);
    if (delta.images !== undefined) this.#addImages(delta.images);
    if (delta.annotations !== undefined || delta.executed_tools !== undefined) this.#addOwn(delta);
    if (Array.isArray(delta.tool_calls)) {
      for (const entry of delta.tool_calls) if (isObject(entry)) this.#calls.push(entry);
    }
    if (isObject(delta.function_call)) this.#calls.pushFunctionCall(delta.function_call);
  }

  #addThought(text: string): void {
    this.#hasPlainThoughts = true;
    this.#addText("reasoning", text);
  }

  /** Details repeat plain thoughts; where there are none, they are the thoughts. */
  #addDetails(delta: JsonObject): void {
    for (const entry of detailEntries(delta)) {
      const text = detailText(entry);
      if (!this.#hasPlainThoughts && text !== "") this.#addText("reasoning", text);
      const { origin, signature, sealed, itemId } = decodeProof(entry);
      if (origin === undefined) continue;
      if (sealed !== undefined) this.#addSealed(origin, sealed, itemId);
      const open = this.#open;
      if (sealed === undefined && signature !== undefined && open?.kind === "reasoning" && !open.isSealed) {
        open.isSealed = true;
        this.#out.push({ type: "seal", index: open.index, origin, signature });
      }
    }
  }

  #addSealed(origin: ProtocolName, sealed: string, itemId: string | undefined): void {
    const index = this.#out.start(compact({ type: "reasoning", itemId }));
    this.#out.seal(index, origin, sealed);
    this.#out.end(index);
  }

  #addPieces(content: readonly unknown[]): void {
    for (const { kind, text } of contentPieces(content)) this.#addText(kind === "thinking" ? "reasoning" : kind, text);
  }

  #addText(kind: TextKind, text: string): void {
    if (text === "") return;
    let open = this.#open;
    if (open?.kind !== kind || open.isSealed) {
      // Stray white space between the pieces of a call would end the call.
      if (this.#out.hasOpenCalls && text.trim() === "") return;
      open = this.#startText(kind);
    }
    if (kind === "text") this.#contentLength += text.length;
    this.#out.delta(open.index, text, this.#keeps && this.#takeOwn());
  }

  get #open() {
    return this.#out.isOpen(this.#last?.index) ? this.#last : undefined;
  }

  #takeOwn(): JsonObject | undefined {
    const own = this.#own;
    this.#own = undefined;
    return own;
  }

  #startText(kind: TextKind) {
    const open = { kind, index: this.#out.start({ type: kind }), isSealed: false };
    this.#last = open;
    if (kind === "text") {
      this.#textOffset = this.#contentLength;
      for (const citation of this.#heldCitations.splice(0)) this.#cite(open.index, citation);
    }
    return open;
  }

  #addCitations(citations: readonly Citation[]): void {
    if (citations.length > 0) this.#hasCitations = true;
    // One more than are kept, which shows that there were too many.
    const room = MAX_CITATIONS + 1 - this.#heldCitations.length;
    const open = this.#open;
    if (open?.kind !== "text") this.#heldCitations.push(...citations.slice(0, room));
    else for (const citation of citations) this.#cite(open.index, citation);
  }

  #cite(index: number, citation: Citation): void {
    if (citation.startIndex !== undefined) citation.startIndex -= this.#textOffset;
    if (citation.endIndex !== undefined) citation.endIndex -= this.#textOffset;
    this.#out.cite(index, citation);
  }

  #addSignature(delta: JsonObject): void {
    const signature = readThoughtSignature(delta);
    const open = this.#open;
    if (signature === undefined || open?.kind !== "text") return;
    this.#out.push({ type: "seal", index: open.index, origin: "generate-content", signature });
  }

  #addOwn(delta: JsonObject): void {
    if (this.#ownParts.length < MAX_OWN_PARTS) this.#ownParts.push(...decodeOwn(delta));
  }

  #addImages(images: unknown): void {
    for (const part of decodeImages(images)) this.#out.whole(part);
  }
}

/** Of the pieces that wait for the end of a stream, those behind so many are lost. */
const MAX_OWN_PARTS = 1_000;

/** Members of a delta that have events of their own; thoughts stand in `reasoning` as well as in the other one. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  "role",
  "content",
  "reasoning_content",
  "reasoning_details",
  "refusal",
  "annotations",
  "extra_content",
  "images",
  "executed_tools",
  "tool_calls",
  "function_call",
]);

function isFilled(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
