// What a client of this format has seen of an answer, told by the events that were sent: enough to close what is open and
// to go on behind it.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { countOf, isGiven, objectOf, objectsOf, optionalText, textOf } from "./wire.ts";

/** The text part of a message that is open. */
export interface OpenPart {
  index: number;
  /** As it was added. */
  part: JsonObject;
  text: string;
  logprobs: unknown[];
  annotations: unknown[];
  isTextDone: boolean;
}

export interface OpenMessage {
  type: "message";
  index: number;
  id: string | undefined;
  /** As it was added. */
  item: JsonObject;
  /** Finished contents by their index. */
  contents: Map<number, JsonObject>;
  nextContent: number;
  part: OpenPart | undefined;
}

/** A part of a reasoning item. */
export interface Thought {
  text: string;
  isAdded: boolean;
  isTextDone: boolean;
  isDone: boolean;
}

export interface OpenReasoning {
  type: "reasoning";
  index: number;
  id: string | undefined;
  item: JsonObject;
  summary: Map<number, Thought>;
  content: Map<number, Thought>;
}

interface OpenOther {
  type: "other";
  index: number;
  id: string | undefined;
  item: JsonObject;
}

export type OpenItem = OpenMessage | OpenReasoning | OpenOther;

/** Plain data, so that it can be cloned. */
export interface SeenAnswer {
  /** Id, time and model of the first snapshot that had them. */
  identity: JsonObject;
  hasBegun: boolean;
  isInProgress: boolean;
  /** False when no other stream can go on behind this one. */
  isJoinable: boolean;
  nextSequence: number;
  nextIndex: number;
  /** By output_index. */
  finished: Map<number, JsonObject>;
  open: OpenItem[];
  itemIds: Set<string>;
  text: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
}

export function newAnswer(): SeenAnswer {
  return {
    identity: {},
    hasBegun: false,
    isInProgress: false,
    isJoinable: true,
    nextSequence: 0,
    nextIndex: 0,
    finished: new Map(),
    open: [],
    itemIds: new Set(),
    text: "",
    pieces: 0,
  };
}

export function typeOf(event: JsonObject, name: string | undefined): string {
  return optionalText(event.type) ?? name ?? "";
}

/** The type of the item that an event speaks of; undefined when its name does not tell. */
export function itemTypeOf(type: string, event: JsonObject): string | undefined {
  if (isObject(event.item)) return textOf(event.item.type);
  if (type.startsWith("response.reasoning_")) return "reasoning";
  if (type.startsWith("response.content_part."))
    return objectOf(event.part).type === "reasoning_text" ? "reasoning" : "message";
  if (type.startsWith("response.output_text.") || type.startsWith("response.refusal.")) return "message";
  return undefined;
}

/** Takes an event that was sent into account. */
export function note(answer: SeenAnswer, type: string, event: JsonObject): void {
  const number = countOf(event.sequence_number);
  if (number !== undefined && number >= answer.nextSequence) answer.nextSequence = number + 1;
  switch (type) {
    case "response.created":
    case "response.queued":
    case "response.in_progress":
      noteSnapshot(answer, type, objectOf(event.response));
      return;
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "response.cancelled":
    case "error":
      answer.isJoinable = false;
      return;
    case "response.output_item.done":
      finishItem(answer, event);
      return;
    default:
      noteItemEvent(answer, type, event);
  }
}

const IDENTITY = ["id", "created_at", "model"] as const;

function noteSnapshot(answer: SeenAnswer, type: string, response: JsonObject): void {
  answer.hasBegun = true;
  if (type === "response.in_progress") answer.isInProgress = true;
  for (const name of IDENTITY) {
    if (isGiven(response[name])) answer.identity[name] ??= response[name];
  }
}

function noteItemEvent(answer: SeenAnswer, type: string, event: JsonObject): void {
  const isAdded = type === "response.output_item.added";
  const itemType = itemTypeOf(type, event);
  if (itemType === undefined && !isPlaced(event)) {
    if (type.startsWith("response.audio.")) answer.isJoinable = false;
    return; // keep-alives and the like
  }
  const item =
    findOpen(answer, event, itemType) ?? (wasSeen(answer, event) ? undefined : begin(answer, event, itemType));
  if (item === undefined || isAdded) return;
  if (item.type === "message") noteMessage(answer, item, type, event);
  else if (item.type === "reasoning") {
    noteReasoning(item, type, event);
    if (isThoughtDelta(type)) answer.pieces++;
  }
}

