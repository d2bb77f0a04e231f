// The events of an answer -> the event stream of a Responses answer.

import { isSearch } from "../../generation/answer-losses.ts";
import type { Citation, ReasoningPart, SearchResultPart } from "../../generation/content.ts";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import type { Failure, Finish } from "../../generation/result.ts";
import type { Usage } from "../../generation/usage.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext, StreamEncoder } from "../protocol.ts";
import { failureCode } from "./errors.ts";
import { encodeFinish } from "./finish.ts";
import { imageItem, type OutputRules, opaqueItem, outputRules, reasoningId, thoughtsToken } from "./output-items.ts";
import {
  createFrame,
  frameOf,
  type ResponseFrame,
  type ResponseState,
  responseObject,
  withOwnMembers,
} from "./response-object.ts";
import type { SentOutput } from "./sent-output.ts";
import { EventSequence, itemId } from "./sequence.ts";
import {
  CallWriter,
  closeThoughts,
  type ItemWriter,
  MessageWriter,
  OutputList,
  ReasoningWriter,
  SearchWriter,
} from "./stream-items.ts";

/** The part that is open besides tool calls. Its item is added with its first character, so that none stays empty. */
type Current =
  /** `citations` came before the text, as some backends send them. */
  | { type: "text" | "refusal"; index: number; isShown: boolean; citations: Citation[] }
  | { type: "reasoning"; index: number; part: ReasoningPart; writer: ReasoningWriter | undefined };

const BEGUN: ResponseState = {
  status: "in_progress",
  error: null,
  incomplete_details: null,
  output: [],
  usage: undefined,
};

export class ResponsesStreamEncoder implements StreamEncoder {
  readonly #context: AnswerContext;
  readonly #rules: OutputRules;
  readonly #sequence: EventSequence;
  readonly #list: OutputList;
  #frame: ResponseFrame | undefined;
  /** What an earlier backend left, until something follows it. */
  #sent: SentOutput | undefined;
  /** Items that are not closed yet, in the order of the output. */
  #open: ItemWriter[] = [];
  #current: Current | undefined;
  /** The message that further text joins. */
  #message: MessageWriter | undefined;
  readonly #calls = new Map<number, CallWriter | SearchWriter>();
  readonly #searches = new Map<string, SearchWriter>();
  #usage: Usage | undefined;
  #finish: Finish | undefined;
  /** The final response as a backend of this format tells it. */
  #ownEnd: JsonObject | undefined;

  /** @param sent - what an earlier backend has said of this answer: this one goes on behind it */
  constructor(context: AnswerContext, sent?: SentOutput) {
    this.#context = context;
    this.#rules = { ...outputRules(context), keepsIds: sent !== undefined };
    this.#sequence = new EventSequence(sent?.nextSequence);
    this.#list = new OutputList(this.#sequence, sent && finishedItems(sent));
    if (sent !== undefined) this.#goOn(sent);
  }

  push(event: GenerationEvent): string {
    switch (event.type) {
      case "delta":
        return this.#delta(event);
      case "start":
        return this.#begin(event.id, event.createdAt);
      case "part-start":
        return this.#begin("", 0) + this.#closeSent(event.part) + this.#startPart(event.index, event.part);
      case "part-end":
        return this.#endPart(event.index);
      case "seal":
        return this.#seal(event);
      case "citation":
        this.#cite(event.index, event.citation);
        return "";
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        this.#finish = event.finish;
        this.#ownEnd = event.own;
        return this.#begin("", 0) + this.#closeSent() + this.#closeAll(event.finish);
      case "failure":
        return this.#begin("", 0) + this.#fail(event.failure);
      case "unknown":
        return this.#pass(event.value);
    }
  }

