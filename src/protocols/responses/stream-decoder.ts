// A backend's Responses event stream -> events of an answer. Backends leave out events that the public service sends:
// the announcement of an item, all deltas (LM Studio), the closing of an item, or everything but the final response.
// So each item remembers what has come of it, and what is still missing is taken from the next event that has it.

import { MAX_CITATIONS } from "../../generation/answer-losses.ts";
import type { Citation } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { PartEvents } from "../part-events.ts";
import { decodeObject, type KeptMembers, type StreamDecoder } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, textOf, wholeNumberOf } from "../reading.ts";
import { decodeCitation } from "./citations.ts";
import { decodeError } from "./errors.ts";
import { decodeFinish } from "./finish.ts";
import {
  argumentsOf,
  contentsOf,
  decodeCall,
  decodeItem,
  type MessageContent,
  readContent,
  thoughtsOf,
} from "./output-decoder.ts";
import { decodeUsage } from "./usage.ts";

/** What has come of a content of a message. */
interface SeenContent {
  part: number | undefined;
  hasText: boolean;
  citations: number;
  /** Citations that came before the text. */
  held: Citation[];
}

interface SeenItem {
  type: string;
  isDone: boolean;
  id: string | undefined;
  /** Of a reasoning item or a call. */
  part: number | undefined;
  /** Of a message, by content index. */
  contents: Map<number, SeenContent>;
  /** Of a reasoning item: which of its two forms came first; the other one says the same again. */
  thoughts: "summary" | "content" | undefined;
  /** Of a reasoning item: the indexes that had text. */
  thoughtIndexes: Set<number>;
  /** Of a call: arguments that came before its name. */
  heldArguments: string;
  hasArguments: boolean;
}

export class ResponsesStreamDecoder implements StreamDecoder {
  readonly #out = new PartEvents();
  readonly #items: SeenItem[] = [];
  readonly #byId = new Map<string, SeenItem>();
  readonly #byIndex = new Map<number, SeenItem>();
  #hasStarted = false;
  #isOver = false;
  #hasClientCall = false;
  #webSearches = 0;
  readonly #keepsOwn: boolean;

  constructor(keeps?: KeptMembers) {
    this.#keepsOwn = keeps !== undefined;
  }

