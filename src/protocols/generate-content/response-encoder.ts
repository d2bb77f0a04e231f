// Neutral result -> body of a generateContent answer.

import { isSearch } from "../../generation/answer-losses.ts";
import type { ContentPart, ReasoningPart, TextPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { callPart, signatureOfThought, wholePart } from "./answer-parts.ts";
import { blockReasonOf, encodeFinish } from "./finish-reason.ts";
import { Grounding } from "./grounding.ts";
import { encodeUsage } from "./usage.ts";
import type { GeminiPart } from "./wire.ts";

export function encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject {
  const { finish, usage, id } = result;
  const writer = new PartWriter(context.request.reasoning.visible === true);
  for (const part of result.parts) writer.write(part);
  const { parts, grounding } = writer;
  const blockReason = parts.length === 0 ? blockReasonOf(finish) : undefined;
  const candidate = {
    content: { ...(parts.length > 0 && { parts }), role: "model" },
    finishReason: encodeFinish(finish),
    index: 0,
    ...compact({ groundingMetadata: grounding.metadata }),
  };
  return {
    ...(blockReason === undefined ? { candidates: [candidate] } : { promptFeedback: { blockReason } }),
    ...(usage !== undefined && { usageMetadata: encodeUsage(usage) }),
    modelVersion: context.model,
    responseId: responseId(id, context.nonce),
  };
}

export function responseId(id: string, nonce: string): string {
  return id === "" ? nonce : id;
}

class PartWriter {
  readonly parts: GeminiPart[] = [];
  readonly grounding = new Grounding();
  readonly #showsThoughts: boolean;
  #hasCall = false;

  constructor(showsThoughts: boolean) {
    this.#showsThoughts = showsThoughts;
  }

  write(part: ContentPart): void {
    switch (part.type) {
      case "text":
        this.#addText(part);
        return;
      case "refusal":
        this.#addText({ type: "text", text: part.text });
        return;
      case "reasoning":
        this.#addThought(part);
        return;
      case "tool-call":
        if (part.serverSide === true) {
          if (isSearch(part)) this.grounding.query(part.arguments);
          return;
        }
        this.parts.push(callPart(part, !this.#hasCall));
        this.#hasCall = true;
        return;
      case "search-result":
        this.grounding.found(part);
        return;
      default: {
        const whole = wholePart(part);
        if (whole !== undefined) this.parts.push(whole);
      }
    }
  }

  /** Texts that follow one another are one part: other formats begin a new one for each citation. */
  #addText({ text, signature, citations = [] }: TextPart): void {
    const last = this.parts.at(-1);
    const before = typeof last?.text === "string" && last.thought !== true && last.thoughtSignature === undefined;
    const base = before ? (last.text as string) : "";
    const whole = base + text;
    const place = before ? this.parts.length - 1 : this.parts.length;
    for (const citation of citations) this.grounding.cite(citation, whole, base.length, place);
    if (whole === "" && signature === undefined) return;
    this.parts[place] = { text: whole, ...(signature !== undefined && { thoughtSignature: signature }) };
  }

  /** The proof comes back with the thought, shown or not. */
  #addThought(part: ReasoningPart): void {
    const text = this.#showsThoughts ? part.text : "";
    const thoughtSignature = signatureOfThought(part);
    if (text === "" && thoughtSignature === undefined) return;
    this.parts.push({ text, thought: true, ...compact({ thoughtSignature }) });
  }
}
