// The output of a joined answer: events are numbered, noted and written, and whatever is open is closed with all its text.

import type { JsonObject } from "../../lib/json.ts";
import { note, type OpenMessage, type OpenPart, type OpenReasoning, type SeenAnswer, wholePart } from "./join-state.ts";
import { isOwnItemId } from "./sequence.ts";
import { objectOf } from "./wire.ts";

export class JoinedOutput {
  /** What the client has seen, these events included. */
  readonly answer: SeenAnswer;
  #text = "";

  constructor(answer: SeenAnswer) {
    this.answer = answer;
  }

  /** The text of the events since the last take(). */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  send(type: string, event: JsonObject): void {
    event.sequence_number = this.answer.nextSequence;
    note(this.answer, type, event);
    this.write(type, event);
  }

  write(type: string, event: JsonObject): void {
    this.#text += `${type === "" ? "" : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`;
  }

  writeData(data: string): void {
    this.#text += `data: ${data}\n\n`;
  }

  /** The gateway makes the ids of both streams from the same request, so they can meet. */
  freeId(id: string | undefined): string | undefined {
    const { itemIds } = this.answer;
    if (id === undefined || !itemIds.has(id)) return id;
    if (isOwnItemId(id)) {
      const part = Number.parseInt(id.slice(-2), 16);
      for (let number = part + 1; number < 256; number++) {
        const other = id.slice(0, -2) + number.toString(16).padStart(2, "0");
        if (!itemIds.has(other)) return other;
      }
    }
    for (let number = 1; ; number++) {
      const other = `${id}_${number}`;
      if (!itemIds.has(other)) return other;
    }
  }

  /** The message that takes the text: the last one that is open. */
  get message(): OpenMessage | undefined {
    return this.answer.open.findLast((item) => item.type === "message");
  }

  /** Opens a message where none is open. `added` is the event that announces one. */
  openMessage(given: string | undefined, added: JsonObject | undefined): OpenMessage | undefined {
    if (this.message === undefined) {
      const id = this.freeId(given);
      const usual = { ...(id !== undefined && { id }), type: "message", role: "assistant", status: "in_progress" };
      const type = "response.output_item.added";
      const wire = { ...usual, ...objectOf(added?.item), ...(id !== undefined && { id }), content: [] };
      this.send(type, { type, ...added, output_index: this.answer.nextIndex, item: wire });
    }
    return this.message;
  }

  /** Opens a text part where none is open. */
  openPart(message: OpenMessage, added: JsonObject | undefined): void {
    if (message.part !== undefined) {
      if (!message.part.isTextDone) return;
      this.closePart(message, message.part);
    }
    const type = "response.content_part.added";
    const usual = { type: "output_text", annotations: [], logprobs: [] };
    const wire = { ...usual, ...objectOf(added?.part), text: "" };
    this.send(type, { type, ...added, ...placeOf(message), content_index: message.nextContent, part: wire });
  }

  sendInPart(type: string, message: OpenMessage, part: OpenPart, event: JsonObject): void {
    this.send(type, { type, ...event, ...placeOf(message), content_index: part.index });
  }

  closePart(message: OpenMessage, open: OpenPart, event: JsonObject = {}): void {
    if (!open.isTextDone) {
      const done = { text: open.text, logprobs: open.logprobs };
      this.sendInPart("response.output_text.done", message, open, done);
    }
    const part = wholePart(open, objectOf(event.part));
    this.sendInPart("response.content_part.done", message, open, { ...event, part });
  }

  closeMessage(status: string, told: JsonObject = {}, message = this.message): void {
    if (message === undefined) return;
    if (message.part !== undefined) this.closePart(message, message.part);
    const content = [...message.contents].sort(([a], [b]) => a - b).map(([, part]) => part);
    const id = message.id !== undefined && { id: message.id };
    const item = { ...message.item, ...told, ...id, status, content };
    const type = "response.output_item.done";
    this.send(type, { type, output_index: message.index, item });
  }

  /** What the first backend left open and nobody goes on with: reasoning, and messages before the last one. */
  closeLeftovers(): void {
    const last = this.message;
    for (const item of this.answer.open) {
      if (item.type === "reasoning") this.#closeReasoning(item);
      else if (item.type === "message" && item !== last) this.closeMessage("completed", {}, item);
    }
  }

  #closeReasoning(item: OpenReasoning): void {
    const place = placeOf(item);
    const send = (type: string, fields: JsonObject) => this.send(type, { type, ...place, ...fields });
    for (const [index, { text, isTextDone, isDone, isAdded }] of item.summary) {
      const at = { summary_index: index };
      if (!isTextDone) send("response.reasoning_summary_text.done", { ...at, text });
      const part = { type: "summary_text", text };
      if (isAdded && !isDone) send("response.reasoning_summary_part.done", { ...at, part });
    }
    for (const [index, { text, isTextDone, isDone, isAdded }] of item.content) {
      const at = { content_index: index };
      if (!isTextDone) send("response.reasoning_text.done", { ...at, text });
      if (isAdded && !isDone) send("response.content_part.done", { ...at, part: { type: "reasoning_text", text } });
    }
    const summary = [...item.summary.values()].map(({ text }) => ({ type: "summary_text", text }));
    const content = [...item.content.values()].map(({ text }) => ({ type: "reasoning_text", text }));
    const wire = {
      ...item.item,
      ...(item.item.status !== undefined && { status: "incomplete" }),
      encrypted_content: undefined, // of thoughts that were cut off
      summary,
      ...(content.length > 0 && { content }),
    };
    const type = "response.output_item.done";
    this.send(type, { type, output_index: item.index, item: wire });
  }

  /** In the order of the output. */
  finishedItems(): JsonObject[] {
    return [...this.answer.finished].sort(([a], [b]) => a - b).map(([, item]) => item);
  }
}

export function placeOf({ id, index }: { id: string | undefined; index: number }): JsonObject {
  return { ...(id !== undefined && { item_id: id }), output_index: index };
}
