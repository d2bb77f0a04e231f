// Neutral events -> event stream of a generateContent answer. Each event is an answer object whose parts are the next piece;
// a call comes whole, as Gemini's own models send it, and the last event says why the answer ended and what was counted.

import { isSearch } from "../../generation/answer-losses.ts";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import type { Finish } from "../../generation/result.ts";
import type { Usage } from "../../generation/usage.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { callPart, signatureOfThought, wholePart } from "./answer-parts.ts";
import { eventText, failureEvent } from "./client-errors.ts";
import { blockReasonOf, encodeFinish } from "./finish-reason.ts";
import { Grounding } from "./grounding.ts";
import { responseId } from "./response-encoder.ts";
import { encodeUsage } from "./usage.ts";
import type { GeminiPart } from "./wire.ts";

type ToolStart = Extract<PartStart, { type: "tool-call" }>;

interface CallState {
  kind: "call";
  start: ToolStart;
  arguments: string;
  hasEnded: boolean;
}

interface TextState {
  kind: "text";
  /** Where its text begins in the run of text that the client puts together. */
  base: number;
}

type PartState = CallState | TextState | { kind: "thought"; itemId: string | undefined };

/** What the client has of an answer that an earlier backend has begun. */
interface SentContent {
  /** Its responseId; "" where none was told. */
  id: string;
  /** The text since the last part that is none. */
  run: string;
}

/** @param sent - this one goes on behind it */
export function createStreamEncoder(context: AnswerContext, sent?: SentContent): StreamEncoder {
  return new ContentStreamEncoder(context, sent);
}

class ContentStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #showsThoughts: boolean;
  readonly #parts = new Map<number, PartState>();
  /** Calls that are not sent yet, in the order of the answer. */
  readonly #calls: CallState[] = [];
  readonly #grounding = new Grounding();
  /** Text since the last part that is none. */
  #run: string;
  /** The first text goes on in that of the earlier backend, from whose beginning its citations count. */
  #goesOn: boolean;
  #hasCall = false;
  #hasParts: boolean;
  #usage: Usage | undefined;
  #finish: Finish = { reason: "stop" };
  /** Behind the candidates of every event. */
  #tail: string;

  constructor(context: AnswerContext, sent: SentContent | undefined) {
    this.#context = context;
    this.#showsThoughts = context.request.reasoning.visible === true;
    this.#hasParts = sent !== undefined;
    this.#run = sent?.run ?? "";
    this.#goesOn = this.#run !== "";
    this.#tail = this.#identity(sent?.id ?? "");
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "start":
        if (!this.#hasParts) this.#tail = this.#identity(event.id);
        return "";
      case "part-start":
        return this.#startPart(event.index, event.part);
      case "delta":
        return this.#delta(event.index, event.text);
      case "seal":
        return this.#seal(event);
      case "citation": {
        const part = this.#parts.get(event.index);
        if (part?.kind === "text") this.#grounding.cite(event.citation, this.#run, part.base);
        return "";
      }
      case "part-end":
        return this.#endPart(event.index);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        this.#finish = event.finish;
        return "";
      case "failure":
        return failureEvent(event.failure);
      case "unknown":
        return eventText(event.value);
    }
  }

  end(): string {
    let text = "";
    for (const index of [...this.#parts.keys()]) text += this.#endPart(index);
    const blockReason = this.#hasParts ? undefined : blockReasonOf(this.#finish);
    const candidate = {
      content: { parts: [{ text: "" }], role: "model" },
      finishReason: encodeFinish(this.#finish),
      index: 0,
      ...compact({ groundingMetadata: this.#grounding.metadata }),
    };
    const usage = this.#usage === undefined ? {} : { usageMetadata: encodeUsage(this.#usage) };
    const told: JsonObject =
      blockReason === undefined ? { candidates: [candidate] } : { promptFeedback: { blockReason } };
    return `${text}data: ${JSON.stringify({ ...told, ...usage }).slice(0, -1)}${this.#tail}`;
  }

  #identity(id: string): string {
    const { model, nonce } = this.#context;
    const identity = JSON.stringify({ modelVersion: model, responseId: responseId(id, nonce) });
    return `,${identity.slice(1)}\n\n`;
  }

  #chunk(part: GeminiPart): string {
    this.#hasParts = true;
    return `data: {"candidates":[{"content":{"parts":[${JSON.stringify(part)}],"role":"model"},"index":0}]${this.#tail}`;
  }

  #startPart(index: number, part: PartStart): string {
    switch (part.type) {
      case "text":
      case "refusal":
        this.#parts.set(index, { kind: "text", base: this.#goesOn ? 0 : this.#run.length });
        this.#goesOn = false;
        return "";
      case "reasoning":
        this.#parts.set(index, { kind: "thought", itemId: part.itemId });
        return "";
      case "tool-call": {
        const call: CallState = { kind: "call", start: part, arguments: "", hasEnded: false };
        this.#parts.set(index, call);
        if (part.serverSide !== true) this.#calls.push(call);
        return "";
      }
      case "search-result":
        this.#grounding.found(part);
        return "";
      default: {
        const whole = wholePart(part);
        return whole === undefined ? "" : this.#whole(whole);
      }
    }
  }

  #whole(part: GeminiPart): string {
    this.#run = "";
    this.#goesOn = false;
    return this.#chunk(part);
  }

  #delta(index: number, text: string): string {
    const part = this.#parts.get(index);
    switch (part?.kind) {
      case "text":
        this.#run += text;
        return this.#chunk({ text });
      case "thought":
        return this.#showsThoughts ? this.#whole({ text, thought: true }) : "";
      case "call":
        part.arguments += text;
        return "";
      default:
        return "";
    }
  }

  /** The proof comes back with the thought, shown or not. */
  #seal({ index, origin, signature, sealed }: Extract<GenerationEvent, { type: "seal" }>): string {
    const part = this.#parts.get(index);
    if (part?.kind === "text") {
      return origin === "generate-content" && signature !== undefined
        ? this.#whole({ text: "", thoughtSignature: signature })
        : "";
    }
    if (part?.kind !== "thought") return "";
    const { itemId } = part;
    const thoughtSignature = signatureOfThought(compact({ origin, signature, sealed, itemId }));
    return thoughtSignature === undefined ? "" : this.#whole({ text: "", thought: true, thoughtSignature });
  }

  #endPart(index: number): string {
    const part = this.#parts.get(index);
    this.#parts.delete(index);
    if (part?.kind !== "call") return "";
    if (part.start.serverSide === true) {
      if (isSearch(part.start)) this.#grounding.query(part.arguments);
      return "";
    }
    part.hasEnded = true;
    return this.#sendCalls();
  }

  /** Calls that run side by side are sent in the order in which they began. */
  #sendCalls(): string {
    let text = "";
    while (this.#calls[0]?.hasEnded === true) {
      const { start, arguments: input } = this.#calls.shift() as CallState;
      text += this.#whole(callPart({ ...start, arguments: input }, !this.#hasCall));
      this.#hasCall = true;
    }
    return text;
  }
}
