// What of a long conversation is sent, so that it fits into the model's window: the oldest tool results become short first;
// if that is not enough, the oldest exchanges are left out, then the oldest steps of the exchange that goes on, and at last
// the newest results become shorter. The conversation itself stays whole.
//
// The plan is made by going through the conversation from its beginning: it says what was sent at each of its moments, and
// a message more changes it only when the limit is reached again. Then a good part is freed at once. So the beginning of
// what is sent stays the same over many calls of the model, which prompt caches live on.

import type { Message } from "../../generation/content.ts";
import { isResults, OLD_RESULT_LENGTH, withOldResults, withResultsOf } from "./shortened-results.ts";
import { tokensOfMessage } from "./token-estimate.ts";

export interface ContextPlan {
  /** Estimated tokens of what is sent. */
  tokens: number;
  /** Results in messages before this index are short. */
  shortBefore: number;
  /** Where the first exchange begins that is sent. */
  start: number;
  /** Where the first exchange goes on behind its prompt. */
  resume: number;
  /** By index: messages whose results had to be short when they were new, and how many UTF-16 code units each of them has. */
  cut: ReadonlyMap<number, number>;
}

/** How much is to be left when something has to go, and how much may be left where short results are enough. */
const KEPT_SHARE = 0.6;
const MOST_SHARE = 0.8;
/** UTF-16 code units; a result in fewer would say nothing. */
const SHORTEST_RESULT = 200;

/** Sizes of messages, which never change. */
export class MessageSizes {
  readonly #full = new WeakMap<Message, number>();
  readonly #short = new WeakMap<Message, number>();

