// Taking over a stream whose clients read this format: what they have seen, what to ask the next backend for, and how its
// stream goes on behind it.

import { type JsonObject, parseObject } from "../../lib/json.ts";
import { hasMarker, markersOf } from "../markers.ts";
import { objectOf, textOf } from "../reading.ts";
import { prefillOf } from "../seam.ts";
import type { SseEvent } from "../sse.ts";
import { limitsLeft, type SentAnswer, type SplitStream, type StreamJoin, splitAt } from "../stream-join.ts";
import { openPart, readSentOutput, type SentOutput } from "./sent-output.ts";
import { ResponsesStreamEncoder } from "./stream-encoder.ts";

export const responsesJoin: StreamJoin = { readSent, splitAtError, askForRest };

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const sent = readSentOutput(events);
  if (sent === undefined) return undefined;
  const { items, pieces, nextIndex, nextSequence, identity } = sent;
  const messages = items.filter(({ type }) => type === "message");
  const parts = messages.flatMap(({ content }) => [...content.values()]);
  const last = messages.findLast(({ isDone }) => !isDone);
  const open = last && openPart(last.content);
  const hasBegun = nextIndex > 0 || nextSequence > 0 || Object.keys(identity).length > 0;
  const text = parts.map((part) => part.text).join("");
  return {
    text,
    pieces,
    openText: open?.isTextDone === false ? open.text.length : 0,
    // An item without contents counts: reasoning would stand behind it.
    hidesThoughts: nextIndex > 0,
    askToGoOn: (request) => askToGoOn(request, sent, text),
    encoder: hasBegun ? (context) => new ResponsesStreamEncoder(context, sent) : undefined,
  };
}

const ERROR_MARKERS = markersOf('"error"', "response.failed");

/** An answer that merely speaks of errors is told apart by the place of the word. */
function splitAtError(events: Uint8Array): SplitStream | undefined {
  return hasMarker(events, ERROR_MARKERS) ? splitAt(events, ({ data }) => errorOf(parseObject(data))) : undefined;
}

/** Also for an event without a type, which is a chat engine's way of telling of an error. */
function errorOf(event: JsonObject | undefined): unknown {
  if (event === undefined) return undefined;
  switch (event.type) {
    case "response.failed":
      return objectOf(event.response).error ?? event;
    case "error":
      return event.error ?? event;
    case undefined:
      return event.error ?? undefined;
    default:
      return undefined;
  }
}

/** An item of the assistant's at the end of the input is its own: what follows is a turn's second message. */
function askToGoOn(request: JsonObject, { items, pieces }: SentOutput, text: string): JsonObject {
  const thoughts = items.filter(({ type, isDone }) => type === "reasoning" && isDone).map(({ wire }) => wire);
  const turn = [...thoughts, messageOf("assistant", "output_text", prefillOf(text))];
  return { input: [...itemsOf(request), ...turn], ...limitsLeft(request, ["max_output_tokens"], pieces) };
}

function askForRest(request: JsonObject, text: string, prompt: string): JsonObject {
  return {
    input: [...itemsOf(request), messageOf("assistant", "output_text", text), messageOf("user", "input_text", prompt)],
  };
}

function itemsOf({ input }: JsonObject): unknown[] {
  return Array.isArray(input) ? (input as unknown[]) : [messageOf("user", "input_text", textOf(input))];
}

function messageOf(role: string, type: string, text: string): JsonObject {
  return { type: "message", role, content: [{ type, text }] };
}
