// Image requests and answers that pass: what their answers counted, and whether their streams were complete.

import type { Usage } from "../../generation/usage.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { Verdict } from "../answer-reader.ts";
import type { AnswerEdits, PassThrough, StreamWatch, WatchOptions } from "../protocol.ts";
import { addCounts, decodeTokenCounts } from "../token-counts.ts";
import { type ImageEvent, imageEvents } from "./image-event.ts";
import { ImageStreamEdits } from "./stream-edits.ts";

export const imagesPassThrough: PassThrough = {
  usageOf: ({ usage, data }) => withImages(decodeTokenCounts(usage), Array.isArray(data) ? data.length : 0),
  preamble: new Set(["ping", "keepalive"]),
  asEvents: (answer) => Buffer.concat([DATA, onOneLine(answer), EVENT_END]),
  watch: (options) => new ImageWatch(options),
};

/** Some vendors have a price for each picture, and count no tokens. */
function withImages(counted: Usage | undefined, images: number): Usage | undefined {
  if (images === 0) return counted;
  return { ...(counted ?? NO_TOKENS), images };
}

const NO_TOKENS: Usage = { input: { total: 0 }, output: { total: 0 } };

const DATA = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

/** In JSON, ends of lines stand between its words only. */
function onOneLine(json: Uint8Array): Buffer {
  const line = Buffer.from(json);
  for (const end of [LINE_FEED, CARRIAGE_RETURN]) {
    for (let at = line.indexOf(end); at >= 0; at = line.indexOf(end, at + 1)) line[at] = SPACE;
  }
  return line;
}

/** What an event means for the end of its stream; any other means nothing. */
const MEANINGS: ReadonlyMap<string, "complete" | "completed" | "usage" | "done" | "error"> = new Map([
  ...["image_generation", "image_edit"].flatMap((prefix) =>
    (["complete", "completed", "usage"] as const).map((kind) => [`${prefix}.${kind}`, kind] as const),
  ),
  ["done", "done"],
  ["error", "error"],
]);

class ImageWatch implements StreamWatch {
  readonly itemIds: readonly string[] = [];
  readonly #edits: AnswerEdits | undefined;
  readonly #images: number;
  /** Last images that have come, by each of their names. */
  readonly #came = { complete: 0, completed: 0 };
  #isOver = false;
  reported: JsonObject | undefined;
  #counts: JsonObject | undefined;
  #left: Uint8Array | undefined;

  constructor({ choices, edits }: WatchOptions) {
    this.#images = choices;
    this.#edits = edits;
  }

  /** A backend with the specification's names says by itself that it is done. */
  get isDone(): boolean {
    return this.#isOver || (this.#came.complete === 0 && this.#came.completed >= this.#images);
  }

  /** What the client has not been told yet. */
  get endMarker(): Uint8Array | undefined {
    return this.#left;
  }

  get usage(): Usage | undefined {
    return withImages(decodeTokenCounts(this.#counts), Math.max(this.#came.complete, this.#came.completed));
  }

  push(received: Uint8Array): Uint8Array | undefined {
    const found = imageEvents(received);
    for (const event of found) this.#see(event);
    const edits = this.#edits;
    if (edits === undefined) return received;
    const events = edits instanceof ImageStreamEdits ? edits.edit(received, found) : edits.push(received);
    return events.length === 0 ? undefined : events;
  }

  verdict(): Verdict {
    if (this.reported !== undefined) return "reported";
    const { complete, completed } = this.#came;
    if (!this.#isOver && Math.max(complete, completed) < this.#images) return "incomplete";
    this.#left ??= this.#edits?.end?.();
    return this.#left === undefined ? "done" : "finished";
  }

  #see(event: ImageEvent): void {
    const meaning = event.type === "" ? "other" : MEANINGS.get(event.type);
    switch (meaning) {
      case undefined:
        return;
      case "done":
        this.#isOver = true;
        return;
      case "error":
        this.reported = event.said.members;
        return;
      case "other":
        if (event.isDoneMarker) this.#isOver = true;
        else this.#readWhole(event.said.members);
        return;
      default: {
        const { usage } = event.said.members;
        if (meaning !== "usage") this.#came[meaning]++;
        if (isObject(usage)) this.#counts = meaning === "usage" ? usage : addCounts(this.#counts, usage);
      }
    }
  }

  /** A whole answer in place of a stream. */
  #readWhole({ data, usage }: JsonObject): void {
    if (!Array.isArray(data)) return;
    this.#isOver = true;
    if (isObject(usage)) this.#counts = usage;
  }
}
