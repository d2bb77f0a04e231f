// Makes the stream of a second backend fit behind what clients of this format have seen of a first one: one response id,
// one output, consecutive numbers, no text twice and none lost. What was sent and what is added are kept in the same
// record, so whatever is open in it can be closed or gone on with, whoever began it.

import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { readEvents } from "../sse.ts";
import {
  countAsAnswer,
  type JoinMode,
  type OpeningFilter,
  openingFilter,
  prefillOf,
  refuseThought,
} from "../stream-join.ts";
import { JoinedOutput, placeOf } from "./join-output.ts";
import {
  isTextPart,
  isThoughtDelta,
  itemTypeOf,
  type OpenMessage,
  type OpenPart,
  type SeenAnswer,
  typeOf,
} from "./join-state.ts";
import { countOf, isGiven, objectOf, objectsOf, optionalText, textOf } from "./wire.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** An item of the second stream. */
interface SecondItem {
  /** `hidden`: reasoning that is not shown; `passed`: an item of its own; a message goes where there is room for text. */
  kind: "hidden" | "message" | "passed";
  type: string;
  /** Its place and id for the client; of passed items only. */
  index: number;
  id: string | undefined;
  isDone: boolean;
  /** The event that announced it, until it is shown. */
  added: JsonObject | undefined;
  parts: Map<number, SecondPart>;
}

/** A content of a message of the second stream. */
interface SecondPart {
  added: JsonObject | undefined;
  text: string;
  /** Where it stands for the client; of contents other than text only. */
  index: number | undefined;
  /** How many annotations it has had. */
  cited: number;
  /** Annotations of text that is not shown yet. */
  held: JsonObject[];
}

export class Joiner {
  readonly #out: JoinedOutput;
  readonly #filter: OpeningFilter;
  /** Pieces of the answer that the second backend was told as the beginning of its own; 0 when it was told none. */
  readonly #told: number;
  /** Whether the second stream has said any text. */
  #hasSpoken = false;
  readonly #hidesReasoning: boolean;
  #hasClosedLeftovers = false;
  readonly #items: SecondItem[] = [];
  readonly #byIndex = new Map<number, SecondItem>();
  readonly #byId = new Map<string, SecondItem>();

  constructor(answer: SeenAnswer, mode: JoinMode) {
    this.#out = new JoinedOutput(answer);
    this.#filter = openingFilter(answer.text, mode);
    this.#told = mode === "exact" && prefillOf(answer.text) !== "" ? answer.pieces : 0;
    // An item without contents counts: reasoning would stand behind it.
    this.#hidesReasoning = answer.nextIndex > 0;
  }

  push(events: Uint8Array): Uint8Array | undefined {
    for (const { name, data } of readEvents(decoder.decode(events))) {
      const event = parseObject(data);
      if (event === undefined)
        this.#out.writeData(data); // [DONE]
      else this.#take(typeOf(event, name), event);
    }
    const output = this.#out.take();
    return output === "" ? undefined : encoder.encode(output);
  }