  full(message: Message): number {
    return remembered(this.#full, message, tokensOfMessage);
  }

  short(message: Message): number {
    return remembered(this.#short, message, (each) => tokensOfMessage(withOldResults(each)));
  }
}

/** @param limit - estimated tokens that the messages may have together */
export function planContext(messages: readonly Message[], limit: number, sizes: MessageSizes): ContextPlan {
  const planner = new Planner(messages, limit, sizes);
  for (const index of messages.keys()) planner.add(index);
  return planner.plan;
}

class Planner {
  readonly #messages: readonly Message[];
  readonly #limit: number;
  readonly #sizes: MessageSizes;
  readonly #cut = new Map<number, number>();
  #tokens = 0;
  #shortBefore = 0;
  #start = 0;
  #resume = 1;

  constructor(messages: readonly Message[], limit: number, sizes: MessageSizes) {
    this.#messages = messages;
    this.#limit = limit;
    this.#sizes = sizes;
  }

  get plan(): ContextPlan {
    return {
      tokens: this.#tokens,
      shortBefore: this.#shortBefore,
      start: this.#start,
      resume: this.#resume,
      cut: this.#cut,
    };
  }

  add(index: number): void {
    this.#tokens += this.#sizes.full(this.#at(index));
    // A model is asked only behind words of the user or results.
    if (this.#at(index).role !== "user" || this.#tokens <= this.#limit) return;
    const goal = this.#limit * KEPT_SHARE;
    this.#shortenOldResults(index, goal);
    const most = this.#limit * MOST_SHARE;
    if (this.#tokens > most) this.#leaveOutExchanges(index, goal);
    if (this.#tokens > most) this.#leaveOutSteps(index, goal);
    if (this.#tokens > this.#limit) this.#shortenNewest(index);
  }

  #shortenOldResults(newest: number, goal: number): void {
    while (this.#tokens > goal && this.#shortBefore < newest) {
      const index = this.#shortBefore++;
      if (this.#isSent(index)) this.#tokens += this.#size(index, index + 1) - this.#size(index, index);
    }
  }

  #leaveOutExchanges(newest: number, goal: number): void {
    while (this.#tokens > goal) {
      const next = this.#nextWhere(this.#start + 1, newest, (index) => this.#isPrompt(index));
      if (next === undefined) return;
      this.#leaveOut(this.#start, next);
      this.#start = next;
      this.#resume = next + 1;
    }
  }

  /** A step is what the model said and the results of its calls; the last one always stays. */
  #leaveOutSteps(newest: number, goal: number): void {
    while (this.#tokens > goal) {
      const next = this.#nextWhere(this.#resume + 1, newest - 1, (index) => this.#beginsStep(index));
      if (next === undefined) return;
      this.#leaveOut(this.#resume, next);
      this.#resume = next;
    }
  }

  #shortenNewest(newest: number): void {
    const message = this.#at(newest);
    if (!isResults(message)) return;
    const others = this.#tokens - this.#sizes.full(message);
    const count = message.parts.length;
    // Of letters that take several bytes fewer fit: counted by the three that most of those have.
    let length = Math.max(SHORTEST_RESULT, Math.floor(((this.#limit - others) * 4) / count));
    let size = tokensOfMessage(withResultsOf(message, length));
    while (others + size > this.#limit && length > SHORTEST_RESULT) {
      length = Math.max(SHORTEST_RESULT, Math.floor(length * 0.7));
      size = tokensOfMessage(withResultsOf(message, length));
    }
    this.#cut.set(newest, length);
    this.#tokens = others + size;
  }

  #leaveOut(from: number, to: number): void {
    for (let index = from; index < to; index++) {
      if (this.#isSent(index)) this.#tokens -= this.#size(index, this.#shortBefore);
    }
  }

  #size(index: number, shortBefore: number): number {
    const message = this.#at(index);
    const cut = this.#cut.get(index);
    if (cut !== undefined) return tokensOfMessage(inForm(message, index, { shortBefore, cut: this.#cut }));
    return index < shortBefore ? this.#sizes.short(message) : this.#sizes.full(message);
  }

  #isSent(index: number): boolean {
    return isSent(index, { start: this.#start, resume: this.#resume });
  }

  #nextWhere(from: number, to: number, is: (index: number) => boolean): number | undefined {
    for (let index = from; index <= to; index++) if (is(index)) return index;
    return undefined;
  }

  #isPrompt(index: number): boolean {
    return isPrompt(this.#at(index));
  }

  #beginsStep(index: number): boolean {
    return this.#at(index).role === "assistant" && this.#messages[index - 1]?.role === "user";
  }

  #at(index: number): Message {
    return this.#messages[index] as Message;
  }
}

function inForm(
  message: Message,
  index: number,
  { shortBefore, cut }: Pick<ContextPlan, "shortBefore" | "cut">,
): Message {
  const old = index < shortBefore ? withOldResults(message) : message;
  const length = cut.get(index);
  return length === undefined || (index < shortBefore && length > OLD_RESULT_LENGTH)
    ? old
    : withResultsOf(message, length);
}

function isSent(index: number, { start, resume }: Pick<ContextPlan, "start" | "resume">): boolean {
  return index === start || index >= resume;
}

/** True for the first message of an exchange. */
function isPrompt(message: Message): boolean {
  return message.role === "user" && !isResults(message);
}

const LEFT_OUT = "[Earlier parts of this conversation were left out, because it has become too long.]";

/** The messages as the plan has them. */
export function plannedMessages(messages: readonly Message[], plan: ContextPlan): Message[] {
  const planned: Message[] = [];
  for (const [index, message] of messages.entries()) {
    if (isSent(index, plan)) planned.push(inForm(message, index, plan));
  }
  const [first, ...others] = planned;
  if (first === undefined || (plan.start === 0 && plan.resume === 1)) return planned;
  return [{ ...first, parts: [{ type: "text", text: LEFT_OUT }, ...first.parts] }, ...others];
}

function remembered<Key extends object>(known: WeakMap<Key, number>, key: Key, make: (key: Key) => number): number {
  let value = known.get(key);
  if (value === undefined) {
    value = make(key);
    known.set(key, value);
  }
  return value;
}
