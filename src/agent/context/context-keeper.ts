// The conversation of a turn as its model is sent it: what fits into the window, learned from what models say of its size.

import type { Message } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { tokensOfText } from "../../generation/token-facts.ts";
import type { Usage } from "../../generation/usage.ts";
import type { ContextMeasure, ModelAccess } from "../agent.ts";
import { type ContextPlan, MessageSizes, planContext, plannedMessages } from "./context-plan.ts";

interface ContextKeeperParts {
  model: Pick<ModelAccess, "contextWindow">;
  measure: ContextMeasure;
  /** Said once. */
  notice(text: string): void;
}

/** Part of the window that is kept free for the answer where no limit of its length is known. */
const USUAL_ANSWER_TOKENS = 8_192;
/** Answers take at most this part of the window, and the conversation gets at least as much. */
const SHARE = 0.25;
/** The estimate is corrected in steps: each one changes what is sent, which prompt caches do not like. */
const RATIOS = [1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3, 4] as const;
/** Of a conversation shorter than this, what surrounds it is too much of the count. */
const MEASURED_FROM_TOKENS = 2_000;
/** How much of a conversation that was too long is sent again: by how much it was too long is not known. */
const RETRY_SHARE = 0.5;
const LEAST_TOKENS = 1_000;

/** The parts of a request that take room beside the messages. */
type WindowFrame = Pick<GenerationRequest, "model" | "system" | "tools" | "maxOutputTokens">;

export class ContextKeeper {
  readonly #parts: ContextKeeperParts;
  readonly #sizes = new MessageSizes();
  /** Undefined until the first plan; these two keep notices from being repeated. */
  #hasShortened: boolean | undefined;
  #hasLeftOut = false;
  #last: { plan: ContextPlan; frame: number } | undefined;

  constructor(parts: ContextKeeperParts) {
    this.#parts = parts;
  }

  /**
   * @param earlier - how many of the messages are of earlier turns: what had to be left out then was said then
   */
  fit(messages: readonly Message[], frame: WindowFrame, earlier: number): Message[] {
    const frameTokens = tokensOfFrame(frame);
    const limit = this.#limit(frame, frameTokens);
    const plan = planContext(messages, limit, this.#sizes);
    this.#last = { plan, frame: frameTokens };
    if (this.#hasShortened === undefined) this.#noteEarlier(messages.slice(0, earlier), limit);
    this.#tellChanges(plan);
    return plannedMessages(messages, plan);
  }

  /** Corrects the estimate by the tokens that the model counted for the last conversation sent. */
  learn({ input }: Usage): void {
    if (this.#last === undefined || input.total < MEASURED_FROM_TOKENS) return;
    const { measure } = this.#parts;
    const ratio = input.total / (this.#last.plan.tokens + this.#last.frame);
    if (ratio > measure.ratio)
      measure.ratio = RATIOS.find((step) => step >= ratio) ?? (RATIOS[RATIOS.length - 1] as number);
  }

  /** The model has refused the conversation that was sent last as too long. */
  learnRefusal(model: string): void {
    const { measure } = this.#parts;
    const sent = this.#last?.plan.tokens ?? 0;
    measure.refused = { model, tokens: Math.max(LEAST_TOKENS, Math.floor(sent * RETRY_SHARE)) };
  }

  #limit({ model, maxOutputTokens }: WindowFrame, frameTokens: number): number {
    const { measure } = this.#parts;
    const window = this.#parts.model.contextWindow(model) ?? Number.POSITIVE_INFINITY;
    const answer = Math.min(maxOutputTokens ?? USUAL_ANSWER_TOKENS, window * SHARE);
    const room = Math.max((window - answer) / measure.ratio - frameTokens, (window * SHARE) / measure.ratio);
    const refused = measure.refused?.model === model ? measure.refused.tokens : Number.POSITIVE_INFINITY;
    return Math.min(room, refused);
  }

  #noteEarlier(messages: readonly Message[], limit: number): void {
    const { shortBefore, start, resume } = planContext(messages, limit, this.#sizes);
    this.#hasShortened = shortBefore > 0;
    this.#hasLeftOut = start > 0 || resume > 1;
  }

  #tellChanges({ shortBefore, start, resume, cut }: ContextPlan): void {
    const { notice } = this.#parts;
    const isShortened = shortBefore > 0 || cut.size > 0;
    const isLeftOut = start > 0 || resume > 1;
    if (isLeftOut && !this.#hasLeftOut) {
      notice("The conversation has become too long for the model: its oldest parts are not sent to it any more.");
    } else if (isShortened && this.#hasShortened === false) {
      notice("The conversation comes near the limit of the model: older tool results are sent to it in short form.");
    }
    this.#hasLeftOut ||= isLeftOut;
    this.#hasShortened ||= isShortened;
  }
}

function tokensOfFrame({ system, tools }: WindowFrame): number {
  const instructions = system.reduce((sum, { text }) => sum + tokensOfText(text), 0);
  return instructions + (tools.length === 0 ? 0 : tokensOfText(JSON.stringify(tools)));
}
