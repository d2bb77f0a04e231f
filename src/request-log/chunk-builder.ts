// Gathers requests that are over into a chunk: what is to be kept of each is noted at once, while all of it is at hand, in one
// row of numbers and one look at what it has in common with those before.

import { getOrMake } from "../lib/get-or-make.ts";
import type { AttemptStep, RequestRecord, StoryStep } from "../stats/request-record.ts";
import { CAME, COLUMN_COUNT, COMMON, compress, FIRST_NUMBER, type FurtherSteps, pack } from "./chunk.ts";
import { type Common, commonOf, isCommonOf, plainAttempt, writeNumbersOf } from "./columns.ts";

/** The work of one write is bounded by both: it takes about a millisecond. Bytes are what stories hold in memory. */
const MOST_REQUESTS = 1_024;
const MOST_BYTES = 512 * 1024;
/** A further request is compared with this many of the latest. */
const MOST_COMPARED = 8;

/** Range of the numbers in one process's own ids. */
interface NumberRange {
  lowest: number;
  highest: number;
}

export class ChunkBuilder {
  readonly #ids: string[] = [];
  readonly #requestIds: string[] = [];
  readonly #commons: Common[] = [];
  readonly #numbers = new Float64Array(MOST_REQUESTS * COLUMN_COUNT);
  #openedUs = 0;
  readonly #ranges = new Map<string, NumberRange>();
  #process: string | undefined;
  #range: NumberRange = { lowest: 0, highest: 0 };
  #further: FurtherSteps | undefined;
  #bytes = 0;
  /** In microseconds since 1970, of those that came first and last. */
  firstUs = Number.POSITIVE_INFINITY;
  lastUs = 0;

  get count(): number {
    return this.#ids.length;
  }

  get isFull(): boolean {
    return this.count >= MOST_REQUESTS || this.#bytes >= MOST_BYTES;
  }

  /** Keys are the processes in the ids. */
  get ranges(): ReadonlyMap<string, NumberRange> {
    return this.#ranges;
  }

  add(story: RequestRecord, cameUs: number): void {
    const index = this.count;
    const step = plainAttempt(story);
    if (index === 0) this.#openedUs = cameUs;
    const row = index * COLUMN_COUNT;
    this.#numbers[row + COMMON] = this.#placeOfCommon(story, step);
    this.#numbers[row + CAME] = cameUs - this.#openedUs;
    writeNumbersOf(story, step, this.#numbers, row + FIRST_NUMBER);
    this.#ids.push(story.id);
    this.#requestIds.push(story.requestId);
    if (step === undefined) {
      this.#further ??= {};
      this.#further[index] = { steps: story.steps.map(asWritten), droppedSteps: story.droppedSteps };
    }
    if (cameUs < this.firstUs) this.firstUs = cameUs;
    if (cameUs > this.lastUs) this.lastUs = cameUs;
    this.#bytes += story.weighedBytes || story.bytes; // weighed when it ended, but for refusals
    this.#noteId(story.id);
  }

  rows(): Uint8Array {
    const header = { ids: this.#ids, requestIds: this.#requestIds, commons: this.#commons, openedUs: this.#openedUs };
    return pack(header, this.#numbers);
  }

  /** Empty if the columns hold everything. */
  steps(): Uint8Array {
    return this.#further === undefined ? new Uint8Array(0) : compress(Buffer.from(JSON.stringify(this.#further)));
  }

  #placeOfCommon(story: RequestRecord, step: AttemptStep | undefined): number {
    const commons = this.#commons;
    for (let place = commons.length - 1; place >= 0 && place >= commons.length - MOST_COMPARED; place--) {
      if (isCommonOf(commons[place] as Common, story, step)) return place;
    }
    return commons.push(commonOf(story, step)) - 1;
  }

  /** The process is nearly always the same one. */
  #noteId(id: string): void {
    const { process, number } = partsOf(id);
    if (process !== this.#process) {
      this.#process = process;
      this.#range = getOrMake(this.#ranges, process, () => ({ lowest: number, highest: number }));
    }
    if (number < this.#range.lowest) this.#range.lowest = number;
    if (number > this.#range.highest) this.#range.highest = number;
  }
}

/** Splits an id made by lib/own-ids.ts. */
export function partsOf(ownId: string): { process: string; number: number } {
  const dash = ownId.lastIndexOf("-");
  const number = Number(ownId.slice(dash + 1));
  return Number.isSafeInteger(number) ? { process: ownId.slice(0, dash), number } : { process: ownId, number: 0 };
}

/** Microseconds are enough, and their digits are most of what a step needs on disk. */
function asWritten(step: StoryStep): StoryStep {
  const atMs = short(step.atMs) as number;
  if (step.kind !== "attempt") return { ...step, atMs };
  const { durationMs, firstByteMs } = step;
  const written = { ...step, atMs, durationMs: short(durationMs), firstByteMs: short(firstByteMs) };
  if (step.detail !== undefined && isInBackendsWords(step)) delete written.detail;
  return written;
}

/** Backends quote in their errors what they were asked: no content of a request is written. */
function isInBackendsWords({ failure = "" }: AttemptStep): boolean {
  return failure.startsWith("status_") || failure === "told_in_stream";
}

function short(durationMs: number | undefined): number | undefined {
  return durationMs === undefined ? undefined : Math.round(durationMs * 1000) / 1000;
}
