// Taking over a stream whose clients read this format: what they have seen, what to ask the next backend for, and how its
// stream goes on behind it.

import { type JsonObject, parseObject } from "../../lib/json.ts";
import { hasMarker, markersOf } from "../markers.ts";
import { readEvents } from "../sse.ts";
import { limitsLeft, prefillOf, type SentAnswer, type SplitStream, type StreamJoin, splitAt } from "../stream-join.ts";
import { newAnswer, note, type SeenAnswer, typeOf } from "./join-state.ts";
import { Joiner } from "./joiner.ts";
import { objectOf, textOf } from "./wire.ts";

const decoder = new TextDecoder();

export const responsesJoin: StreamJoin = { readSent, splitAtError, askForRest };

/**
 * Undefined when nothing can be joined: an item other than a message or reasoning was begun, a refusal or annotations
 * were sent (a second answer would tell the sources anew), or the answer was finished.
 */
function readSent(events: readonly Uint8Array[]): SentAnswer | undefined {
  const answer = newAnswer();
  for (const { name, data } of readEvents(events.map((piece) => decoder.decode(piece)).join(""))) {
    const event = parseObject(data);
    if (event !== undefined) note(answer, typeOf(event, name), event);
    if (!answer.isJoinable) return undefined;
  }
  return {
    text: answer.text,
    askToGoOn: (request) => askToGoOn(request, answer),
    joiner(mode) {
      const joiner = new Joiner(structuredClone(answer), mode);
      return (further) => joiner.push(further);
    },
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
function askToGoOn(request: JsonObject, { text, finished, pieces }: SeenAnswer): JsonObject {
  const thoughts = [...finished.values()].filter(({ type }) => type === "reasoning");
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
