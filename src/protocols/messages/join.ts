// Going on with a stream of a Messages client: which answers can be continued, and what is asked for.

import { freshInput } from "../../generation/usage.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { hasMarker, markersOf } from "../markers.ts";
import { arrayOf, textOf } from "../reading.ts";
import { prefillOf } from "../seam.ts";
import type { SseEvent } from "../sse.ts";
import {
  askInTurns,
  limitsLeft,
  type SentAnswer,
  type SplitStream,
  type StreamJoin,
  splitAt,
  turnsBehind,
} from "../stream-join.ts";
import { wrapSeal } from "./foreign-seal.ts";
import { createStreamEncoder, type SentBlock } from "./stream-encoder.ts";
import { type Block, isBlock } from "./wire.ts";

export const messagesJoin: StreamJoin = { readSent, splitAtError, askForRest: askInTurns };

/** Where the client's message stands. */
interface Progress {
  text: string;
  thinking: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  hasStarted: boolean;
  open: SentBlock | undefined;
  /** Length of the text of the open block. */
  openText: number;
  nextIndex: number;
}

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const progress: Progress = {
    text: "",
    thinking: "",
    pieces: 0,
    hasStarted: false,
    open: undefined,
    openText: 0,
    nextIndex: 0,
  };
  for (const event of events) if (!follow(progress, event)) return undefined;
  const { text, pieces, hasStarted, openText, nextIndex } = progress;
  return {
    text,
    pieces,
    openText,
    movable: freshInput,
    hidesThoughts: nextIndex > 0,
    askToGoOn: (request) => askToGoOn(request, progress),
    encoder: hasStarted ? (context) => createStreamEncoder(context, progress) : undefined,
  };
}

/** False when nothing can be joined behind this event. */
function follow(progress: Progress, event: SseEvent): boolean {
  if (isError(event)) return false; // the client has been told
  const { open } = progress;
  const { type, value } = readEvent(event);
  switch (type) {
    case "message_start":
      if (progress.hasStarted || (isObject(value.message) && arrayOf(value.message.content).length > 0)) return false;
      progress.hasStarted = true;
      return true;
    case "content_block_start":
      return followStart(progress, value);
    case "content_block_delta":
      return open !== undefined && open.index === value.index && followDelta(progress, open, value.delta);
    case "content_block_stop":
      if (open === undefined || open.index !== value.index) return false;
      progress.open = undefined;
      progress.openText = 0;
      return true;
    case "message_delta":
      return !isObject(value.delta) || !isSet(value.delta.stop_reason);
    case "message_stop":
      return false;
    default:
      return true; // ping, and whatever comes to be
  }
}

function followStart(progress: Progress, { index, content_block: block }: JsonObject): boolean {
  if (!progress.hasStarted || progress.open !== undefined) return false;
  if (typeof index !== "number" || !Number.isInteger(index) || index < progress.nextIndex) return false;
  if (!isBlock(block) || !(block.type === "text" || isThinking(block)) || hasCitations(block)) return false;
  const text = block.type === "text" ? textOf(block.text) : "";
  progress.text += text;
  progress.nextIndex = index + 1;
  progress.openText = text.length;
  progress.open = { index, type: block.type, isSigned: block.type !== "thinking" };
  return true;
}

/** Citations hold for the text of their whole block, so that nothing can be written behind them in it. */
function followDelta(progress: Progress, open: SentBlock, delta: unknown): boolean {
  if (!isObject(delta) || delta.type === "citations_delta") return false;
  const text = delta.type === "text_delta" ? textOf(delta.text) : "";
  const thought = delta.type === "thinking_delta" ? textOf(delta.thinking) : "";
  progress.text += text;
  progress.thinking += thought;
  if (text !== "" || thought !== "") progress.pieces++;
  if (open.type === "text") progress.openText += text.length;
  if (delta.type === "signature_delta") open.isSigned = true;
  return true;
}

/** Only an event that is one has these bytes outside of a string; most have none of them. */
const ERROR_MARKERS = markersOf('"error"', "event: error", "event:error");

function splitAtError(events: Uint8Array): SplitStream | undefined {
  if (!hasMarker(events, ERROR_MARKERS)) return undefined;
  return splitAt(events, (event) => {
    if (!isError(event)) return undefined;
    const { value } = readEvent(event);
    return value.error ?? value;
  });
}

/** Proxies send errors without a type, or with data that is no JSON. */
function isError(event: SseEvent): boolean {
  const { type, value } = readEvent(event);
  return type === "error" || event.name === "error" || (type === "" && isSet(value.error));
}

function askToGoOn(request: JsonObject, { text, thinking, pieces }: Progress): JsonObject | undefined {
  const prefill = prefillOf(text);
  // The mark keeps the thinking from backends that would ask for its proof.
  const thoughts = thinking === "" ? [] : [{ type: "thinking", thinking, signature: wrapSeal({}) }];
  const turn = { content: [...thoughts, { type: "text", text: prefill }] };
  const messages = turnsBehind(request.messages, turn, prefill, () => thinking === "");
  return messages && { messages, ...limitsLeft(request, ["max_tokens"], pieces) };
}

/** As in the vendor's format the type stands in the data; the name of the event is what it falls back to. */
function readEvent({ name, data }: SseEvent): { type: string; value: JsonObject } {
  const value = parseObject(data) ?? {};
  return { type: typeof value.type === "string" ? value.type : (name ?? ""), value };
}

function isThinking({ type }: { type: string }): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

function hasCitations(block: Block): boolean {
  return arrayOf(block.citations).length > 0;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
