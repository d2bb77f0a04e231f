// Whether a stream of chat or text completion chunks was complete, told by the last events that went by.
// Cheap while the stream runs: events are only looked into when the stream ends, or when several choices are awaited.

import { isPresent, type JsonObject, parseObject } from "../lib/json.ts";
import type { Verdict } from "./answer-reader.ts";
import { objectsOf, wholeNumberOf } from "./reading.ts";
import { eventData } from "./sse.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const COLON = 58;
const CLOSING_BRACKET = 93;
const LINE_FEED = 10;

/** How much of the last events is looked into. */
const TAIL_BYTES = 64 * 1024;

export class StreamEnding {
  /** Pieces of whole events, newest first, without pieces that hold only a comment. */
  #last: Uint8Array | undefined;
  #second: Uint8Array | undefined;
  #third: Uint8Array | undefined;
  readonly #choices: number;
  /** The last event with an error; to be asked after verdict(). */
  reported: JsonObject | undefined;
  /** Indexes of choices; at most as many as were asked for. */
  readonly #finished = new Set<number>();

  constructor(choices: number) {
    this.#choices = choices;
  }

  /** Remembers a piece of whole events; true when the answer's own end marker, [DONE], is its last event. */
  saw(events: Uint8Array): boolean {
    if (events[0] === COLON && eventData(decoder.decode(events)).length === 0) return false; // a keep-alive comment
    this.#third = this.#second;
    this.#second = this.#last;
    this.#last = events;
    // Choices may finish at any time, one by one.
    if (this.#choices > 1) this.#noteFinished(decoder.decode(events));
    return endsWithBracket(events) && isDoneMarker(lastData(events));
  }

  /** What the end of the stream means; `reported` = the backend itself has reported an error. */
  verdict(): Verdict {
    const text = this.#tail();
    const payloads = eventData(text);
    if (text.includes('"error"')) this.reported = payloads.map(parseObject).findLast(hasError);
    if (this.reported !== undefined) return "reported";
    if (payloads.some(isDoneMarker)) return "done";
    this.#noteFinished(text);
    return this.#finished.size >= this.#choices ? "finished" : "incomplete";
  }

  #noteFinished(text: string): void {
    if (this.#finished.size >= this.#choices || !text.includes('"finish_reason":')) return;
    for (const data of eventData(text)) {
      for (const { index, finish_reason } of objectsOf(parseObject(data)?.choices)) {
        // Of a single choice any index is believed; otherwise a backend could make up ever new ones.
        const choice = this.#choices === 1 ? 0 : wholeNumberOf(index ?? 0);
        if (isPresent(finish_reason) && choice !== undefined && choice < this.#choices) this.#finished.add(choice);
      }
    }
  }

  #tail(): string {
    const pieces = [this.#third, this.#second, this.#last].filter((piece) => piece !== undefined);
    return pieces.map((piece) => decoder.decode(piece.subarray(-TAIL_BYTES))).join("");
  }
}

/** A chunk of no choice, as the one with the counts. */
export function saysNothing({ choices }: JsonObject): boolean {
  return Array.isArray(choices) && choices.length === 0;
}

/** The bytes behind the last whole event, when they are an event that only lacks its empty line: with it. */
export function lastEvent(rest: Uint8Array): Uint8Array | undefined {
  if (rest.length === 0 || !isWholeEvent(rest)) return undefined;
  return Buffer.concat([rest, encoder.encode(rest.at(-1) === LINE_FEED ? "\n" : "\n\n")]);
}

/** Whether bytes behind the last whole event are an event that only lacks its empty line. */
export function isWholeEvent(rest: Uint8Array): boolean {
  const [data, ...others] = eventData(decoder.decode(rest));
  return data !== undefined && others.length === 0 && (isDoneMarker(data) || parseObject(data) !== undefined);
}

/** A quick look before decoding: "]" before the line ends of the last event. */
function endsWithBracket(events: Uint8Array): boolean {
  const { length } = events;
  return (
    events[length - 3] === CLOSING_BRACKET ||
    (events[length - 5] === CLOSING_BRACKET && events[length - 1] === LINE_FEED)
  );
}

/** The data of the last event, if it fits into a few bytes as the end marker does. */
function lastData(events: Uint8Array): string | undefined {
  return /(?:^|[\r\n])data:([^\r\n]*)[\r\n]+$/.exec(decoder.decode(events.subarray(-32)))?.[1];
}

function isDoneMarker(data: string | undefined): boolean {
  return data?.trim() === "[DONE]";
}

function hasError(event: JsonObject | undefined): boolean {
  return isPresent(event?.error);
}
