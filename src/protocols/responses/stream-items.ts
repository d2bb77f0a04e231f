// The items of a streamed answer, each a small state machine of its own: it is added, grows, ends, and is closed.
// An item that ended is closed only when the next one is added or the answer finishes, because only then it is known
// whether the answer was cut off at it.

import type { Citation, SearchResultPart, ToolCallPart } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { encodeCitation } from "./citations.ts";
import {
  type ClientCall,
  calledAs,
  callItemId,
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
import { openPart, type SentItem } from "./sent-output.ts";
import { type EventSequence, eventHead, itemId } from "./sequence.ts";

/** Where items go: their events into the stream, themselves into the output of the final response. */
export class OutputList {
  readonly #items: (JsonObject | undefined)[];
  readonly sequence: EventSequence;

  /** @param items - those that were sent; undefined where one is open */
  constructor(sequence: EventSequence, items: (JsonObject | undefined)[] = []) {
    this.sequence = sequence;
    this.#items = items;
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

interface MessageContent {
  isRefusal: boolean;
  text: string;
  head: string;
  citations: Citation[];
  logprobs: unknown[];
  /** Of a content of an earlier backend's that nobody goes on with yet: whether its text is told as a whole. */
  sent?: { isTextDone: boolean } | undefined;
}

export class MessageWriter implements OpenItem {
  readonly index: number;
  readonly #list: OutputList;
  readonly #id: string | undefined;
  readonly #contents: JsonObject[] = [];
  #content: MessageContent | undefined;
  readonly #wire: JsonObject;

  /** @param sent - the item where it is one that an earlier backend has begun */
  constructor(list: OutputList, id: string | undefined, sent?: SentItem) {
    this.#list = list;
    this.#id = id;
    this.index = sent?.index ?? list.nextIndex;
    this.#wire = sent?.wire ?? {};
    if (sent === undefined) return;
    const open = openPart(sent.content);
    for (const part of sent.content.values()) {
      if (part !== open)
        this.#contents.push(part.isDone ? part.wire : { ...textContent(part), ...part.wire, text: part.text });
    }
    if (open === undefined) return;
    const { text, logprobs, isTextDone } = open;
    this.#content = {
      isRefusal: false,
      text,
      head: this.#textHead(),
      citations: [],
      logprobs: [...logprobs],
      sent: { isTextDone },
    };
  }

  /** Goes on with the text that an earlier backend has begun; false where there is none that can be gone on with. */
  goOn(): boolean {
    if (this.#content?.sent?.isTextDone !== false) return false;
    this.#content.sent = undefined;
    return true;
  }

  get isOpen(): boolean {
    return this.#content !== undefined;
  }

  open(): string {
    return this.#list.add(messageItem(this.#id, [], "in_progress"));
  }

  openContent(type: "text" | "refusal"): string {
    const events = this.end();
    const isRefusal = type === "refusal";
    const head = isRefusal ? eventHead("response.refusal.delta", this.#place(), "delta") : this.#textHead();
    this.#content = { isRefusal, text: "", head, citations: [], logprobs: [] };
    const part = isRefusal ? refusalContent("") : textContent({ text: "" });
    return events + this.#list.sequence.event("response.content_part.added", { ...this.#place(), part });
  }

  #textHead(): string {
    return eventHead("response.output_text.delta", { ...this.#place(), logprobs: [] }, "delta");
  }

  delta(text: string, own?: JsonObject): string {
    if (this.#content === undefined) return "";
    this.#content.text += text;
    const { sequence } = this.#list;
    if (own === undefined) return sequence.finishEvent(this.#content.head, JSON.stringify(text));
    if (Array.isArray(own.logprobs)) for (const entry of own.logprobs as unknown[]) this.#content.logprobs.push(entry);
    return sequence.event("response.output_text.delta", { ...this.#place(), delta: text, ...own });
  }

  /** Shown when the text is whole: a citation without offsets speaks of all of it. */
  cite(citation: Citation): void {
    this.#content?.citations.push(citation);
  }

  end(): string {
    if (this.#content === undefined) return "";
    const { isRefusal, text, citations, logprobs, sent } = this.#content;
    const { sequence } = this.#list;
    const place = this.#place();
    const part = isRefusal ? refusalContent(text) : { ...textContent({ text, citations }), logprobs };
    this.#content = undefined;
    this.#contents.push(part);
    let events = "";
    if (isRefusal) events = sequence.event("response.refusal.done", { ...place, refusal: text });
    else if (sent?.isTextDone !== true) {
      events = this.#annotations(citations, text.length, place);
      events += sequence.event("response.output_text.done", { ...place, text, logprobs });
    }
    return events + sequence.event("response.content_part.done", { ...place, part });
  }

  close(status: ItemStatus): string {
    return this.#list.done(this.index, { ...this.#wire, ...messageItem(this.#id, this.#contents, status) });
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

type Call = Pick<ToolCallPart, "id" | "name" | "custom" | "itemId">;

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
    this.#id = callItemId(this.#isCustom ? "ctc" : "fc", call.itemId, part, rules);
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

/** The events that close a reasoning item of an earlier backend: thoughts that were cut off, which nothing proves. */
export function closeThoughts({ index, id, wire, summary, content }: SentItem, list: OutputList): string {
  let events = "";
  const lists = [
    {
      parts: summary,
      at: "summary_index",
      text: "reasoning_summary_text",
      part: "reasoning_summary_part",
      type: "summary_text",
    },
    { parts: content, at: "content_index", text: "reasoning_text", part: "content_part", type: "reasoning_text" },
  ];
  const told: JsonObject[][] = [];
  for (const { parts, at, text: textName, part: partName, type } of lists) {
    for (const [number, { text, isAdded, isTextDone, isDone }] of parts) {
      const place = { item_id: id, output_index: index, [at]: number };
      if (!isTextDone) events += list.sequence.event(`response.${textName}.done`, { ...place, text });
      const part = { type, text };
      if (isAdded && !isDone) events += list.sequence.event(`response.${partName}.done`, { ...place, part });
    }
    told.push([...parts.values()].map(({ text }) => ({ type, text })));
  }
  const { encrypted_content: _cutOff, ...item } = wire;
  return (
    events +
    list.done(index, {
      ...item,
      ...(item.status !== undefined && { status: "incomplete" }),
      summary: told[0],
      ...(content.size > 0 && { content: told[1] }),
    })
  );
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
