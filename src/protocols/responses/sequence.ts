// The ids of a Responses answer and its items, and the counting of its events.

import type { AnswerContext } from "../protocol.ts";

type ItemPrefix = "msg" | "rs" | "fc" | "ctc" | "ws" | "ig" | "item";

/** The backend's own id where it has this format's form, since only that backend keeps the answer then. */
export function responseId(id: string, { nonce }: AnswerContext): string {
  return id.startsWith("resp_") ? id : `resp_${nonce}`;
}

/**
 * Made from the place of the item's first part among the parts of the answer, not from its place in the output: stored
 * items then keep their ids even if they hold reasoning that the client did not get.
 */
export function itemId(prefix: ItemPrefix, { nonce }: AnswerContext, part: number): string {
  return `${prefix}_${nonce}${part.toString(16).padStart(2, "0")}`;
}

/** The form that itemId() gives; the ids of known services are longer. */
const OWN_ITEM_ID = /^[a-z]+_[0-9a-f]{34}$/;

export function isOwnItemId(id: string): boolean {
  return OWN_ITEM_ID.test(id);
}

/** The text of events with consecutive sequence numbers. */
export class EventSequence {
  #next: number;

  /** @param next - the number of the first of them */
  constructor(next = 0) {
    this.#next = next;
  }

  event(type: string, fields: object): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#next++, ...fields })}\n\n`;
  }

  /** An event that begins as eventHead() says and ends with the JSON of its last member. */
  finishEvent(head: string, json: string): string {
    return `${head}${json},"sequence_number":${this.#next++}}\n\n`;
  }
}

/** The constant beginning of events that differ in one member only. */
export function eventHead(type: string, fields: object, member: string): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields }).slice(0, -1)},"${member}":`;
}