  #take(type: string, event: JsonObject): void {
    switch (type) {
      case "response.created":
      case "response.queued":
        if (!this.#out.answer.hasBegun) this.#sendSnapshot(type, event);
        return;
      case "response.in_progress":
        if (!this.#out.answer.isInProgress && this.#out.answer.nextIndex === 0) this.#sendSnapshot(type, event);
        return;
      case "response.completed":
      case "response.incomplete":
      case "response.cancelled":
        this.#finish(type, event);
        return;
      case "response.failed":
        this.#sendSnapshot(type, event, this.#out.finishedItems());
        return;
      case "error":
        this.#out.send(type, event);
        return;
      default:
        this.#takeItemEvent(type, event);
    }
  }

  #takeItemEvent(type: string, event: JsonObject): void {
    if (this.#told > 0 && isThoughtDelta(type)) refuseThought(textOf(event.delta));
    const item = this.#itemOf(type, event);
    if (item === undefined) {
      this.#sendUnknown(type, event);
      return;
    }
    if (item.kind === "message") this.#takeMessageEvent(type, item, event);
    else if (item.kind === "passed") this.#pass(type, item, event);
    if (type === "response.output_item.done") item.isDone = true;
  }

  #sendSnapshot(type: string, event: JsonObject, output?: readonly JsonObject[]): void {
    const response: JsonObject = { ...objectOf(event.response), ...this.#out.answer.identity };
    if (output !== undefined) {
      response.output = output;
      if (this.#told > 0 && isObject(response.usage)) {
        response.usage = countAsAnswer(response.usage, ["input_tokens", "output_tokens"], this.#told);
      }
      // Some engines repeat the text here, as the official SDK adds it.
      if (typeof response.output_text === "string") response.output_text = output.map(textOfItem).join("");
    }
    this.#out.send(type, { ...event, response });
  }

  #sendUnknown(type: string, event: JsonObject): void {
    const { identity } = this.#out.answer;
    if (isObject(event.response) && isGiven(event.response.id)) event.response = { ...event.response, ...identity };
    if (countOf(event.sequence_number) === undefined) this.#out.write(type, event);
    else this.#out.send(type, event);
  }

  /** Undefined for events that speak of no item. */
  #itemOf(type: string, event: JsonObject): SecondItem | undefined {
    const itemType = itemTypeOf(type, event);
    const id = optionalText(event.item_id) ?? optionalText(objectOf(event.item).id);
    const index = countOf(event.output_index);
    const known =
      (id === undefined ? undefined : this.#byId.get(id)) ??
      (index === undefined ? undefined : this.#ofType(this.#byIndex.get(index), itemType));
    if (known !== undefined) return known;
    if (id === undefined && index === undefined) {
      if (itemType === undefined) return undefined;
      const last = this.#ofType(this.#items.at(-1), itemType);
      if (last !== undefined && !last.isDone) return last;
    }
    const item = this.#beginItem(itemType ?? "", id);
    if (id !== undefined) this.#byId.set(id, item);
    if (index !== undefined) this.#byIndex.set(index, item);
    return item;
  }

  #ofType(item: SecondItem | undefined, type: string | undefined): SecondItem | undefined {
    // An item that was not announced may get its type later.
    if (item?.type === "" && type !== undefined) item.type = type;
    return type === undefined || item?.type === type ? item : undefined;
  }

  #beginItem(type: string, id: string | undefined): SecondItem {
    this.#closeLeftovers();
    const isHidden = type === "reasoning" && this.#hidesReasoning;
    const kind = type === "message" ? "message" : isHidden ? "hidden" : "passed";
    if (kind === "passed") {
      // Before any text, as a search may come, it is no turn within the text.
      if (this.#hasSpoken) this.#filter.end();
      this.#out.closeMessage("completed");
    }
    const given = kind === "passed" ? this.#out.freeId(id) : id;
    const item: SecondItem = {
      kind,
      type,
      index: this.#out.answer.nextIndex,
      id: given,
      isDone: false,
      added: undefined,
      parts: new Map(),
    };
    this.#items.push(item);
    return item;
  }

  #pass(type: string, item: SecondItem, event: JsonObject): void {
    if (isObject(event.item)) {
      if (item.id !== undefined) event.item.id = item.id;
    } else if (event.item_id !== undefined && item.id !== undefined) event.item_id = item.id;
    event.output_index = item.index;
    this.#out.send(type, event);
  }

  #takeMessageEvent(type: string, item: SecondItem, event: JsonObject): void {
    switch (type) {
      case "response.output_item.added":
        item.added = event;
        if (!this.#isRepeating) this.#openMessage(item);
        return;
      case "response.output_item.done":
        this.#endMessage(item, objectOf(event.item));
        return;
    }
    const part = this.#partOf(item, event);
    switch (type) {
      case "response.content_part.added":
        this.#addPart(item, part, event);
        return;
      case "response.output_text.delta":
        this.#text(item, part, textOf(event.delta), event);
        return;
      case "response.output_text.done":
        this.#catchUp(item, part, textOf(event.text));
        this.#endText(part, event);
        return;
      case "response.output_text.annotation.added":
        part.cited++;
        part.held.push(event);
        this.#releaseAnnotations(part);
        return;
      case "response.content_part.done":
        this.#endPart(item, part, event);
        return;
      default:
        if (part.index !== undefined || type.startsWith("response.refusal.")) this.#passPart(type, item, part, event);
        else this.#passInMessage(type, event);
    }
  }

