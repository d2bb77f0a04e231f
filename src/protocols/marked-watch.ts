// Streams that pass untouched and whose last event says so, as of Messages and Responses: whether they were complete, and
// what they counted. Events are recognised by their bytes; few are decoded.

import type { Usage } from "../generation/usage.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import type { Verdict } from "./answer-reader.ts";
import { hasMarker, type Markers } from "./markers.ts";
import type { AnswerEdits, StreamWatch, WatchOptions } from "./protocol.ts";
import { readEvents } from "./sse.ts";

/** What is looked for. A quote inside a JSON string is escaped, so text never looks like a marker. */
export interface Marks {
  /** Only the last event of a complete answer has one. */
  end: Markers;
  /** What is read besides the first events of a stream. */
  counts: Markers;
  /** The counts so far, with those of one more event. */
  countsIn(event: JsonObject, before: JsonObject | undefined): JsonObject | undefined;
  decodeCounts(counts: JsonObject | undefined): Usage | undefined;
  /** Ids under which the vendor keeps the items of the answer; undefined: the event is not the whole of it. */
  itemIdsIn?(event: JsonObject): readonly string[] | undefined;
}

const decoder = new TextDecoder();

export class MarkedWatch implements StreamWatch {
  /** Every complete stream has its last event. */
  readonly endMarker = undefined;
  itemIds: readonly string[] = [];
  readonly #marks: Marks;
  readonly #edits: AnswerEdits | undefined;
  #isFirst = true;
  isDone = false;
  reported: JsonObject | undefined;
  #last: Uint8Array | undefined;
  #counts: JsonObject | undefined;

  constructor(marks: Marks, { edits }: Pick<WatchOptions, "edits"> = {}) {
    this.#marks = marks;
    this.#edits = edits;
  }

  get usage(): Usage | undefined {
    return this.#marks.decodeCounts(this.#counts);
  }

  push(events: Uint8Array): Uint8Array {
    const { end, counts } = this.#marks;
    this.#last = events;
    const isEnd = hasMarker(events, end);
    if (isEnd) this.isDone = true;
    if (this.#isFirst || (counts === end ? isEnd : hasMarker(events, counts))) this.#read(events);
    this.#isFirst = false;
    return this.#edits === undefined ? events : this.#edits.push(events);
  }

  verdict(): Verdict {
    if (this.isDone) return "done";
    const last = this.#last === undefined ? undefined : readEvents(decoder.decode(this.#last)).at(-1);
    const event = last && parseObject(last.data);
    if (event?.type !== "error") return "incomplete";
    this.reported = event;
    return "reported";
  }

  #read(events: Uint8Array): void {
    const { countsIn, itemIdsIn } = this.#marks;
    for (const { data } of readEvents(decoder.decode(events))) {
      const event = parseObject(data);
      if (event === undefined) continue;
      this.#counts = countsIn(event, this.#counts);
      this.itemIds = itemIdsIn?.(event) ?? this.itemIds;
    }
  }
}
