// The items of a streamed answer, each a small state machine of its own: it is added, grows, ends, and is closed.
// An item that ended is closed only when the next one is added or the answer finishes, because only then it is known
// whether the answer was cut off at it.

import type { Citation, SearchResultPart, ToolCallPart } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { encodeCitation } from "./citations.ts";
import {
  type ClientCall,
  calledAs,
  customCallItem,
  customInput,
  functionCallItem,
  type ItemStatus,
  isCustomCall,
  messageItem,
  type OutputRules,
  reasoningItem,
  refusalContent,
  searchItem,
  summaryPart,
  textContent,
} from "./output-items.ts";
import { type EventSequence, eventHead, itemId } from "./sequence.ts";

/** Where items go: their events into the stream, themselves into the output of the final response. */
export class OutputList {
  readonly #items: (JsonObject | undefined)[] = [];
  readonly sequence: EventSequence;

  constructor(sequence: EventSequence) {
    this.sequence = sequence;
  }

  /** The index of the next item. */
  get nextIndex(): number {
    return this.#items.length;
  }

  add(item: JsonObject): string {
    const index = this.#items.push(undefined) - 1;
    return this.sequence.event("response.output_item.added", { output_index: index, item });
  }

  done(index: number, item: JsonObject): string {
    this.#items[index] = item;
    return this.sequence.event("response.output_item.done", { output_index: index, item });
  }

  /** The items that are done; at the end of a complete answer that is all of them. */
  get items(): JsonObject[] {
    return this.#items.filter((item) => item !== undefined);
  }
}

export interface OpenItem {
  readonly index: number;
  /** Whether more may come that belongs to it. */
  readonly isOpen: boolean;
  /** The events that complete its contents; "" when they were already written. */
  end(): string;
  close(status: ItemStatus): string;
}

export class MessageWriter implements OpenItem {
  readonly index: number;
  readonly #list: OutputList;
  readonly #id: string;
  readonly #contents: JsonObject[] = [];
  #content: { isRefusal: boolean; text: string; head: string; citations: Citation[] } | undefined;

  constructor(list: OutputList, id: string) {
    this.#list = list;
    this.#id = id;
    this.index = list.nextIndex;
  }

  get isOpen(): boolean {
    return this.#content !== undefined;
  }

  open(): string {
    return this.#list.add(messageItem(this.#id, [], "in_progress"));
  }

  openContent(type: "text" | "refusal"): string {
    const isRefusal = type === "refusal";
    const name = isRefusal ? "response.refusal.delta" : "response.output_text.delta";
    const fields = isRefusal ? this.#place() : { ...this.#place(), logprobs: [] };
    this.#content = { isRefusal, text: "", head: eventHead(name, fields, "delta"), citations: [] };
    return this.#list.sequence.event("response.content_part.added", {
      ...this.#place(),
      part: isRefusal ? refusalContent("") : textContent({ text: "" }),
    });
  }

  delta(text: string): string {
    if (this.#content === undefined) return "";
    this.#content.text += text;
    return this.#list.sequence.finishEvent(this.#content.head, JSON.stringify(text));
  }

  /** Shown when the text is whole: a citation without offsets speaks of all of it. */
  cite(citation: Citation): void {
    this.#content?.citations.push(citation);
  }

  end(): string {
    if (this.#content === undefined) return "";
    const { isRefusal, text, citations } = this.#content;
    const { sequence } = this.#list;
    const place = this.#place();
    const part = isRefusal ? refusalContent(text) : textContent({ text, citations });
    this.#content = undefined;
    this.#contents.push(part);
    const events = isRefusal
      ? sequence.event("response.refusal.done", { ...place, refusal: text })
      : this.#annotations(citations, text.length, place) +
        sequence.event("response.output_text.done", { ...place, text, logprobs: [] });
    return events + sequence.event("response.content_part.done", { ...place, part });
  }

  close(status: ItemStatus): string {
    return this.#list.done(this.index, messageItem(this.#id, this.#contents, status));
  }

  #annotations(citations: readonly Citation[], textLength: number, place: object): string {
    let events = "";
    let count = 0;
    for (const citation of citations) {
      const annotation = encodeCitation(citation, textLength);
      if (annotation === undefined) continue;
      const fields = { ...place, annotation_index: count++, annotation };
      events += this.#list.sequence.event("response.output_text.annotation.added", fields);
    }
    return events;
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.index, content_index: this.#contents.length };
  }
}

export class ReasoningWriter implements OpenItem {
  readonly index: number;
  readonly #list: OutputList;
  readonly #id: string;
  #head: string | undefined;
  #text = "";
  #isEnded = false;
  /** To be set before the item is closed. */
  token: string | undefined;

  constructor(list: OutputList, id: string) {
    this.#list = list;
    this.#id = id;
    this.index = list.nextIndex;
  }

  get isOpen(): boolean {
    return !this.#isEnded;
  }

