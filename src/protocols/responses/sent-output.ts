// What a client of this format has seen of an answer that broke off: the items as far as they came, and what of them
// is still open.

import { compact, isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { nonEmptyText, objectOf, objectsOf, textOf, wholeNumberOf } from "../reading.ts";
import type { SseEvent } from "../sse.ts";

/** A content of a message, or a part of a reasoning item. */
interface SentPart {
  /** As it was added, or as it was when it was done. */
  wire: JsonObject;
  text: string;
  logprobs: unknown[];
  isAdded: boolean;
  isTextDone: boolean;
  isDone: boolean;
}

export interface SentItem {
  index: number;
  /** Some engines give none. */
  id: string | undefined;
  type: "message" | "reasoning";
  /** As it was added, or as it was when it was done. */
  wire: JsonObject;
  isDone: boolean;
  content: Map<number, SentPart>;
  summary: Map<number, SentPart>;
}

export interface SentOutput {
  /** Id, time and model of the first snapshot that had them. */
  identity: { id?: string; created_at?: number; model?: string };
  isInProgress: boolean;
  nextSequence: number;
  items: SentItem[];
  nextIndex: number;
  /** How many pieces of text and thought there were. */
  pieces: number;
}

/**
 * Undefined when nothing can go on behind it: an item other than a message or reasoning was begun, a refusal or
 * annotations were sent (a second answer would name the sources again), or the answer was finished.
 */
export function readSentOutput(events: readonly SseEvent[]): SentOutput | undefined {
  const sent: SentOutput = {
    identity: {},
    isInProgress: false,
    nextSequence: 0,
    items: [],
    nextIndex: 0,
    pieces: 0,
  };
  for (const { name, data } of events) {
    const event = parseObject(data);
    if (event !== undefined && !follow(sent, nonEmptyText(event.type) ?? name ?? "", event)) return undefined;
  }
  sent.items.sort((left, right) => left.index - right.index);
  return sent.items.every(isPlain) ? sent : undefined;
}

/** The part that is open in a list of them. */
export function openPart(parts: ReadonlyMap<number, SentPart>): SentPart | undefined {
  const last = [...parts.values()].at(-1);
  return last?.isDone === false ? last : undefined;
}

/** Whether it holds nothing but thoughts, or text without sources. */
function isPlain({ type, content }: SentItem): boolean {
  if (type === "reasoning") return true;
  return [...content.values()].every(({ wire }) => {
    return (wire.type ?? "output_text") === "output_text" && objectsOf(wire.annotations).length === 0;
  });
}

/** Places that an engine may leave out in its output. */
const MAX_GAP = 100;

const TEXT_EVENT =
  /^response\.(?:(output_text|reasoning_text|reasoning_summary_text)|content_part|reasoning_summary_part)\.(added|delta|done)$/;

/** Events that tell of what nothing can follow, if they are not told by their place. */
const CLOSING_EVENT = /^response\.(?:refusal|audio|output_text\.annotation)\./;

/** False when nothing can go on behind this event. */
function follow(sent: SentOutput, type: string, event: JsonObject): boolean {
  const number = wholeNumberOf(event.sequence_number);
  if (number !== undefined && number >= sent.nextSequence) sent.nextSequence = number + 1;
  switch (type) {
    case "response.created":
    case "response.queued":
    case "response.in_progress":
      if (type === "response.in_progress") sent.isInProgress = true;
      sent.identity = { ...identityOf(objectOf(event.response)), ...sent.identity };
      return true;
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "response.cancelled":
    case "error":
      return false;
    case "response.output_item.added":
      return !isPlaced(event) || itemOf(sent, event, textOf(objectOf(event.item).type)) !== undefined;
    case "response.output_item.done": {
      const item = itemOf(sent, event, textOf(objectOf(event.item).type));
      if (item !== undefined) finishItem(item, objectOf(event.item));
      return item !== undefined;
    }
  }
  const [isText, subject, step] = TEXT_EVENT.exec(type) ?? [];
  if (isText === undefined) return !CLOSING_EVENT.test(type) && (!isPlaced(event) || find(sent, event) !== undefined);
  const isThought = type.startsWith("response.reasoning") || objectOf(event.part).type === "reasoning_text";
  const item = itemOf(sent, event, isThought ? "reasoning" : "message");
  if (item === undefined) return false;
  if (item.isDone) return true;
  const isSummary = type.startsWith("response.reasoning_summary");
  const part = partAt(isSummary ? item.summary : item.content, isSummary ? event.summary_index : event.content_index);
  if (part.isDone) return true;
  if (subject === undefined) notePart(part, event, step === "done");
  else if (step === "delta") {
    part.text += textOf(event.delta);
    sent.pieces++;
    if (Array.isArray(event.logprobs)) for (const entry of event.logprobs as unknown[]) part.logprobs.push(entry);
  } else {
    catchUp(part, textOf(event.text));
    part.isTextDone = true;
  }
  return true;
}

function identityOf({ id, created_at, model }: JsonObject): SentOutput["identity"] {
  return compact({
    id: isPresent(id) ? textOf(id) : undefined,
    created_at: wholeNumberOf(created_at),
    model: isPresent(model) ? textOf(model) : undefined,
  });
}

/** Undefined for an item behind whose beginning nothing can go on. One that was never announced begins here. */
function itemOf(sent: SentOutput, event: JsonObject, type: string): SentItem | undefined {
  const known = find(sent, event, type);
  if (known !== undefined || (type !== "message" && type !== "reasoning")) return known;
  const index = wholeNumberOf(event.output_index) ?? sent.nextIndex;
  if (index > sent.nextIndex + MAX_GAP) return undefined;
  const item: SentItem = {
    index,
    id: idOf(event),
    type,
    wire: objectOf(event.item),
    isDone: false,
    content: new Map(),
    summary: new Map(),
  };
  sent.nextIndex = Math.max(sent.nextIndex, index + 1);
  sent.items.push(item);
  return item;
}

/** By id, else by place; some engines give neither, and then it is the last one. */
function find({ items }: SentOutput, event: JsonObject, type?: string): SentItem | undefined {
  const [id, index] = [idOf(event), wholeNumberOf(event.output_index)];
  const isType = (item: SentItem | undefined) => type === undefined || item?.type === type;
  const byId = id === undefined ? undefined : items.find((item) => item.id === id);
  if (byId !== undefined) return byId;
  if (index !== undefined) return items.find((item) => item.index === index && (item.isDone || isType(item)));
  const last = items.at(-1);
  return id === undefined && last?.isDone === false && isType(last) ? last : undefined;
}

function isPlaced(event: JsonObject): boolean {
  return wholeNumberOf(event.output_index) !== undefined || idOf(event) !== undefined || isObject(event.item);
}

function idOf(event: JsonObject): string | undefined {
  return nonEmptyText(event.item_id) ?? nonEmptyText(objectOf(event.item).id);
}

/** The part that an event speaks of; without a number, the one that is open, or the next. */
function partAt(parts: Map<number, SentPart>, place: unknown): SentPart {
  const last = [...parts].at(-1);
  const index = wholeNumberOf(place) ?? (last === undefined ? 0 : last[1].isDone ? last[0] + 1 : last[0]);
  let part = parts.get(index);
  if (part === undefined) {
    part = { wire: {}, text: "", logprobs: [], isAdded: false, isTextDone: false, isDone: false };
    parts.set(index, part);
  }
  return part;
}

function notePart(part: SentPart, event: JsonObject, isDone: boolean): void {
  part.isAdded = true;
  part.isDone ||= isDone;
  part.wire = objectOf(event.part);
  if (isDone) catchUp(part, textOf(part.wire.text));
}

/** Some engines tell the text only at the end. */
function catchUp(part: SentPart, whole: string): void {
  if (whole.startsWith(part.text)) part.text = whole;
}

function finishItem(item: SentItem, wire: JsonObject): void {
  if (item.isDone) return;
  item.isDone = true;
  item.wire = wire;
  if (item.type !== "message") return;
  for (const [index, part] of objectsOf(wire.content).entries()) {
    notePart(partAt(item.content, index), { part }, true);
  }
}
