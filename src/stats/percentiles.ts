// Percentiles of latencies without keeping the latencies: a log-linear histogram whose buckets are 1/32 of an octave wide.
// What is answered is the middle of the bucket in which the exact value lies, which is at most 1/64 (1.6 %) off.

import { RING_COUNT, type RingPosition, SLOT_COUNT, type WindowSlot } from "../lib/time-rings.ts";

/** Largest distance of an answer from the exact value, as a part of it, between the limits below. */
export const RELATIVE_ERROR = 1 / 64;

const SUB_BUCKETS = 32;
/** 1/16 ms; everything below is one bucket. */
const MIN_EXPONENT = -4;
/** 2^22 ms, seventy minutes; everything above is one bucket. */
const MAX_EXPONENT = 22;
const BUCKETS = (MAX_EXPONENT - MIN_EXPONENT) * SUB_BUCKETS;

export const MIN_LATENCY_MS = 2 ** MIN_EXPONENT;
export const MAX_LATENCY_MS = 2 ** MAX_EXPONENT;

// Exponent and first five bits of the mantissa of a double stand side by side: together they number the buckets.
const BITS_OF_ONE = 0x3ff00000;
const SHIFT = 15;
const OFFSET = (BITS_OF_ONE >>> SHIFT) + MIN_EXPONENT * SUB_BUCKETS;

/** Reads the bits of doubles; one per histogram, as nothing here lives at module level. */
class BucketFinder {
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);

  find(latencyMs: number): number {
    if (!(latencyMs > MIN_LATENCY_MS)) return 0;
    if (latencyMs >= MAX_LATENCY_MS) return BUCKETS - 1;
    this.#double[0] = latencyMs;
    return ((this.#words[1] as number) >>> SHIFT) - OFFSET;
  }
}

/** The middle of a bucket. */
function middleOf(bucket: number): number {
  const octave = 2 ** (MIN_EXPONENT + Math.floor(bucket / SUB_BUCKETS));
  return octave * (1 + ((bucket % SUB_BUCKETS) + 0.5) / SUB_BUCKETS);
}

/** Slot, bucket of time, then pairs of bucket of latency and count; slot -1: all time. */
export type WrittenLatencies = number[];

export class WindowedLatencies {
  readonly #finder = new BucketFinder();
  /** Doubles for all time, because a 32-bit count of it would overflow in a busy year. */
  readonly #allTime = new Float64Array(BUCKETS);
  readonly #slots = new Uint32Array(SLOT_COUNT * BUCKETS);
  readonly #buckets = new Int32Array(SLOT_COUNT);

  add({ slots, buckets }: RingPosition, latencyMs: number): void {
    const bucket = this.#finder.find(latencyMs);
    this.#allTime[bucket] = (this.#allTime[bucket] as number) + 1;
    for (let ring = 0; ring < RING_COUNT; ring++) {
      const slot = slots[ring] as number;
      const base = slot * BUCKETS;
      if (this.#buckets[slot] !== buckets[ring]) {
        this.#buckets[slot] = buckets[ring] as number;
        this.#slots.fill(0, base, base + BUCKETS);
      }
      this.#slots[base + bucket] = (this.#slots[base + bucket] as number) + 1;
    }
  }

  /** By nearest rank: the smallest latency that at least this part of all requests did not exceed. Undefined: all time. */
  percentiles(window: readonly WindowSlot[] | undefined, parts: readonly number[]): number[] {
    let counts: Float64Array = this.#allTime;
    if (window !== undefined) {
      counts = new Float64Array(BUCKETS);
      for (const { slot, bucket } of window) {
        if (this.#buckets[slot] !== bucket) continue;
        for (let index = 0; index < BUCKETS; index++) {
          counts[index] = (counts[index] as number) + (this.#slots[slot * BUCKETS + index] as number);
        }
      }
    }
    const total = counts.reduce((sum, count) => sum + count, 0);
    return parts.map((part) => (total === 0 ? 0 : valueAtRank(counts, Math.max(1, Math.ceil(part * total)))));
  }

  write(): WrittenLatencies[] {
    const written: WrittenLatencies[] = [];
    const writeSlot = (slot: number, bucket: number, counts: Float64Array | Uint32Array) => {
      const pairs: number[] = [];
      for (const [index, count] of counts.entries()) if (count > 0) pairs.push(index, count);
      if (pairs.length > 0) written.push([slot, bucket, ...pairs]);
    };
    for (let slot = 0; slot < SLOT_COUNT; slot++) {
      if (this.#buckets[slot] === 0) continue;
      writeSlot(slot, this.#buckets[slot] as number, this.#slots.subarray(slot * BUCKETS, (slot + 1) * BUCKETS));
    }
    writeSlot(-1, -1, this.#allTime);
    return written;
  }

  restore(written: readonly WrittenLatencies[], isSlot: (slot: number, bucket: number) => boolean): void {
    for (const [slot, bucket, ...pairs] of written) {
      if (slot === undefined || bucket === undefined) continue;
      if (slot !== -1 && !isSlot(slot, bucket)) continue;
      const counts = slot === -1 ? this.#allTime : this.#slots.subarray(slot * BUCKETS, (slot + 1) * BUCKETS);
      if (slot !== -1) this.#buckets[slot] = bucket;
      for (let index = 0; index + 1 < pairs.length; index += 2) {
        const latencyBucket = pairs[index] as number;
        if (latencyBucket < BUCKETS) counts[latencyBucket] = pairs[index + 1] as number;
      }
    }
  }
}

function valueAtRank(counts: Float64Array, rank: number): number {
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += counts[bucket] as number;
    if (seen >= rank) return middleOf(bucket);
  }
  return middleOf(BUCKETS - 1);
}
