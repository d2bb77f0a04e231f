// Streams of generateContent answers that pass untouched: whether they were complete, and what they counted. Events are
// recognised by their bytes; few are decoded. Such a stream has no end marker: it ends when the connection does.

import type { Usage } from "../../generation/usage.ts";
import { isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { Verdict } from "../answer-reader.ts";
import { hasMarker, markersOf } from "../markers.ts";
import type { AnswerEdits, StreamWatch, WatchOptions } from "../protocol.ts";
import { nonEmptyText, objectOf, objectsOf, wholeNumberOf } from "../reading.ts";
import { eventData } from "../sse.ts";
import { hasError } from "./errors.ts";
import { decodeUsage } from "./usage.ts";

/** A quote inside a JSON string is escaped, so that text never looks like a member. */
const ENDS = markersOf('"finishReason"', '"blockReason"');
const COUNTS = markersOf('"usageMetadata"');
const ERROR = markersOf('"error"');

const decoder = new TextDecoder();

export class ContentWatch implements StreamWatch {
  readonly endMarker = undefined;
  readonly itemIds: readonly string[] = [];
  readonly isDone = false;
  reported: JsonObject | undefined;
  readonly #choices: number;
  readonly #edits: AnswerEdits | undefined;
  /** Of each candidate that was seen, whether it has ended: there may be fewer than were asked for. */
  readonly #ended = new Map<number, boolean>();
  #isBlocked = false;
  /** Of several, the last one holds all counts. */
  #counts: Uint8Array | undefined;
  #error: Uint8Array | undefined;

  constructor({ choices, edits }: WatchOptions) {
    this.#choices = choices;
    this.#edits = edits;
  }

  push(events: Uint8Array): Uint8Array {
    if (this.#choices > 1 || hasMarker(events, ENDS)) this.#noteEnds(events);
    if (hasMarker(events, COUNTS)) this.#counts = events;
    if (hasMarker(events, ERROR)) this.#error = events;
    return this.#edits === undefined ? events : this.#edits.push(events);
  }

  verdict(): Verdict {
    this.reported = answersIn(this.#error).find(hasError);
    if (this.reported !== undefined) return "reported";
    const ends = [...this.#ended.values()];
    return this.#isBlocked || (ends.length > 0 && ends.every(Boolean)) ? "done" : "incomplete";
  }

  get usage(): Usage | undefined {
    const told = answersIn(this.#counts).findLast(({ usageMetadata }) => isPresent(usageMetadata));
    return decodeUsage(told?.usageMetadata);
  }

  #noteEnds(events: Uint8Array): void {
    for (const { candidates, promptFeedback } of answersIn(events)) {
      if (nonEmptyText(objectOf(promptFeedback).blockReason) !== undefined) this.#isBlocked = true;
      for (const { index, finishReason } of objectsOf(candidates)) {
        // Of a single choice any index is believed; otherwise a backend could make up ever new ones.
        const choice = this.#choices === 1 ? 0 : wholeNumberOf(index ?? 0);
        if (choice === undefined || choice >= this.#choices) continue;
        this.#ended.set(choice, nonEmptyText(finishReason) !== undefined || this.#ended.get(choice) === true);
      }
    }
  }
}

function answersIn(events: Uint8Array | undefined): JsonObject[] {
  if (events === undefined) return [];
  const answers = eventData(decoder.decode(events)).map(parseObject);
  return answers.filter((answer) => answer !== undefined);
}
