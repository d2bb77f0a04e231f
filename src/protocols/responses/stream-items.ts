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

/** An item that is not closed yet. */
export abstract class ItemWriter {
  readonly index: number;
  readonly list: OutputList;
  readonly id: string | undefined;
  #isEnded = false;

  constructor(list: OutputList, id: string | undefined, index = list.nextIndex) {
    this.list = list;
    this.id = id;
    this.index = index;
  }

  /** Whether more may come that belongs to it. */
  get isOpen(): boolean {
    return !this.#isEnded;
  }

  abstract open(): string;
  abstract delta(text: string): string;

  /** The events that complete its contents; "" when they were already written. */
  end(): string {
    if (this.#isEnded) return "";
    this.#isEnded = true;
    return this.complete();
  }

  close(status: ItemStatus): string {
    return this.list.done(this.index, this.whole(status));
  }

  protected abstract complete(): string;
  /** The item as it is when it is closed. */
  protected abstract whole(status: ItemStatus): JsonObject;

  protected event(type: string, fields: object = {}): string {
    return this.list.sequence.event(`response.${type}`, { ...this.#place(), ...fields });
  }

  /** The beginning of its events of this type, to be finished by deltaEvent(). */
  protected head(type: string, fields: object = {}): string {
    return eventHead(`response.${type}.delta`, { ...this.#place(), ...fields }, "delta");
  }

  protected deltaEvent(head: string, text: string): string {
    return this.list.sequence.finishEvent(head, JSON.stringify(text));
  }

  #place(): object {
    return { item_id: this.id, output_index: this.index };
  }
}

interface MessageContent {
  isRefusal: boolean;
  text: string;
  head: string;
  citations: Citation[];
  logprobs: unknown[];
  /** Of a content of an earlier backend that is not continued yet: whether its text came as a whole. */
  sent?: { isTextDone: boolean } | undefined;
}

export class MessageWriter extends ItemWriter {
  readonly #contents: JsonObject[] = [];
  #content: MessageContent | undefined;
  readonly #wire: JsonObject;

  /** @param sent - the item where it is one that an earlier backend has begun */
  constructor(list: OutputList, id: string | undefined, sent?: SentItem) {
    super(list, id, sent?.index);
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
      head: this.#head(false),
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

  override get isOpen(): boolean {
    return this.#content !== undefined;
  }

  open(): string {
    return this.list.add(messageItem(this.id, [], "in_progress"));
  }

  openContent(type: "text" | "refusal"): string {
    const events = this.end();
    const isRefusal = type === "refusal";
    this.#content = { isRefusal, text: "", head: this.#head(isRefusal), citations: [], logprobs: [] };
    const part = isRefusal ? refusalContent("") : textContent({ text: "" });
    return events + this.#contentEvent("content_part.added", { part });
  }

  delta(text: string, own?: JsonObject): string {
    if (this.#content === undefined) return "";
    this.#content.text += text;
    if (own === undefined) return this.deltaEvent(this.#content.head, text);
    if (Array.isArray(own.logprobs)) for (const entry of own.logprobs as unknown[]) this.#content.logprobs.push(entry);
    return this.#contentEvent("output_text.delta", { delta: text, ...own });
  }

  /** Shown when the text is whole: a citation without offsets speaks of all of it. */
  cite(citation: Citation): void {
    this.#content?.citations.push(citation);
  }

  /** Ends the content: a message can have several. */
  override end(): string {
    return this.#content === undefined ? "" : this.complete();
  }

  protected complete(): string {
    const { isRefusal, text, citations, logprobs, sent } = this.#content as MessageContent;
    const part = isRefusal ? refusalContent(text) : { ...textContent({ text, citations }), logprobs };
    let events = "";
    if (isRefusal) events = this.#contentEvent("refusal.done", { refusal: text });
    else if (sent?.isTextDone !== true) {
      events = this.#annotations(citations, text.length);
      events += this.#contentEvent("output_text.done", { text, logprobs });
    }
    events += this.#contentEvent("content_part.done", { part });
    this.#content = undefined;
    this.#contents.push(part);
    return events;
  }

  protected whole(status: ItemStatus): JsonObject {
    return { ...this.#wire, ...messageItem(this.id, this.#contents, status) };
  }

  #annotations(citations: readonly Citation[], textLength: number): string {
    let events = "";
    let count = 0;
    for (const citation of citations) {
      const annotation = encodeCitation(citation, textLength);
      if (annotation === undefined) continue;
      events += this.#contentEvent("output_text.annotation.added", { annotation_index: count++, annotation });
    }
    return events;
  }

  #head(isRefusal: boolean): string {
    const place = { content_index: this.#contents.length };
    return isRefusal ? this.head("refusal", place) : this.head("output_text", { ...place, logprobs: [] });
  }

  #contentEvent(type: string, fields: object): string {
    return this.event(type, { content_index: this.#contents.length, ...fields });
  }
}

/** A reasoning item has one part. */
const THOUGHT = { summary_index: 0 };

export class ReasoningWriter extends ItemWriter {
  #head: string | undefined;
  #text = "";
  /** To be set before the item is closed. */
  token: string | undefined;
  declare readonly id: string;

  open(): string {
    return this.list.add(reasoningItem(this.id, "", undefined));
  }

  delta(text: string): string {
    let events = "";
    if (this.#head === undefined) {
      this.#head = this.head("reasoning_summary_text", THOUGHT);
      events = this.event("reasoning_summary_part.added", { ...THOUGHT, part: summaryPart("") });
    }
    this.#text += text;
    return events + this.deltaEvent(this.#head, text);
  }

  protected complete(): string {
    if (this.#head === undefined) return "";
    return (
      this.event("reasoning_summary_text.done", { ...THOUGHT, text: this.#text }) +
      this.event("reasoning_summary_part.done", { ...THOUGHT, part: summaryPart(this.#text) })
    );
  }

  protected whole(): JsonObject {
    return reasoningItem(this.id, this.#text, this.token);
  }
}

type CallItem = Pick<ToolCallPart, "id" | "name" | "custom" | "itemId">;

export class CallWriter extends ItemWriter {
  readonly #call: ClientCall;
  readonly #isCustom: boolean;
  /** The model writes a function's JSON, the client wants the text inside; it is known when the JSON is whole. */
  readonly #isWrapped: boolean;
  readonly #eventName: string;
  readonly #head: string;
  #text = "";
  declare readonly id: string;

  constructor(list: OutputList, call: CallItem, part: number, rules: OutputRules) {
    const isCustom = isCustomCall(call, rules);
    super(list, callItemId(isCustom ? "ctc" : "fc", call.itemId, part, rules));
    this.#call = calledAs(call, rules);
    this.#isCustom = isCustom;
    this.#isWrapped = isCustom && call.custom !== true;
    this.#eventName = isCustom ? "custom_tool_call_input" : "function_call_arguments";
    this.#head = this.head(this.#eventName);
  }

  open(): string {
    return this.list.add(this.#item("", "in_progress"));
  }

  delta(text: string): string {
    this.#text += text;
    return this.#isWrapped ? "" : this.deltaEvent(this.#head, text);
  }

  protected complete(): string {
    let events = "";
    if (this.#isWrapped) {
      this.#text = customInput(this.#text);
      if (this.#text !== "") events = this.deltaEvent(this.#head, this.#text);
    } else if (this.#text === "" && !this.#isCustom) events = this.delta("{}");
    const whole = this.#isCustom ? { input: this.#text } : { name: this.#call.name, arguments: this.#text };
    return events + this.event(`${this.#eventName}.done`, whole);
  }

  protected whole(status: ItemStatus): JsonObject {
    return this.#item(this.#text, status);
  }

  #item(text: string, status: ItemStatus): JsonObject {
    if (this.#isCustom) return customCallItem(this.id, this.#call, text);
    return functionCallItem(this.id, this.#call, text, status);
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
export class SearchWriter extends ItemWriter {
  readonly #rules: OutputRules;
  #args = "";
  #result: SearchResultPart | undefined;
  declare readonly id: string;

  constructor(list: OutputList, part: number, rules: OutputRules) {
    super(list, itemId("ws", rules.context, part));
    this.#rules = rules;
  }

  open(): string {
    const item = { ...searchItem(this.id, "", undefined, { showsSources: false }), status: "in_progress" };
    return this.list.add(item) + this.event("web_search_call.in_progress") + this.event("web_search_call.searching");
  }

  delta(text: string): string {
    this.#args += text;
    return "";
  }

  resolve(result: SearchResultPart): string {
    this.#result = result;
    return this.end();
  }

  protected complete(): string {
    return this.event("web_search_call.completed");
  }

  protected whole(): JsonObject {
    return searchItem(this.id, this.#args, this.#result, this.#rules);
  }
}
