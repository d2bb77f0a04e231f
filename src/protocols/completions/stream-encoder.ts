// Neutral events -> the chunks of a text completion stream: texts, the finish reason, the usage if asked for, [DONE].

import type { GenerationEvent } from "../../generation/events.ts";
import type { Usage } from "../../generation/usage.ts";
import { isObject } from "../../lib/json.ts";
import { encodeUsage } from "../chunk-usage.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { encodeFailure } from "../standard-error.ts";
import { answerId, encodeFinishReason } from "./response-encoder.ts";

export class CompletionStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #usageMember: string;
  /** What every chunk begins with, up to its choices. */
  #head = "";
  /** Index of the part whose text is sent. */
  #textPart: number | undefined;
  #usage: Usage | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
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
        return event.index === this.#textPart ? this.#chunk(event.text, "null") : "";
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        return this.#chunk("", JSON.stringify(encodeFinishReason(event.finish)));
      case "failure":
        return encodeFailure(event.failure);
      default:
        return "";
    }
  }

  end(): string {
    const isWanted = this.#usageMember !== "" && this.#usage !== undefined;
    const usage = isWanted ? `${this.#head}[],"usage":${JSON.stringify(encodeUsage(this.#usage as Usage))}}\n\n` : "";
    return `${usage}data: [DONE]\n\n`;
  }

  #encodeHead(id: string, createdAt: number): string {
    const head = JSON.stringify({
      id: answerId(id, this.#context),
      object: "text_completion",
      created: createdAt || this.#context.createdAt,
      model: this.#context.model,
    });
    return `data: ${head.slice(0, -1)},"choices":`;
  }

  #chunk(text: string, finishReason: string): string {
    const choice = `{"text":${JSON.stringify(text)},"index":0,"logprobs":null,"finish_reason":${finishReason}}`;
    return `${this.#head}[${choice}]${this.#usageMember}}\n\n`;
  }
}