  end(): string {
    if (this.#finish === undefined) return "";
    const ending = encodeFinish(this.#finish);
    const state = { ...ending, error: null, output: this.#list.items, usage: { counts: this.#usage } };
    return this.#snapshot(`response.${ending.status}`, state, this.#ownEnd);
  }

  #begin(id: string, createdAt: number): string {
    if (this.#frame !== undefined) return "";
    this.#frame = createFrame({ id, createdAt }, this.#context);
    return this.#snapshot("response.created", BEGUN) + this.#snapshot("response.in_progress", BEGUN);
  }

  #goOn(sent: SentOutput): void {
    this.#sent = sent;
    this.#frame = frameOf(sent.identity, this.#context);
    for (const { id } of sent.items) if (id !== undefined) this.#rules.usedIds.add(id);
    const message = sent.items.findLast(({ type, isDone }) => type === "message" && !isDone);
    if (message === undefined) return;
    this.#message = new MessageWriter(this.#list, message.id, message);
    this.#open.push(this.#message);
  }

  /** Whatever an earlier backend left open is closed before something follows, but for the message: text goes on in it. */
  #closeSent(next?: PartStart): string {
    const sent = this.#sent;
    if (sent === undefined) return "";
    this.#sent = undefined;
    const isBegun = sent.isInProgress || sent.nextIndex > 0;
    let events = isBegun ? "" : this.#snapshot("response.in_progress", BEGUN);
    for (const item of sent.items) {
      if (item.isDone || item.index === this.#message?.index) continue;
      if (item.type === "reasoning") events += closeThoughts(item, this.#list);
      else {
        const message = new MessageWriter(this.#list, item.id, item);
        events += message.end() + message.close("completed");
      }
    }
    if (next !== undefined && next.type !== "text") events += this.#message?.end() ?? "";
    return events;
  }

  /** An unknown event, with this answer's number and identity where it has one. */
  #pass({ sequence_number: number, ...value }: JsonObject): string {
    const type = String(value.type);
    if (isObject(value.response) && this.#frame !== undefined) {
      const { head, echo } = this.#frame;
      value.response = { ...value.response, id: head.id, created_at: head.created_at, model: echo.model };
    }
    if (number !== undefined) return this.#sequence.event(type, value);
    return `event: ${type}\ndata: ${JSON.stringify(value)}\n\n`;
  }

  #snapshot(type: string, state: ResponseState, own?: JsonObject): string {
    if (this.#frame === undefined) return "";
    const response = responseObject(this.#frame, state);
    return this.#sequence.event(type, { response: own === undefined ? response : withOwnMembers(response, own) });
  }

  #startPart(index: number, part: PartStart): string {
    switch (part.type) {
      case "text":
      case "refusal":
        this.#current = {
          type: part.type,
          index,
          isShown: part.type === "text" && this.#message?.goOn() === true,
          citations: [],
        };
        return "";
      case "reasoning":
        this.#current = { type: "reasoning", index, part: { ...part, text: "" }, writer: undefined };
        return "";
      case "tool-call": {
        if (part.serverSide !== true) return this.#addCall(index, new CallWriter(this.#list, part, index, this.#rules));
        if (!isSearch(part)) return "";
        const search = new SearchWriter(this.#list, index, this.#rules);
        this.#searches.set(part.id, search);
        return this.#addCall(index, search);
      }
      case "search-result":
        return this.#endSearch(part);
      case "image":
        return this.#addWhole(imageItem(itemId("ig", this.#context, index), part), {
          status: "in_progress",
          result: null,
        });
      case "opaque":
        return this.#addWhole(opaqueItem(part, index, this.#rules), {});
      case "audio":
        return ""; // No request of this format can ask for it.
    }
  }

  #delta({ index, text, own }: Extract<GenerationEvent, { type: "delta" }>): string {
    const current = this.#current;
    if (current === undefined || current.index !== index) return this.#calls.get(index)?.delta(text) ?? "";
    if (current.type === "reasoning") {
      current.part.text += text;
      if (!this.#rules.showsThoughts) return "";
      return this.#openReasoning(current) + (current.writer?.delta(text) ?? "");
    }
    if (current.isShown && this.#message !== undefined) return this.#message.delta(text, own);
    current.isShown = true;
    const message = this.#message ?? new MessageWriter(this.#list, itemId("msg", this.#context, index));
    const opened = message === this.#message ? "" : this.#add(message);
    this.#message = message;
    const events = opened + message.openContent(current.type);
    for (const citation of current.citations) message.cite(citation);
    return events + message.delta(text, own);
  }

  #cite(index: number, citation: Citation): void {
    const current = this.#current;
    if (current?.index !== index || current.type !== "text") return;
    if (current.isShown) this.#message?.cite(citation);
    else current.citations.push(citation);
  }

  /** The item is added with the first of the thoughts, or with their proof. */
  #openReasoning(current: Extract<Current, { type: "reasoning" }>): string {
    if (current.writer !== undefined) return "";
    current.writer = new ReasoningWriter(this.#list, reasoningId(current.part.itemId, current.index, this.#rules));
    return this.#add(current.writer);
  }

  #seal({ index, origin, signature, sealed }: Extract<GenerationEvent, { type: "seal" }>): string {
    const current = this.#current;
    if (current?.type !== "reasoning" || current.index !== index) return "";
    current.part.origin = origin;
    if (signature !== undefined) current.part.signature = signature;
    if (sealed !== undefined) current.part.sealed = sealed;
    return "";
  }