  open(): string {
    return this.#list.add(reasoningItem(this.#id, "", undefined));
  }

  delta(text: string): string {
    let events = "";
    if (this.#head === undefined) {
      this.#head = eventHead("response.reasoning_summary_text.delta", this.#place(), "delta");
      const fields = { ...this.#place(), part: summaryPart("") };
      events = this.#list.sequence.event("response.reasoning_summary_part.added", fields);
    }
    this.#text += text;
    return events + this.#list.sequence.finishEvent(this.#head, JSON.stringify(text));
  }

  end(): string {
    if (this.#isEnded) return "";
    this.#isEnded = true;
    if (this.#head === undefined) return "";
    const { sequence } = this.#list;
    const place = this.#place();
    return (
      sequence.event("response.reasoning_summary_text.done", { ...place, text: this.#text }) +
      sequence.event("response.reasoning_summary_part.done", { ...place, part: summaryPart(this.#text) })
    );
  }

  close(): string {
    return this.#list.done(this.index, reasoningItem(this.#id, this.#text, this.token));
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.index, summary_index: 0 };
  }
}

type Call = Pick<ToolCallPart, "id" | "name" | "custom">;

export class CallWriter implements OpenItem {
  readonly index: number;
  readonly #list: OutputList;
  readonly #call: ClientCall;
  readonly #id: string;
  readonly #isCustom: boolean;
  /** The model writes a function's JSON, the client wants the text inside; it is known when the JSON is whole. */
  readonly #isWrapped: boolean;
  readonly #head: string;
  #text = "";
  #isEnded = false;

  constructor(list: OutputList, call: Call, part: number, rules: OutputRules) {
    this.#list = list;
    this.#call = calledAs(call, rules);
    this.index = list.nextIndex;
    this.#isCustom = isCustomCall(call, rules);
    this.#isWrapped = this.#isCustom && call.custom !== true;
    this.#id = itemId(this.#isCustom ? "ctc" : "fc", rules.context, part);
    this.#head = eventHead(`${this.#eventName()}.delta`, this.#place(), "delta");
  }

  get isOpen(): boolean {
    return !this.#isEnded;
  }

  open(): string {
    return this.#list.add(this.#item("", "in_progress"));
  }

  delta(text: string): string {
    this.#text += text;
    return this.#isWrapped ? "" : this.#deltaEvent(text);
  }

  end(): string {
    if (this.#isEnded) return "";
    this.#isEnded = true;
    let events = "";
    if (this.#isWrapped) {
      this.#text = customInput(this.#text);
      if (this.#text !== "") events = this.#deltaEvent(this.#text);
    } else if (this.#text === "" && !this.#isCustom) {
      this.#text = "{}";
      events = this.#deltaEvent(this.#text);
    }
    const whole = this.#isCustom ? { input: this.#text } : { name: this.#call.name, arguments: this.#text };
    return events + this.#list.sequence.event(`${this.#eventName()}.done`, { ...this.#place(), ...whole });
  }

  close(status: ItemStatus): string {
    return this.#list.done(this.index, this.#item(this.#text, status));
  }

  #deltaEvent(text: string): string {
    return this.#list.sequence.finishEvent(this.#head, JSON.stringify(text));
  }

  #item(text: string, status: ItemStatus): JsonObject {
    if (this.#isCustom) return customCallItem(this.#id, this.#call, text);
    return functionCallItem(this.#id, this.#call, text, status);
  }

  #eventName(): string {
    return this.#isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.index };
  }
}

/** A web search that the backend or the gateway makes; it ends with its results. */
export class SearchWriter implements OpenItem {
  readonly index: number;
  readonly #list: OutputList;
  readonly #id: string;
  readonly #rules: OutputRules;
  #args = "";
  #result: SearchResultPart | undefined;
  #isEnded = false;

  constructor(list: OutputList, part: number, rules: OutputRules) {
    this.#list = list;
    this.#rules = rules;
    this.#id = itemId("ws", rules.context, part);
    this.index = list.nextIndex;
  }

  get isOpen(): boolean {
    return !this.#isEnded;
  }

  open(): string {
    const item = { ...searchItem(this.#id, "", undefined, { showsSources: false }), status: "in_progress" };
    return this.#list.add(item) + this.#event("in_progress") + this.#event("searching");
  }

  delta(text: string): string {
    this.#args += text;
    return "";
  }

  resolve(result: SearchResultPart): string {
    this.#result = result;
    return this.end();
  }

  end(): string {
    if (this.#isEnded) return "";
    this.#isEnded = true;
    return this.#event("completed");
  }

  close(): string {
    return this.#list.done(this.index, searchItem(this.#id, this.#args, this.#result, this.#rules));
  }

  #event(state: string): string {
    const fields = { item_id: this.#id, output_index: this.index };
    return this.#list.sequence.event(`response.web_search_call.${state}`, fields);
  }
}