  push(data: string, name?: string): readonly GenerationEvent[] {
    if (this.#isOver || data === "[DONE]") return [];
    const event = decodeObject(data, "an event of the stream ");
    this.#handle(nonEmptyText(event.type) ?? name ?? "", event);
    return this.#out.take();
  }

  end(): readonly GenerationEvent[] {
    if (this.#isOver) return [];
    this.#isOver = true;
    this.#out.endAll();
    return this.#out.take();
  }

  #handle(type: string, event: JsonObject): void {
    switch (type) {
      case "response.output_text.delta":
        this.#text(event, false, textOf(event.delta), false);
        return;
      case "response.refusal.delta":
        this.#text(event, true, textOf(event.delta), false);
        return;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.#arguments(this.#find(event, callType(type)), textOf(event.delta));
        return;
      case "response.reasoning_summary_text.delta":
        this.#thought(event, "summary", textOf(event.delta), false);
        return;
      case "response.reasoning_text.delta":
        this.#thought(event, "content", textOf(event.delta), false);
        return;
      default:
        this.#handleRarer(type, event);
    }
  }

  #handleRarer(type: string, event: JsonObject): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        this.#start(objectOf(event.response));
        return;
      case "response.output_item.added":
        this.#addItem(event);
        return;
      case "response.output_item.done":
        this.#finishItem(this.#itemOf(event), objectOf(event.item));
        return;
      case "response.output_text.done":
        this.#text(event, false, textOf(event.text), true);
        return;
      case "response.refusal.done":
        this.#text(event, true, textOf(event.refusal), true);
        return;
      case "response.output_text.annotation.added":
        this.#annotate(event);
        return;
      case "response.content_part.done":
        this.#finishContent(event);
        return;
      case "response.reasoning_summary_text.done":
        this.#thought(event, "summary", textOf(event.text), true);
        return;
      case "response.reasoning_text.done":
        this.#thought(event, "content", textOf(event.text), true);
        return;
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done": {
        const item = this.#find(event, callType(type));
        if (!item.hasArguments) this.#arguments(item, argumentsOf(event.arguments ?? event.input));
        return;
      }
      case "response.completed":
      case "response.incomplete":
        this.#complete({ ...objectOf(event.response), status: type.slice("response.".length) });
        return;
      case "response.failed":
      case "error":
        this.#fail(event);
        return;
      default:
        // A chat engine's way of telling of an error; anything else unknown is left out.
        if (isObject(event.error)) this.#fail(event);
        else if (this.#keepsOwn && type !== "" && !isPlaced(event)) {
          this.#out.push({ type: "unknown", value: { ...event, type } });
        }
    }
  }

  #start(response: JsonObject): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#out.push({
      type: "start",
      id: textOf(response.id),
      model: textOf(response.model),
      createdAt: wholeNumberOf(response.created_at) ?? 0,
    });
  }

  #addItem(event: JsonObject): void {
    const wire = objectOf(event.item);
    const item = this.#itemOf(event);
    if (isCall(item.type)) this.#startCall(item, wire);
  }

  /** The item that an event with the item itself speaks of. */
  #itemOf(event: JsonObject): SeenItem {
    const wire = objectOf(event.item);
    return this.#find({ item_id: wire.id, output_index: event.output_index }, textOf(wire.type));
  }

  /** By id, else by place; an item that was never announced begins here. */
  #find(event: JsonObject, type: string): SeenItem {
    this.#start({});
    const id = nonEmptyText(event.item_id);
    const index = wholeNumberOf(event.output_index);
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (byId?.type === type) return byId;
    const byIndex = index === undefined ? undefined : this.#byIndex.get(index);
    if (byIndex?.type === type) return byIndex;
    if (id === undefined && index === undefined) {
      const last = this.#items.at(-1);
      if (last?.type === type && !last.isDone) return last;
    }
    const item = newItem(type, id);
    this.#items.push(item);
    if (id !== undefined) this.#byId.set(id, item);
    if (index !== undefined) this.#byIndex.set(index, item);
    return item;
  }

  /** `isWhole`: the text repeats all deltas, so it counts only if there were none. */
  #text(event: JsonObject, isRefusal: boolean, text: string, isWhole: boolean): void {
    const item = this.#find(event, "message");
    const content = contentAt(item, wholeNumberOf(event.content_index) ?? 0);
    if (text === "" || item.isDone || (isWhole && content.hasText)) return;
    const own = this.#keepsOwn && objectsOf(event.logprobs).length > 0 ? { logprobs: event.logprobs } : undefined;
    this.#write(content, isRefusal, text, isWhole ? undefined : own);
  }

  #write(content: SeenContent, isRefusal: boolean, text: string, own?: JsonObject): void {
    if (!this.#out.isOpen(content.part)) content.part = this.#out.start({ type: isRefusal ? "refusal" : "text" });
    content.hasText = true;
    for (const citation of content.held.splice(0)) this.#out.cite(content.part, citation);
    this.#out.delta(content.part, text, own);
  }

  #annotate(event: JsonObject): void {
    const content = contentAt(this.#find(event, "message"), wholeNumberOf(event.content_index) ?? 0);
    content.citations++;
    const citation = decodeCitation(objectOf(event.annotation));
    if (content.part === undefined) {
      // One more than are kept, which shows that there were too many.
      if (content.held.length <= MAX_CITATIONS) content.held.push(citation);
    } else this.#out.cite(content.part, citation);
  }

  #finishContent(event: JsonObject): void {
    const part = objectOf(event.part);
    if (part.type !== "output_text" && part.type !== "refusal") return;
    const item = this.#find(event, "message");
    if (!item.isDone) this.#fillContent(contentAt(item, wholeNumberOf(event.content_index) ?? 0), readContent(part));
  }

  /** Writes what the deltas left out and ends the part. */
  #fillContent(content: SeenContent, { isRefusal, text, annotations }: MessageContent): void {
    if (!content.hasText && text !== "") this.#write(content, isRefusal, text);
    const { part } = content;
    if (!this.#out.isOpen(part)) return;
    for (const annotation of annotations.slice(content.citations)) this.#out.cite(part, decodeCitation(annotation));
    content.citations = Math.max(content.citations, annotations.length);
    this.#out.end(part);
  }

  #thought(event: JsonObject, form: "summary" | "content", text: string, isWhole: boolean): void {
    const item = this.#find(event, "reasoning");
    const index = wholeNumberOf(form === "summary" ? event.summary_index : event.content_index) ?? 0;
    const isNew = !item.thoughtIndexes.has(index);
    if (text === "" || item.isDone || (isWhole && !isNew)) return;
    item.thoughts ??= form;
    if (item.thoughts !== form) return;
    const isBehindOther = isNew && item.thoughtIndexes.size > 0 && this.#out.isOpen(item.part);
    item.thoughtIndexes.add(index);
    this.#out.delta(this.#openThoughts(item), isBehindOther ? `\n\n${text}` : text);
  }

  #openThoughts(item: SeenItem): number {
    if (this.#out.isOpen(item.part)) return item.part;
    const part = this.#out.start({ type: "reasoning", ...(item.id !== undefined && { itemId: item.id }) });
    item.part = part;
    return part;
  }

  #startCall(item: SeenItem, wire: JsonObject): void {
    if (item.part !== undefined || nonEmptyText(wire.name) === undefined) return;
    const { arguments: _whole, ...start } = decodeCall(wire);
    this.#hasClientCall = true;
    item.part = this.#out.start(start);
    this.#out.delta(item.part, item.heldArguments);
  }

  #arguments(item: SeenItem, text: string): void {
    if (text === "" || item.isDone) return;
    item.hasArguments = true;
    if (item.part === undefined) item.heldArguments += text;
    else this.#out.delta(item.part, text);
  }

  /** What the item says as a whole, as far as it was not said yet. */
  #finishItem(item: SeenItem, wire: JsonObject): void {
    if (item.isDone) return;
    if (item.type === "message") {
      for (const [index, content] of contentsOf(wire).entries()) this.#fillContent(contentAt(item, index), content);
      for (const { part } of item.contents.values()) this.#out.end(part);
    } else if (item.type === "reasoning") {
      this.#finishThoughts(item, wire);
    } else if (isCall(item.type)) {
      this.#startCall(item, wire);
      if (!item.hasArguments) this.#arguments(item, decodeCall(wire).arguments);
      this.#out.end(item.part);
    } else {
      this.#emitWhole(wire);
    }
    item.isDone = true;
  }

  #finishThoughts(item: SeenItem, wire: JsonObject): void {
    if (item.thoughtIndexes.size === 0) {
      const text = thoughtsOf(wire);
      if (text !== "") this.#out.delta(this.#openThoughts(item), text);
    }
    const sealed = nonEmptyText(wire.encrypted_content);
    if (sealed !== undefined) this.#out.seal(this.#openThoughts(item), "responses", sealed);
    this.#out.end(item.part);
  }

  #emitWhole(wire: JsonObject): void {
    for (const part of decodeItem(wire)) {
      if (part.type === "tool-call") {
        this.#webSearches++;
        const { arguments: text, ...start } = part;
        const index = this.#out.start(start);
        this.#out.delta(index, text);
        this.#out.end(index);
      } else if (part.type === "search-result" || part.type === "image" || part.type === "opaque") {
        this.#out.whole(part);
      }
    }
  }

  #complete(response: JsonObject): void {
    this.#isOver = true;
    this.#start(response);
    this.#fillFromOutput(objectsOf(response.output));
    this.#out.endAll();
    const usage = decodeUsage(response.usage, this.#webSearches);
    if (usage !== undefined) this.#out.push({ type: "usage", usage });
    const own = this.#keepsOwn && { own: response };
    this.#out.push({ type: "finish", finish: decodeFinish(response, this.#hasClientCall), ...own });
  }

  /**
   * Items are matched by type and order alone: some backends give other ids and indexes here than in the stream, and an
   * answer said twice is worse than one whose last item lacks something.
   */
  #fillFromOutput(output: readonly JsonObject[]): void {
    const seen = new Map<string, SeenItem[]>();
    for (const item of this.#items) seen.set(item.type, [...(seen.get(item.type) ?? []), item]);
    for (const wire of output) {
      const type = textOf(wire.type);
      if (type === "") continue;
      this.#finishItem(seen.get(type)?.shift() ?? newItem(type, nonEmptyText(wire.id)), wire);
    }
  }

  #fail(event: JsonObject): void {
    this.#isOver = true;
    this.#start(objectOf(event.response));
    this.#out.push({ type: "failure", failure: decodeError(200, event) });
  }
}

function newItem(type: string, id: string | undefined): SeenItem {
  return {
    type,
    isDone: false,
    id,
    part: undefined,
    contents: new Map(),
    thoughts: undefined,
    thoughtIndexes: new Set(),
    heldArguments: "",
    hasArguments: false,
  };
}

/** Whether an event speaks of an item. */
function isPlaced({ output_index, item_id, item }: JsonObject): boolean {
  return isPresent(output_index) || isPresent(item_id) || isPresent(item);
}

function contentAt(item: SeenItem, index: number): SeenContent {
  let content = item.contents.get(index);
  if (content === undefined) {
    content = { part: undefined, hasText: false, citations: 0, held: [] };
    item.contents.set(index, content);
  }
  return content;
}

function isCall(type: string): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

function callType(event: string): string {
  return event.startsWith("response.custom") ? "custom_tool_call" : "function_call";
}
