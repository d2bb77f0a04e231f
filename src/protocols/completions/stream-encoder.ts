// Neutral events -> the chunks of a text completion stream: texts, the finish reason, the usage if asked for, [DONE].

import type { GenerationEvent } from "../../generation/events.ts";
import type { Usage } from "../../generation/usage.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { encodeUsage } from "../chunk-usage.ts";
import { withOwn } from "../chunks.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { encodeFailure } from "../standard-error.ts";
import { recounted } from "../stream-join.ts";
import { answerId, encodeFinishReason } from "./response-encoder.ts";

export class CompletionStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #usageMember: string;
  /** What every chunk begins with, up to its choices. */
  #head = "";
  /** Index of the part whose text is sent. */
  #textPart: number | undefined;
  #usage: Usage | undefined;

  readonly #sent: JsonObject | undefined;
  #ownUsage: JsonObject | undefined;

  /** @param sent - id, time and model of an answer which this one goes on with */
  constructor(context: AnswerContext, sent?: JsonObject) {
    this.#context = context;
    this.#sent = sent;
    const { stream_options } = context.request.origin.body;
    const wantsUsage = isObject(stream_options) && stream_options.include_usage === true;
    this.#usageMember = wantsUsage ? ',"usage":null' : "";
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "start":
        this.#head = this.#encodeHead(event.id, event.createdAt);
        return "";
      case "part-start":
        if (event.part.type === "text" || event.part.type === "refusal") this.#textPart = event.index;
        return "";
      case "delta":
        return event.index === this.#textPart ? withOwn(this.#chunk(event.text, "null"), event.own) : "";
      case "usage":
        this.#usage = event.usage;
        this.#ownUsage = event.own;
        return "";
      case "finish":
        return withOwn(this.#chunk("", JSON.stringify(encodeFinishReason(event.finish))), event.own);
      case "failure":
        return encodeFailure(event.failure);
      case "unknown":
        return `data: ${JSON.stringify({ ...event.value, ...this.#sent })}\n\n`;
      default:
        return "";
    }
  }

  end(): string {
    const counts = this.#counts;
    const usage = counts === undefined ? "" : `${this.#head}[],"usage":${JSON.stringify(counts)}}\n\n`;
    return `${usage}data: [DONE]\n\n`;
  }

  /** Undefined where the client does not get them, or there are none. */
  get #counts(): JsonObject | undefined {
    if (this.#usage === undefined) return undefined;
    const usage = encodeUsage(this.#usage);
    if (this.#ownUsage !== undefined) return recounted(this.#ownUsage, usage, ["prompt_tokens", "completion_tokens"]);
    return this.#usageMember !== "" ? usage : undefined;
  }

  #encodeHead(id: string, createdAt: number): string {
    const head = JSON.stringify({
      id: answerId(id, this.#context),
      object: "text_completion",
      created: createdAt || this.#context.createdAt,
      model: this.#context.model,
      ...this.#sent,
    });
    return `data: ${head.slice(0, -1)},"choices":`;
  }

  #chunk(text: string, finishReason: string): string {
    const choice = `{"text":${JSON.stringify(text)},"index":0,"logprobs":null,"finish_reason":${finishReason}}`;
    return `${this.#head}[${choice}]${this.#usageMember}}\n\n`;
  }
}