  #endPart(index: number): string {
    if (this.#current?.index === index) return this.#endCurrent();
    const call = this.#calls.get(index);
    // A search ends with its results.
    return call instanceof CallWriter ? call.end() : "";
  }

  #endCurrent(): string {
    const current = this.#current;
    this.#current = undefined;
    if (current === undefined) return "";
    if (current.type !== "reasoning") return current.isShown ? (this.#message?.end() ?? "") : "";
    const token = thoughtsToken(current.part, this.#rules);
    const events = token === undefined ? "" : this.#openReasoning(current);
    if (current.writer === undefined) return "";
    current.writer.token = token;
    return events + current.writer.end();
  }

  #endSearch(result: SearchResultPart): string {
    const search = this.#searches.get(result.callId);
    if (search === undefined || !search.isOpen) return "";
    const events = search.resolve(result);
    this.#open = this.#open.filter((item) => item !== search);
    return events + search.close("completed");
  }

  /** A further item: those that ended are closed before it. */
  #add(item: ItemWriter): string {
    const events = this.#closeEnded();
    this.#open.push(item);
    return events + item.open();
  }

  #addCall(index: number, call: CallWriter | SearchWriter): string {
    this.#calls.set(index, call);
    return this.#add(call);
  }

  #addWhole(item: JsonObject | undefined, unfinished: JsonObject): string {
    if (item === undefined) return "";
    const events = this.#closeEnded();
    const index = this.#list.nextIndex;
    return events + this.#list.add({ ...item, ...unfinished }) + this.#list.done(index, item);
  }

  #closeEnded(): string {
    let events = "";
    const stillOpen: ItemWriter[] = [];
    for (const item of this.#open) {
      if (item.isOpen) stillOpen.push(item);
      else events += item.close("completed");
    }
    this.#open = stillOpen;
    this.#message = undefined;
    return events;
  }

  #closeAll(finish: Finish): string {
    const { status } = encodeFinish(finish);
    let events = this.#endCurrent();
    const last = this.#list.nextIndex - 1;
    for (const item of this.#open) events += item.end() + item.close(item.index === last ? status : "completed");
    this.#open = [];
    this.#message = undefined;
    return events;
  }

  /**
   * Both, as the public service does: the openai SDK's helper throws on `error` only (a failed response is returned as
   * any other), the AI SDK reports the first of the two, and Codex reads `response.failed` only.
   */
  #fail(failure: Failure): string {
    const error = { code: failureCode(failure), message: failure.message };
    const state = { status: "failed", incomplete_details: null, output: this.#list.items } as const;
    return (
      this.#sequence.event("error", { ...error, param: null }) +
      this.#snapshot("response.failed", { ...state, error, usage: this.#usage && { counts: this.#usage } })
    );
  }
}

/** By their places; undefined where one is open. */
function finishedItems({ items, nextIndex }: SentOutput): (JsonObject | undefined)[] {
  const finished: (JsonObject | undefined)[] = Array.from({ length: nextIndex });
  for (const { index, isDone, wire } of items) if (isDone) finished[index] = wire;
  return finished;
}