function isPlaced(event: JsonObject): boolean {
  return countOf(event.output_index) !== undefined || idOf(event) !== undefined;
}

function idOf(event: JsonObject): string | undefined {
  return optionalText(event.item_id) ?? optionalText(objectOf(event.item).id);
}

/** By id, else by place; some engines give neither, and then it is the last one. */
function findOpen({ open }: SeenAnswer, event: JsonObject, itemType: string | undefined): OpenItem | undefined {
  const index = countOf(event.output_index);
  const id = idOf(event);
  const byId = id === undefined ? undefined : open.find((item) => item.id === id);
  if (byId !== undefined) return byId;
  const isKind = (item: OpenItem | undefined) => itemType === undefined || item?.type === kindOf(itemType);
  if (index !== undefined) return open.find((item) => item.index === index && isKind(item));
  const last = open.at(-1);
  return id === undefined && isKind(last) ? last : undefined;
}

function kindOf(itemType: string | undefined): OpenItem["type"] {
  return itemType === "message" || itemType === "reasoning" ? itemType : "other";
}

/** Whether an event speaks of an item that is over. */
function wasSeen(answer: SeenAnswer, event: JsonObject): boolean {
  const index = countOf(event.output_index);
  if (index !== undefined) return answer.finished.has(index);
  const id = idOf(event);
  return id !== undefined && answer.itemIds.has(id);
}

function begin(answer: SeenAnswer, event: JsonObject, type: string | undefined): OpenItem {
  const id = idOf(event);
  const index = countOf(event.output_index) ?? answer.nextIndex;
  answer.nextIndex = Math.max(answer.nextIndex, index + 1);
  if (id !== undefined) answer.itemIds.add(id);
  const place = { index, id };
  const item = openItem(place, type, objectOf(event.item));
  if (item.type === "other") answer.isJoinable = false;
  answer.open.push(item);
  return item;
}

function openItem(
  place: { index: number; id: string | undefined },
  type: string | undefined,
  item: JsonObject,
): OpenItem {
  switch (type) {
    case "message": {
      const usual = { id: place.id, type, role: "assistant", status: "in_progress" };
      return { type, ...place, item: { ...usual, ...item }, contents: new Map(), nextContent: 0, part: undefined };
    }
    case "reasoning":
      return { type, ...place, item: { id: place.id, type, ...item }, summary: new Map(), content: new Map() };
    default:
      return { type: "other", ...place, item };
  }
}

function noteMessage(answer: SeenAnswer, message: OpenMessage, type: string, event: JsonObject): void {
  switch (type) {
    case "response.output_text.delta": {
      const part = partOf(message, event);
      if (part === undefined) return;
      const delta = textOf(event.delta);
      part.text += delta;
      answer.text += delta;
      answer.pieces++;
      if (Array.isArray(event.logprobs)) for (const entry of event.logprobs as unknown[]) part.logprobs.push(entry);
      return;
    }
    case "response.output_text.done": {
      const part = partOf(message, event);
      if (part === undefined) return;
      catchUp(answer, part, textOf(event.text));
      part.isTextDone = true;
      return;
    }
    case "response.output_text.annotation.added":
      answer.isJoinable = false;
      partOf(message, event)?.annotations.push(event.annotation);
      return;
    case "response.content_part.added":
      addPart(answer, message, event);
      return;
    case "response.content_part.done":
      finishPart(answer, message, event);
      return;
    default:
      if (type.startsWith("response.refusal.")) answer.isJoinable = false;
  }
}

function contentIndexOf(message: OpenMessage, event: JsonObject): number {
  return countOf(event.content_index) ?? message.part?.index ?? message.nextContent;
}

/** The open part that an event speaks of; one that was never added begins here. Undefined when it is over. */
function partOf(message: OpenMessage, event: JsonObject): OpenPart | undefined {
  const index = contentIndexOf(message, event);
  if (message.part?.index === index) return message.part;
  if (message.contents.has(index)) return undefined;
  return openPart(message, index, {});
}

