// Neutral events -> the chunks of a chat client's stream: role, then reasoning, content and tool calls as they come, an
// empty delta with the finish reason, the usage if it was asked for, [DONE].

import type { Citation } from "../../generation/content.ts";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { ChunkFrame, membersBehind } from "../chunks.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { encodeFailure } from "../standard-error.ts";
import { encodeFinishReason } from "./finish-reason.ts";
import { encodeStreamedDetail } from "./reasoning-details.ts";
import { answerId, answersFunctions, encodeCitations, encodeImage, showsReasoning } from "./response-encoder.ts";
import { thoughtSignature } from "./wire.ts";

type Event<Type extends GenerationEvent["type"]> = Extract<GenerationEvent, { type: Type }>;

type ChunkPart =
  /** `offset`: where the part begins in the whole content. */
  | { type: "text"; offset: number; length: number; citations: Citation[] }
  | { type: "refusal" }
  /** The text is kept for the entry that goes with its proof. */
  | { type: "reasoning"; text: string; itemId: string | undefined }
  /** `before` and `after`: the constant parts of a delta with a fragment of the arguments. */
  | { type: "call"; before: string; after: string; hasArguments: boolean; needsArguments: boolean }
  | undefined;

/** What an earlier backend has said of an answer. */
interface SentHead {
  /** Its id, time and model, as far as they were given. */
  identity: JsonObject;
  hasRole: boolean;
  text: string;
}

