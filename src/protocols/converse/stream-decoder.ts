// The events of ConverseStream -> neutral events. The counts come behind the reason why the model stopped, in an event of
// their own, which is the last one.

import type { Citation } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import { compact, isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { PartEvents } from "../part-events.ts";
import { DecodeError, type StreamDecoder } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, textOf, wholeNumberOf } from "../reading.ts";
import { decodeError } from "./errors.ts";
import { decodeFinish, failureOf } from "./finish-reason.ts";
import { decodeUsage } from "./usage.ts";

type SpokenKind = "text" | "reasoning";

interface OpenBlock {
  kind: SpokenKind | "tool";
  part: number;
}

export function createStreamDecoder(): StreamDecoder {
  return new ConverseDecoder();
}

export class ConverseDecoder implements StreamDecoder {
  readonly #parts = new PartEvents();
  /** By contentBlockIndex. */
  readonly #open = new Map<number, OpenBlock>();
  #hasStarted = false;
  #hasToolCalls = false;
  #isOver = false;
  /** Why the model stopped; undefined while it has not. */
  #stopReason: string | undefined;

  push(data: string, name = ""): readonly GenerationEvent[] {
    const event = parseObject(data);
    if (event === undefined) throw new DecodeError("is no JSON object");
    return this.pushEvent(name, event);
  }

  /** @param name - of the event, as the service model spells it */
  pushEvent(name: string, event: JsonObject): readonly GenerationEvent[] {
    if (!this.#isOver) this.#read(name, event);
    return this.#parts.take();
  }

  end(): readonly GenerationEvent[] {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#parts.endAll();
      if (this.#stopReason !== undefined) {
        this.#parts.push({ type: "finish", finish: decodeFinish(this.#stopReason, this.#hasToolCalls) });
      }
    }
    return this.#parts.take();
  }

  #read(name: string, event: JsonObject): void {
    switch (name) {
      case "messageStart":
        this.#start();
        break;
      case "contentBlockStart":
        this.#startBlock(indexOf(event), objectOf(event.start));
        break;
      case "contentBlockDelta":
        this.#delta(indexOf(event), objectOf(event.delta));
        break;
      case "contentBlockStop":
        this.#stopBlock(indexOf(event));
        break;
      case "messageStop":
        this.#stop(textOf(event.stopReason));
        break;
      case "metadata":
        this.#count(event.usage);
        break;
      case "error":
        this.#isOver = true;
        this.#parts.push({ type: "failure", failure: decodeError(200, event) });
        break;
      default: // an event that this gateway does not know
    }
  }

  #start(): void {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#parts.push({ type: "start", id: "", model: "", createdAt: 0 });
  }

  #stop(reason: string): void {
    const failure = failureOf(reason);
    if (failure === undefined) {
      this.#stopReason = reason;
      return;
    }
    this.#isOver = true;
    this.#parts.push({ type: "failure", failure });
  }

  #count(value: unknown): void {
    const usage = decodeUsage(value);
    this.#start();
    if (usage !== undefined) this.#parts.push({ type: "usage", usage });
    // Nothing follows: the answer is over, though the connection may stay open for a moment.
    if (this.#stopReason === undefined) return;
    this.#isOver = true;
    this.#parts.endAll();
    this.#parts.push({ type: "finish", finish: decodeFinish(this.#stopReason, this.#hasToolCalls) });
  }

  #startBlock(index: number, { toolUse, image }: JsonObject): void {
    this.#start();
    if (isObject(toolUse)) this.#startCall(index, toolUse);
    else if (image !== undefined) throw new DecodeError("begins a picture, which was not asked for");
  }

  #startCall(index: number, { toolUseId, name: given, type }: JsonObject): void {
    const id = nonEmptyText(toolUseId);
    const name = nonEmptyText(given);
    if (id === undefined || name === undefined) throw new DecodeError("has a tool call without its id or name");
    const isServerSide = type === "server_tool_use";
    if (!isServerSide) this.#hasToolCalls = true;
    const part = this.#parts.start({ type: "tool-call", id, name, ...(isServerSide && { serverSide: true }) });
    this.#open.set(index, { kind: "tool", part });
  }

  #delta(index: number, { text, toolUse, reasoningContent, citation }: JsonObject): void {
    if (typeof text === "string") {
      if (text !== "") this.#parts.delta(this.#ensure("text", index), text);
    } else if (isObject(toolUse)) this.#argue(index, textOf(toolUse.input));
    else if (isObject(reasoningContent)) this.#think(index, reasoningContent);
    else if (isObject(citation)) this.#parts.cite(this.#ensure("text", index), decodeCitation(citation));
  }

  #argue(index: number, fragment: string): void {
    const open = this.#open.get(index);
    if (open?.kind !== "tool") throw new DecodeError("has arguments outside of a tool call");
    this.#parts.delta(open.part, fragment);
  }

  #think(index: number, { text, signature, redactedContent }: JsonObject): void {
    const part = this.#ensure("reasoning", index);
    this.#parts.delta(part, textOf(text));
    const seal = compact({ signature: nonEmptyText(signature), sealed: nonEmptyText(redactedContent) });
    if (Object.keys(seal).length > 0) this.#parts.push({ type: "seal", index: part, origin: "converse", ...seal });
  }

  /** Text and thoughts begin with their first piece: they have no event that announces them. */
  #ensure(kind: SpokenKind, index: number): number {
    const open = this.#open.get(index);
    if (open?.kind === kind && this.#parts.isOpen(open.part)) return open.part;
    this.#start();
    const part = this.#parts.start({ type: kind });
    this.#open.set(index, { kind, part });
    return part;
  }

  #stopBlock(index: number): void {
    this.#parts.end(this.#open.get(index)?.part);
    this.#open.delete(index);
  }
}

function indexOf({ contentBlockIndex }: JsonObject): number {
  return wholeNumberOf(contentBlockIndex) ?? 0;
}

export function decodeCitation(value: JsonObject): Citation {
  const url = nonEmptyText(objectOf(objectOf(value.location).web).url) ?? nonEmptyText(value.source);
  const cited = objectsOf(value.sourceContent)
    .map(({ text }) => textOf(text))
    .join("");
  return {
    ...compact({ url, title: nonEmptyText(value.title), citedText: nonEmptyText(cited) }),
    origin: { protocol: "converse", value },
  };
}
