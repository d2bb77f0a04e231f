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
  readonly #finished = new Set<number>();
  #isBlocked = false;
  /** Of several, the last one holds all counts. */
  #counts: Uint8Array | undefined;
  #error: Uint8Array | undefined;

  constructor({ choices, edits }: WatchOptions) {
    this.#choices = choices;
    this.#edits = edits;
  }

  push(events: Uint8Array): Uint8Array {
    if (hasMarker(events, ENDS)) this.#noteEnds(events);
    if (hasMarker(events, COUNTS)) this.#counts = events;
    if (hasMarker(events, ERROR)) this.#error = events;
    return this.#edits === undefined ? events : this.#edits.push(events);
  }

  verdict(): Verdict {
    this.reported = answersIn(this.#error).find(hasError);
    if (this.reported !== undefined) return "reported";
    return this.#isBlocked || this.#finished.size >= this.#choices ? "done" : "incomplete";
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
        const isKnown = choice !== undefined && choice < this.#choices;
        if (nonEmptyText(finishReason) !== undefined && isKnown) this.#finished.add(choice);
      }
    }
  }
}

function answersIn(events: Uint8Array | undefined): JsonObject[] {
  if (events === undefined) return [];
  const answers = eventData(decoder.decode(events)).map(parseObject);
  return answers.filter((answer) => answer !== undefined);
}
