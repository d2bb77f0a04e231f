// Neutral events -> the chunks of a text completion stream: texts, the finish reason, the usage if asked for, [DONE].

import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { ChunkFrame, membersBehind } from "../chunks.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { encodeFailure } from "../standard-error.ts";
import { answerId, encodeFinishReason } from "./response-encoder.ts";

export class CompletionStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #frame: ChunkFrame;
  readonly #sent: JsonObject | undefined;
  /** Index of the part whose text is sent. */
  #textPart: number | undefined;

  /** @param sent - id, time and model of an answer which this one goes on with */
  constructor(context: AnswerContext, sent?: JsonObject) {
    this.#context = context;
    this.#sent = sent;
    this.#frame = new ChunkFrame(context, sent);
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "start":
        this.#frame.start("text_completion", answerId(event.id, this.#context), event.createdAt);
        return "";
      case "part-start":
        if (event.part.type === "text" || event.part.type === "refusal") this.#textPart = event.index;
        return "";
      case "delta":
        return event.index === this.#textPart ? this.#chunk(event.text, "null", event.own) : "";
      case "usage":
        this.#frame.count(event);
        return "";
      case "finish":
        return this.#chunk("", JSON.stringify(encodeFinishReason(event.finish)), event.own);
      case "failure":
        return encodeFailure(event.failure);
      case "unknown":
        return `data: ${JSON.stringify({ ...event.value, ...this.#sent })}\n\n`;
      default:
        return "";
    }
  }

  end(): string {
    return this.#frame.end();
  }

  #chunk(text: string, finishReason: string, own: JsonObject | undefined): string {
    const logprobs = JSON.stringify(own?.logprobs ?? null);
    const choice = `"text":${JSON.stringify(text)},"index":0,"logprobs":${logprobs},"finish_reason":${finishReason}`;
    return this.#frame.chunk(`{${choice}${membersBehind(own?.choice)}}`, own);
  }
}
