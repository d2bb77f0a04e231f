// Neutral events -> the objects of an Ollama client's stream: pieces of text and thought as they come, each call of a tool
// whole, and a last one with the reason, the counts and the durations.

import type { GenerationEvent } from "../../generation/events.ts";
import type { Finish } from "../../generation/result.ts";
import type { Usage } from "../../generation/usage.ts";
import { parseObject } from "../../lib/json.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { inputOf } from "../tool-input.ts";
import { errorEvent } from "./errors.ts";
import { type Form, formOf } from "./form.ts";
import { createdAt, encodeEnd, showsThoughts } from "./response-encoder.ts";

type StreamPart = { type: "text" } | { type: "thought" } | StreamedCall;

/** Arguments are sent whole, because they are an object. */
interface StreamedCall {
  type: "call";
  id: string;
  name: string;
  isCustom: boolean;
  text: string;
  hasEnded: boolean;
}

export class OllamaStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #form: Form;
  readonly #isRest: boolean;
  readonly #showsThoughts: boolean;
  readonly #model: string;
  readonly #parts = new Map<number, StreamPart>();
  /** Those that were not sent yet, in the order of the answer: backends may end a call before one that came first. */
  readonly #calls: StreamedCall[] = [];
  #sentCalls = 0;
  #firstMs: number | undefined;
  #usage: Usage | undefined;
  #finish: Finish = { reason: "stop" };
  #second = Number.NaN;
  #createdAt = "";

  /** @param rest - the form of an answer that this one goes on with */
  constructor(context: AnswerContext, rest?: Form) {
    this.#context = context;
    this.#form = rest ?? formOf(context.request.origin.body);
    this.#isRest = rest !== undefined;
    this.#showsThoughts = showsThoughts(context);
    this.#model = JSON.stringify(context.model);
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "part-start":
        return this.#startPart(event);
      case "delta":
        return this.#encodeDelta(event.index, event.text);
      case "part-end":
        return this.#endPart(event.index);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        this.#finish = event.finish;
        return "";
      case "failure":
        return errorEvent(event.failure);
      default:
        return "";
    }
  }

  end(): string {
    // Of an answer that two backends made, the time of its first piece is not known here.
    const firstMs = this.#isRest ? undefined : this.#firstMs;
    const end = encodeEnd(this.#finish, this.#usage, { firstMs, totalMs: this.#context.elapsedMs?.() });
    return this.#object(this.#said("", ""), `true,${JSON.stringify(end).slice(1, -1)}`);
  }

  #startPart({ index, part }: Extract<GenerationEvent, { type: "part-start" }>): string {
    if (part.type === "text" || part.type === "refusal") this.#parts.set(index, { type: "text" });
    else if (part.type === "reasoning" && this.#showsThoughts) this.#parts.set(index, { type: "thought" });
    else if (part.type === "tool-call" && part.serverSide !== true && this.#form === "chat") {
      const { id, name, custom } = part;
      const call: StreamedCall = { type: "call", id, name, isCustom: custom === true, text: "", hasEnded: false };
      this.#parts.set(index, call);
      this.#calls.push(call);
    }
    return "";
  }

  #encodeDelta(index: number, text: string): string {
    this.#firstMs ??= this.#context.elapsedMs?.();
    const part = this.#parts.get(index);
    if (part === undefined) return "";
    if (part.type === "text") return this.#object(this.#said(text, ""), "false");
    if (part.type === "thought") return this.#object(this.#said("", `,"thinking":${JSON.stringify(text)}`), "false");
    part.text += text;
    return "";
  }

  #endPart(index: number): string {
    const part = this.#parts.get(index);
    this.#parts.delete(index);
    if (part?.type !== "call") return "";
    part.hasEnded = true;
    let text = "";
    while (this.#calls[0]?.hasEnded) text += this.#encodeCall(this.#calls.shift() as StreamedCall);
    return text;
  }

  #encodeCall(call: StreamedCall): string {
    const { id, name } = call;
    const called = `"index":${this.#sentCalls++},"name":${JSON.stringify(name)},"arguments":${argumentsOf(call)}`;
    const calls = `,"tool_calls":[{"id":${JSON.stringify(id)},"function":{${called}}}]`;
    return this.#object(this.#said("", calls), "false");
  }

  /** @param more - members behind the text, with a comma in front */
  #said(text: string, more: string): string {
    const written = JSON.stringify(text);
    return this.#form === "chat"
      ? `"message":{"role":"assistant","content":${written}${more}}`
      : `"response":${written}${more}`;
  }

  #object(said: string, done: string): string {
    const second = this.#context.now?.() ?? this.#context.createdAt;
    if (second !== this.#second) {
      this.#second = second;
      this.#createdAt = createdAt(this.#context);
    }
    return `data: {"model":${this.#model},"created_at":"${this.#createdAt}",${said},"done":${done}}\n\n`;
  }
}

/** As the model wrote them, so that numbers keep their digits; line breaks between values would end the line. */
function argumentsOf({ id, name, isCustom, text }: StreamedCall): string {
  if (!isCustom && parseObject(text) !== undefined) return text.replaceAll(/[\r\n]+/g, " ");
  return JSON.stringify(inputOf({ type: "tool-call", id, name, arguments: text, custom: isCustom }));
}
