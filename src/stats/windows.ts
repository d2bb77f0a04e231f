// Sums over all time and over windows, in one block of numbers that never grows.

import { RING_COUNT, type RingPosition, SLOT_COUNT, type WindowSlot } from "../lib/time-rings.ts";

const FIELDS = 7;
/** Files of earlier versions: without `succeeded`, and with the latency of failures in the sum. */
const EARLIER_FIELDS = 6;
/** Behind the slots of the rings stands what was counted over all time. */
const ALL_TIME = SLOT_COUNT;

export interface Sums {
  requests: number;
  failed: number;
  /** Those whose latency is in the sum. */
  succeeded: number;
  latencyMs: number;
  promptTokens: number;
  completionTokens: number;
  /** Time of the requests whose completion tokens are counted. */
  generatingMs: number;
}

/** Of those that succeeded: a refusal is quick, and a timeout says nothing of the model. In hundredths. */
export function averageLatency({ latencyMs, succeeded }: Sums): number {
  return succeeded === 0 ? 0 : Math.round((latencyMs / succeeded) * 100) / 100;
}

/** Slot, bucket, and the sums in their order on the block; bucket -1: all time. */
export type WrittenSums = number[];

export class WindowedSums {
  readonly #values = new Float64Array((SLOT_COUNT + 1) * FIELDS);
  /** The bucket that a slot holds; an older one is forgotten when the slot is written again. */
  readonly #buckets = new Int32Array(SLOT_COUNT);

  add(
    { slots, buckets }: RingPosition,
    requests: number,
    failed: number,
    succeeded: number,
    latencyMs: number,
    promptTokens: number,
    completionTokens: number,
    generatingMs: number,
  ): void {
    const values = this.#values;
    for (let ring = 0; ring <= RING_COUNT; ring++) {
      const slot = ring === RING_COUNT ? ALL_TIME : (slots[ring] as number);
      const base = slot * FIELDS;
      if (ring < RING_COUNT && this.#buckets[slot] !== buckets[ring]) {
        this.#buckets[slot] = buckets[ring] as number;
        values.fill(0, base, base + FIELDS);
      }
      values[base] = (values[base] as number) + requests;
      values[base + 1] = (values[base + 1] as number) + failed;
      values[base + 2] = (values[base + 2] as number) + latencyMs;
      values[base + 3] = (values[base + 3] as number) + promptTokens;
      values[base + 4] = (values[base + 4] as number) + completionTokens;
      values[base + 5] = (values[base + 5] as number) + generatingMs;
      values[base + 6] = (values[base + 6] as number) + succeeded;
    }
  }

  /** Undefined: all time. */
  sum(window: readonly WindowSlot[] | undefined): Sums {
    const total = new Array<number>(FIELDS).fill(0);
    const addSlot = (slot: number) => {
      for (let field = 0; field < FIELDS; field++) {
        total[field] = (total[field] as number) + (this.#values[slot * FIELDS + field] as number);
      }
    };
    if (window === undefined) addSlot(ALL_TIME);
    else for (const { slot, bucket } of window) if (this.#buckets[slot] === bucket) addSlot(slot);
    const [requests, failed, latencyMs, promptTokens, completionTokens, generatingMs, succeeded] = total as Seven;
    return { requests, failed, succeeded, latencyMs, promptTokens, completionTokens, generatingMs };
  }

  write(): WrittenSums[] {
    const written: WrittenSums[] = [];
    for (let slot = 0; slot <= ALL_TIME; slot++) {
      const numbers = this.#values.subarray(slot * FIELDS, (slot + 1) * FIELDS);
      if (numbers.every((number) => number === 0)) continue;
      written.push([slot === ALL_TIME ? -1 : slot, this.#buckets[slot] ?? -1, ...numbers.map(rounded)]);
    }
    return written;
  }

  /** `isSlot` says whether a slot still means what it meant when it was written. */
  restore(written: readonly WrittenSums[], isSlot: (slot: number, bucket: number) => boolean): void {
    for (const [slot, bucket, ...numbers] of written) {
      if (numbers.length === EARLIER_FIELDS) addSucceeded(numbers);
      if (slot === undefined || bucket === undefined || numbers.length !== FIELDS) continue;
      if (slot === -1) this.#values.set(numbers, ALL_TIME * FIELDS);
      else if (isSlot(slot, bucket)) {
        this.#buckets[slot] = bucket;
        this.#values.set(numbers, slot * FIELDS);
      }
    }
  }
}

type Seven = [number, number, number, number, number, number, number];

/** The average stays what it was. */
function addSucceeded(numbers: number[]): void {
  const [requests = 0, failed = 0, latencyMs = 0] = numbers;
  const succeeded = requests - failed;
  numbers[2] = requests === 0 ? 0 : (latencyMs * succeeded) / requests;
  numbers.push(succeeded);
}

/** Microseconds are enough, and make the file half as long. */
function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