  get #isRepeating(): boolean {
    return this.#filter.isActive;
  }

  #partOf(item: SecondItem, event: JsonObject): SecondPart {
    const index = countOf(event.content_index) ?? 0;
    const known = item.parts.get(index);
    if (known !== undefined) return known;
    const part = { added: undefined, text: "", index: undefined, cited: 0, held: [] };
    item.parts.set(index, part);
    return part;
  }

  #openMessage({ id, added }: SecondItem): OpenMessage | undefined {
    return this.#out.openMessage(id, added);
  }

  #openPart(item: SecondItem, part: SecondPart): OpenMessage | undefined {
    const message = this.#openMessage(item);
    if (message !== undefined) this.#out.openPart(message, part.added);
    return message;
  }

  #addPart(item: SecondItem, part: SecondPart, event: JsonObject): void {
    part.added = event;
    if (!isTextPart(objectOf(event.part))) this.#passPart("response.content_part.added", item, part, event);
    else if (!this.#isRepeating) this.#openPart(item, part);
  }

  #text(item: SecondItem, part: SecondPart, text: string, event: JsonObject): void {
    part.text += text;
    if (text !== "") this.#hasSpoken = true;
    const rest = this.#filter.push(text);
    if (rest === "") {
      if (!this.#isRepeating) this.#releaseAnnotations(part);
      return;
    }
    const message = this.#openPart(item, part);
    if (message?.part === undefined) return;
    event.delta = rest;
    // They speak of the whole of it.
    if (rest !== text && Array.isArray(event.logprobs)) event.logprobs = [];
    this.#out.sendInPart("response.output_text.delta", message, message.part, event);
    this.#releaseAnnotations(part);
  }

  /** The text of which there were no deltas. */
  #catchUp(item: SecondItem, part: SecondPart, whole: string): void {
    if (whole.length <= part.text.length || !whole.startsWith(part.text)) return;
    const type = "response.output_text.delta";
    this.#text(item, part, whole.slice(part.text.length), { type, logprobs: [] });
  }

  /** What nobody knows, about a message that is shown. */
  #passInMessage(type: string, event: JsonObject): void {
    const message = this.#out.message;
    if (message === undefined) return;
    const { part } = message;
    const isInPart = event.content_index !== undefined && part !== undefined;
    this.#out.send(type, { ...event, ...placeOf(message), ...(isInPart && { content_index: part.index }) });
  }

  /** Undefined while the part has room for what follows: its text is not repeated yet, or there is none. */
  #endingPart(): [OpenMessage, OpenPart] | undefined {
    const message = this.#out.message;
    const open = message?.part;
    if (this.#isRepeating || message === undefined || open === undefined || open.text === "") return undefined;
    return [message, open];
  }

  #endText(part: SecondPart, event: JsonObject): void {
    this.#releaseAnnotations(part);
    const ending = this.#endingPart();
    if (ending === undefined || ending[1].isTextDone) return;
    const [message, open] = ending;
    if (event.text !== open.text) Object.assign(event, { text: open.text, logprobs: open.logprobs });
    this.#out.sendInPart("response.output_text.done", message, open, event);
  }

  #endPart(item: SecondItem, part: SecondPart, event: JsonObject): void {
    const told = objectOf(event.part);
    if (!isTextPart(told)) {
      this.#passPart("response.content_part.done", item, part, event);
      return;
    }
    this.#catchUp(item, part, textOf(told.text));
    const ending = this.#endingPart();
    // Without events of their own they would be lost with the part as it is told here.
    if (ending !== undefined && ending[1].text !== told.text) {
      for (const annotation of objectsOf(told.annotations).slice(part.cited)) part.held.push({ annotation });
    }
    this.#releaseAnnotations(part);
    if (ending !== undefined) this.#out.closePart(...ending, event);
  }

  /** Contents other than text stand behind it: refusals. */
  #passPart(type: string, item: SecondItem, part: SecondPart, event: JsonObject): void {
    this.#filter.end();
    const message = this.#openMessage(item);
    if (message === undefined) return;
    if (part.index === undefined) {
      if (message.part !== undefined) this.#out.closePart(message, message.part);
      part.index = message.nextContent;
    }
    this.#out.send(type, { ...event, ...placeOf(message), content_index: part.index });
  }

  /** They name places in the text of their part, which may begin elsewhere for the client, or not be shown to its end. */
  #releaseAnnotations(part: SecondPart): void {
    if (part.held.length === 0) return;
    const message = this.#out.message;
    const open = message?.part;
    if (this.#isRepeating || message === undefined || open === undefined) return;
    const shift = open.text.length - part.text.length;
    const type = "response.output_text.annotation.added";
    for (const event of part.held.splice(0)) {
      const annotation = { ...objectOf(event.annotation) };
      const { start_index: start, end_index: end } = annotation;
      if (typeof end === "number") {
        if (end + shift <= 0) continue; // in a part that is closed
        annotation.end_index = end + shift;
      }
      if (typeof start === "number") annotation.start_index = Math.max(0, start + shift);
      this.#out.sendInPart(type, message, open, { ...event, annotation_index: open.annotations.length, annotation });
    }
  }

  #endMessage(item: SecondItem, wire: JsonObject): void {
    for (const [index, told] of objectsOf(wire.content).entries()) {
      if (isTextPart(told)) this.#catchUp(item, this.#partOf(item, { content_index: index }), textOf(told.text));
    }
    const message = this.#out.message;
    if (this.#isRepeating || message === undefined || isEmpty(message)) return;
    this.#out.closeMessage(textOf(wire.status) || "completed", wire);
  }

  #closeLeftovers(): void {
    if (this.#hasClosedLeftovers) return;
    this.#hasClosedLeftovers = true;
    this.#out.closeLeftovers();
  }

  #finish(type: string, event: JsonObject): void {
    this.#closeLeftovers();
    const response = objectOf(event.response);
    this.#fillFromOutput(objectsOf(response.output));
    this.#filter.end();
    this.#out.closeMessage(type === "response.completed" ? "completed" : "incomplete");
    this.#sendSnapshot(type, event, this.#out.finishedItems());
  }

  /** Items that the stream left out or never closed; told apart by type and order, as the stream decoder does it. */
  #fillFromOutput(output: readonly JsonObject[]): void {
    const seen = Map.groupBy(this.#items, ({ type }) => type);
    for (const wire of output) {
      const type = "response.output_item.done";
      const item = seen.get(textOf(wire.type))?.shift();
      if (item === undefined) this.#addWhole(wire);
      else if (!item.isDone) {
        item.isDone = true;
        if (item.kind === "message") this.#endMessage(item, wire);
        else if (item.kind === "passed") this.#pass(type, item, { type, item: { ...wire } });
      }
    }
  }

  #addWhole(wire: JsonObject): void {
    const item = this.#beginItem(textOf(wire.type), optionalText(wire.id));
    item.isDone = true;
    for (const type of ["response.output_item.added", "response.output_item.done"]) {
      const event = { type, item: { ...wire } };
      if (item.kind === "message") this.#takeMessageEvent(type, item, event);
      else if (item.kind === "passed") this.#pass(type, item, event);
    }
  }
}

function textOfItem({ type, content }: JsonObject): string {
  if (type !== "message") return "";
  return objectsOf(content)
    .map(({ text }) => textOf(text))
    .join("");
}

function isEmpty({ contents, part }: OpenMessage): boolean {
  return contents.size === 0 && (part === undefined || part.text === "");
}