function openPart(message: OpenMessage, index: number, part: JsonObject): OpenPart {
  const unclosed = message.part;
  if (unclosed !== undefined) message.contents.set(unclosed.index, wholePart(unclosed, {}));
  const usual = { type: "output_text", annotations: [] };
  message.part = {
    index,
    part: { ...usual, ...part },
    text: "",
    logprobs: [],
    annotations: [],
    isTextDone: false,
  };
  message.nextContent = Math.max(message.nextContent, index + 1);
  return message.part;
}

/** Some engines tell the text only at the end. */
function catchUp(answer: SeenAnswer, part: OpenPart, whole: string): void {
  if (!whole.startsWith(part.text)) return;
  answer.text += whole.slice(part.text.length);
  part.text = whole;
}

function addPart(answer: SeenAnswer, message: OpenMessage, event: JsonObject): void {
  const index = contentIndexOf(message, event);
  const part = objectOf(event.part);
  if (isTextPart(part)) {
    openPart(message, index, part);
    return;
  }
  answer.isJoinable = false;
  message.nextContent = Math.max(message.nextContent, index + 1);
}

export function isTextPart(part: JsonObject): boolean {
  return part.type === "output_text" || part.type === undefined;
}

function finishPart(answer: SeenAnswer, message: OpenMessage, event: JsonObject): void {
  const part = objectOf(event.part);
  const index = contentIndexOf(message, event);
  if (!isTextPart(part) || objectsOf(part.annotations).length > 0) answer.isJoinable = false;
  const open = isTextPart(part) ? partOf(message, event) : undefined;
  if (open !== undefined) catchUp(answer, open, textOf(part.text));
  if (message.part?.index === index) message.part = undefined;
  message.contents.set(index, part);
  message.nextContent = Math.max(message.nextContent, index + 1);
}

/** A text part as its content_part.done tells it. `told` is how another backend tells the same part. */
export function wholePart({ part, text, annotations, logprobs }: OpenPart, told: JsonObject): JsonObject {
  if (told.text === text) return told;
  const whole = { ...told, ...part, text, annotations };
  return "logprobs" in whole || logprobs.length > 0 ? { ...whole, logprobs } : whole;
}

function finishItem(answer: SeenAnswer, event: JsonObject): void {
  const wire = objectOf(event.item);
  const type = textOf(wire.type);
  const item = findOpen(answer, event, type) ?? (wasSeen(answer, event) ? undefined : begin(answer, event, type));
  if (item === undefined) return;
  answer.open = answer.open.filter((other) => other !== item);
  answer.finished.set(item.index, wire);
  if (item.type !== "message") return;
  for (const [index, part] of objectsOf(wire.content).entries()) {
    if (!isTextPart(part) || objectsOf(part.annotations).length > 0) answer.isJoinable = false;
    if (item.contents.has(index)) continue;
    const open = partOf(item, { content_index: index });
    if (open !== undefined) catchUp(answer, open, textOf(part.text));
  }
}

function noteReasoning(item: OpenReasoning, type: string, event: JsonObject): void {
  switch (type) {
    case "response.reasoning_summary_part.added":
      thoughtAt(item.summary, event.summary_index).isAdded = true;
      return;
    case "response.reasoning_summary_text.delta":
      thoughtAt(item.summary, event.summary_index).text += textOf(event.delta);
      return;
    case "response.reasoning_summary_text.done":
      finishThought(thoughtAt(item.summary, event.summary_index), textOf(event.text));
      return;
    case "response.reasoning_summary_part.done":
      thoughtAt(item.summary, event.summary_index).isDone = true;
      return;
    case "response.content_part.added":
      thoughtAt(item.content, event.content_index).isAdded = true;
      return;
    case "response.reasoning_text.delta":
      thoughtAt(item.content, event.content_index).text += textOf(event.delta);
      return;
    case "response.reasoning_text.done":
      finishThought(thoughtAt(item.content, event.content_index), textOf(event.text));
      return;
    case "response.content_part.done":
      thoughtAt(item.content, event.content_index).isDone = true;
      return;
  }
}

export function isThoughtDelta(type: string): boolean {
  return type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta";
}

function thoughtAt(thoughts: Map<number, Thought>, place: unknown): Thought {
  const index = countOf(place) ?? 0;
  const known = thoughts.get(index);
  if (known !== undefined) return known;
  const thought = { text: "", isAdded: false, isTextDone: false, isDone: false };
  thoughts.set(index, thought);
  return thought;
}

function finishThought(thought: Thought, whole: string): void {
  thought.isTextDone = true;
  if (whole !== "") thought.text = whole;
}