export class ChatStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #parts = new Map<number, ChunkPart>();
  readonly #isLegacy: boolean;
  readonly #showsReasoning: boolean;
  readonly #frame: ChunkFrame;
  /** A chunk without an end is #before + delta + #after. */
  #before = "";
  readonly #after: string;
  #calls = 0;
  #contentLength = 0;
  readonly #sent: SentHead | undefined;
  /** Length of the text that the first part goes on with. */
  #openText = 0;

  /** @param sent - this answer goes on behind it */
  constructor(context: AnswerContext, sent?: SentHead) {
    this.#context = context;
    this.#sent = sent;
    if (sent !== undefined) this.#contentLength = this.#openText = sent.text.length;
    this.#isLegacy = answersFunctions(context);
    this.#showsReasoning = showsReasoning(context);
    this.#frame = new ChunkFrame(context, sent?.identity);
    this.#after = `,"finish_reason":null}]${this.#frame.noUsage}}\n\n`;
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "delta":
        return this.#encodeDelta(event.index, event.text, event.own);
      case "part-start":
        return this.#startPart(event.index, event.part);
      case "part-end":
        return this.#endPart(event.index);
      case "start":
        return this.#start(event);
      case "seal":
        return this.#encodeSeal(event);
      case "citation": {
        const part = this.#parts.get(event.index);
        if (part?.type === "text") part.citations.push(event.citation);
        return "";
      }
      case "usage":
        this.#frame.count(event);
        return "";
      case "finish": {
        const reason = JSON.stringify(encodeFinishReason(event.finish, this.#isLegacy));
        return this.#frame.chunk(choiceOf("{}", reason, event.own), event.own);
      }
      case "failure":
        return encodeFailure(event.failure);
      case "unknown":
        return `data: ${JSON.stringify({ ...event.value, ...this.#frame.identity })}\n\n`;
    }
  }

  end(): string {
    return this.#frame.end();
  }

  #start({ id, createdAt }: Event<"start">): string {
    this.#frame.start("chat.completion.chunk", answerId(id, this.#context), createdAt);
    this.#before = `${this.#frame.head}[{"index":0,"delta":`;
    return this.#sent?.hasRole ? "" : this.#chunk('{"role":"assistant","content":""}');
  }

  #chunk(delta: string, own?: JsonObject): string {
    if (own === undefined) return this.#before + delta + this.#after;
    return this.#frame.chunk(choiceOf(delta, "null", own), own);
  }

  #encodeDelta(index: number, text: string, own: JsonObject | undefined): string {
    const part = this.#parts.get(index);
    switch (part?.type) {
      case "text":
        part.length += text.length;
        return this.#chunk(`{"content":${JSON.stringify(text)}}`, own);
      case "reasoning":
        part.text += text;
        return this.#chunk(`{"reasoning_content":${JSON.stringify(text)}}`, own);
      case "refusal":
        return this.#chunk(`{"refusal":${JSON.stringify(text)}}`, own);
      case "call":
        part.hasArguments = true;
        return this.#chunk(part.before + JSON.stringify(text) + part.after, own);
      default:
        return "";
    }
  }

  #startPart(index: number, start: PartStart): string {
    const length = this.#openText;
    this.#openText = 0;
    switch (start.type) {
      case "text":
        this.#parts.set(index, { type: "text", offset: this.#contentLength - length, length, citations: [] });
        return "";
      case "refusal":
        this.#parts.set(index, { type: "refusal" });
        return "";
      case "reasoning":
        if (this.#showsReasoning) this.#parts.set(index, { type: "reasoning", text: "", itemId: start.itemId });
        return "";
      case "tool-call":
        return start.serverSide === true ? "" : this.#startCall(index, start);
      case "image": {
        const images = encodeImage(start);
        return images.length === 0 ? "" : this.#chunk(JSON.stringify({ images }));
      }
      case "opaque":
        return start.protocol === "chat" ? this.#chunk(JSON.stringify(start.value)) : "";
      default:
        return ""; // results of searches have no place here
    }
  }

  #startCall(index: number, { id, name, custom, signature }: Extract<PartStart, { type: "tool-call" }>): string {
    const slot = this.#calls++;
    if (this.#isLegacy) {
      if (slot > 0) return ""; // the deprecated form holds one call
      this.#addCall(index, '{"function_call":{"arguments":', "}}", true);
      return this.#chunk(JSON.stringify({ function_call: { name, arguments: "" } }));
    }
    const type = custom === true ? "custom" : "function";
    const field = custom === true ? "input" : "arguments";
    this.#addCall(index, `{"tool_calls":[{"index":${slot},"${type}":{"${field}":`, "}}]}", custom !== true);
    const call = compact({
      index: slot,
      id,
      type,
      [type]: { name, [field]: "" },
      extra_content: signature === undefined ? undefined : thoughtSignature(signature),
    });
    return this.#chunk(JSON.stringify({ tool_calls: [call] }));
  }

  #addCall(index: number, before: string, after: string, needsArguments: boolean): void {
    this.#parts.set(index, { type: "call", before, after, hasArguments: false, needsArguments });
  }

  #encodeSeal({ index, origin, signature, sealed }: Event<"seal">): string {
    const part = this.#parts.get(index);
    if (part?.type === "text" && signature !== undefined) {
      return this.#chunk(JSON.stringify({ extra_content: thoughtSignature(signature) }));
    }
    if (part?.type !== "reasoning") return "";
    const { text, itemId } = part;
    const detail = encodeStreamedDetail(compact({ text, origin, signature, sealed, itemId }));
    return detail === undefined ? "" : this.#chunk(JSON.stringify({ reasoning_details: [detail] }));
  }

  #endPart(index: number): string {
    const part = this.#parts.get(index);
    this.#parts.delete(index);
    if (part?.type === "text") {
      this.#contentLength += part.length;
      const annotations = encodeCitations(part.citations, part.offset, part.length);
      return annotations.length === 0 ? "" : this.#chunk(JSON.stringify({ annotations }));
    }
    // Clients parse the arguments, and "" is no JSON.
    if (part?.type === "call" && part.needsArguments && !part.hasArguments) {
      return this.#chunk(`${part.before}"{}"${part.after}`);
    }
    return "";
  }
}

/** The choice of a chunk, with what only the format knows of it. `delta` and `reason` are JSON. */
function choiceOf(delta: string, reason: string, own: JsonObject | undefined): string {
  const more = membersBehind(own?.delta);
  const whole = more === "" ? delta : delta === "{}" ? `{${more.slice(1)}}` : `${delta.slice(0, -1)}${more}}`;
  const logprobs = own?.logprobs === undefined ? "" : `,"logprobs":${JSON.stringify(own.logprobs)}`;
  return `{"index":0,"delta":${whole},"finish_reason":${reason}${membersBehind(own?.choice)}${logprobs}}`;
}
