// A whole Messages answer told as a stream, and the other way round.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { mayLoseDigits } from "../../lib/json-digits.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import type { SseEvent } from "../sse.ts";
import { eventText } from "./wire.ts";

/** Members of a message that a stream tells at its end. */
const TOLD_IN_DELTA = ["stop_reason", "stop_sequence", "stop_details", "container"] as const;

/** A member of the last event itself. */
const TOLD_BESIDE = "context_management";

/**
 * Each text comes in one piece. Undefined where the input of a call would lose digits.
 * @param text - what the message was read from
 */
export function asStream(message: JsonObject, text: string): string | undefined {
  const blocks = objectsOf(message.content);
  if (blocks.some(({ type }) => type === "tool_use") && mayLoseDigits(text)) return undefined;
  const { [TOLD_BESIDE]: beside, ...members } = message;
  const usage = objectOf(message.usage);
  const begun: JsonObject = { ...members, content: [], stop_reason: null, stop_sequence: null };
  for (const name of ["stop_details", "container"]) if (name in begun) begun[name] = null;
  if (isObject(message.usage)) begun.usage = { ...usage, output_tokens: 0 };
  let events = eventText("message_start", { type: "message_start", message: begun });
  for (const [index, block] of blocks.entries()) {
    const { start, deltas } = piecesOf(block);
    events += eventText("content_block_start", { type: "content_block_start", index, content_block: start });
    for (const delta of deltas) {
      events += eventText("content_block_delta", { type: "content_block_delta", index, delta });
    }
    events += eventText("content_block_stop", { type: "content_block_stop", index });
  }
  const delta: JsonObject = {};
  for (const name of TOLD_IN_DELTA) if (name in message) delta[name] = message[name];
  const end = { type: "message_delta", delta, usage, ...(isPresent(beside) && { [TOLD_BESIDE]: beside }) };
  return `${events}${eventText("message_delta", end)}event: message_stop\ndata: {"type":"message_stop"}\n\n`;
}

function piecesOf(block: JsonObject): { start: JsonObject; deltas: JsonObject[] } {
  switch (block.type) {
    case "text": {
      const { citations, ...start } = block;
      const texts = textOf(block.text) === "" ? [] : [{ type: "text_delta", text: block.text }];
      const cited = objectsOf(citations).map((citation) => ({ type: "citations_delta", citation }));
      return {
        start: { ...start, text: "", ...(Array.isArray(citations) && { citations: [] }) },
        deltas: [...cited, ...texts],
      };
    }
    case "thinking": {
      const deltas: JsonObject[] = [];
      if (textOf(block.thinking) !== "") deltas.push({ type: "thinking_delta", thinking: block.thinking });
      if (textOf(block.signature) !== "") deltas.push({ type: "signature_delta", signature: block.signature });
      return { start: { ...block, thinking: "", signature: "" }, deltas };
    }
    case "tool_use": {
      const partial_json = JSON.stringify(block.input ?? {});
      return { start: { ...block, input: {} }, deltas: [{ type: "input_json_delta", partial_json }] };
    }
    default:
      return { start: block, deltas: [] };
  }
}

/** A block as far as it came. */
interface Block {
  members: JsonObject;
  /** The input of a call as it was written, so that its numbers keep their digits. */
  input: string | undefined;
}

interface JoinedMessage {
  message: JsonObject | undefined;
  blocks: Map<unknown, Block>;
  end: JsonObject | undefined;
}

/** Undefined where something came whose joining is not known. */
export function asWhole(events: readonly SseEvent[]): string | undefined {
  const told: JoinedMessage = { message: undefined, blocks: new Map(), end: undefined };
  for (const { data } of events) {
    const event = parseObject(data);
    if (event === undefined || !follow(told, event)) return undefined;
  }
  const { message, blocks, end } = told;
  if (message === undefined || end === undefined) return undefined;
  const written = [...blocks.values()].map(writtenBlock);
  if (written.includes(undefined)) return undefined;
  const { type: _type, delta, usage, ...beside } = end;
  const { content: _content, ...members } = message;
  const whole = { ...members, ...objectOf(delta), ...beside, usage: counted(message.usage, usage) };
  return `${JSON.stringify(whole).slice(0, -1)},"content":[${written.join(",")}]}`;
}

/** What the end counts replaces what the start did; a count that is null there is not known there. */
function counted(start: unknown, end: unknown): JsonObject {
  const counts = { ...objectOf(start) };
  for (const [name, value] of Object.entries(objectOf(end))) if (isPresent(value)) counts[name] = value;
  return counts;
}

function writtenBlock({ members, input }: Block): string | undefined {
  if (input === undefined || input === "") return JSON.stringify(members);
  if (parseObject(input) === undefined) return undefined;
  const { input: _begun, ...others } = members;
  return `${JSON.stringify(others).slice(0, -1)},"input":${input}}`;
}

/** False when it is not known what an event adds. */
function follow(told: JoinedMessage, event: JsonObject): boolean {
  switch (event.type) {
    case "ping":
    case "message_stop":
    case "content_block_stop":
      return true;
    case "message_start":
      if (told.message !== undefined || !isObject(event.message)) return false;
      told.message = event.message;
      return true;
    case "message_delta":
      told.end = { ...told.end, ...event };
      return true;
    case "content_block_start":
      if (!isObject(event.content_block) || told.blocks.has(event.index)) return false;
      told.blocks.set(event.index, { members: { ...event.content_block }, input: undefined });
      return true;
    case "content_block_delta": {
      const block = told.blocks.get(event.index);
      return block !== undefined && isObject(event.delta) && grow(block, event.delta);
    }
    default:
      return false;
  }
}

function grow(block: Block, delta: JsonObject): boolean {
  const { members } = block;
  switch (delta.type) {
    case "text_delta":
      members.text = textOf(members.text) + textOf(delta.text);
      return true;
    case "thinking_delta":
      members.thinking = textOf(members.thinking) + textOf(delta.thinking);
      return true;
    case "signature_delta":
      members.signature = textOf(delta.signature);
      return true;
    case "citations_delta":
      members.citations = [...objectsOf(members.citations), delta.citation];
      return true;
    case "input_json_delta":
      block.input = (block.input ?? "") + textOf(delta.partial_json);
      return true;
    default:
      return false;
  }
}
