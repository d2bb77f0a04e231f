// Percentiles of latencies without keeping the latencies: a log-linear histogram. What is answered is the middle of the
// bucket in which the exact value lies.

import { RING_COUNT, type RingPosition, SLOT_COUNT, type WindowSlot } from "../lib/time-rings.ts";

/**
 * How many bits of a latency's mantissa number its bucket. An answer is at most half a bucket off, as a part of the exact
 * value: 1.6 % where it is fine (0.8 MB), 6.3 % where it is coarse (0.2 MB).
 */
export const FINE = 5;
export const COARSE = 3;

/** Largest distance of an answer from the exact value, as a part of it, between the limits below. */
export function relativeError(bits: number): number {
  return 1 / 2 ** (bits + 1);
}

/** 1/16 ms; everything below is one bucket. */
const MIN_EXPONENT = -4;
/** 2^22 ms, seventy minutes; everything above is one bucket. */
const MAX_EXPONENT = 22;
const OCTAVES = MAX_EXPONENT - MIN_EXPONENT;

export const MIN_LATENCY_MS = 2 ** MIN_EXPONENT;
export const MAX_LATENCY_MS = 2 ** MAX_EXPONENT;

// Exponent and first bits of the mantissa of a double stand side by side: together they number the buckets.
const BITS_OF_ONE = 0x3ff00000;
const MANTISSA_BITS = 20;

/** Reads the bits of doubles; one per histogram, as nothing here lives at module level. */
class BucketFinder {
  readonly #shift: number;
  readonly #offset: number;
  readonly #last: number;
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);

  constructor(bits: number) {
    this.#shift = MANTISSA_BITS - bits;
    this.#offset = (BITS_OF_ONE >>> this.#shift) + MIN_EXPONENT * 2 ** bits;
    this.#last = OCTAVES * 2 ** bits - 1;
  }

  find(latencyMs: number): number {
    if (!(latencyMs > MIN_LATENCY_MS)) return 0;
    if (latencyMs >= MAX_LATENCY_MS) return this.#last;
    this.#double[0] = latencyMs;
    return ((this.#words[1] as number) >>> this.#shift) - this.#offset;
  }
}

/** The middle of a bucket. */
function middleOf(bucket: number, perOctave: number): number {
  const octave = 2 ** (MIN_EXPONENT + Math.floor(bucket / perOctave));
  return octave * (1 + ((bucket % perOctave) + 0.5) / perOctave);
}

/** Slot, bucket of time, then pairs of bucket of latency and count; slot -1: all time. */
export type WrittenLatencies = number[];

export class WindowedLatencies {
  readonly #finder: BucketFinder;
  readonly #perOctave: number;
  /** How many buckets there are. */
  readonly #size: number;
  /** Doubles for all time, because a 32-bit count of it would overflow in a busy year. */
  readonly #allTime: Float64Array;
  readonly #slots: Uint32Array;
  readonly #buckets = new Int32Array(SLOT_COUNT);

  constructor(bits: number) {
    this.#finder = new BucketFinder(bits);
    this.#perOctave = 2 ** bits;
    this.#size = OCTAVES * this.#perOctave;
    this.#allTime = new Float64Array(this.#size);
    this.#slots = new Uint32Array(SLOT_COUNT * this.#size);
  }

  add({ slots, buckets }: RingPosition, latencyMs: number): void {
    const bucket = this.#finder.find(latencyMs);
    this.#allTime[bucket] = (this.#allTime[bucket] as number) + 1;
    for (let ring = 0; ring < RING_COUNT; ring++) {
      const slot = slots[ring] as number;
      const base = slot * this.#size;
      if (this.#buckets[slot] !== buckets[ring]) {
        this.#buckets[slot] = buckets[ring] as number;
        this.#slots.fill(0, base, base + this.#size);
      }
      this.#slots[base + bucket] = (this.#slots[base + bucket] as number) + 1;
    }
  }

  /** By nearest rank: the smallest latency that at least this part of all requests did not exceed. Undefined: all time. */
  percentiles(window: readonly WindowSlot[] | undefined, parts: readonly number[]): number[] {
    let counts: Float64Array = this.#allTime;
    if (window !== undefined) {
      counts = new Float64Array(this.#size);
      for (const { slot, bucket } of window) {
        if (this.#buckets[slot] !== bucket) continue;
        for (let index = 0; index < this.#size; index++) {
          counts[index] = (counts[index] as number) + (this.#slots[slot * this.#size + index] as number);
        }
      }
    }
    const total = counts.reduce((sum, count) => sum + count, 0);
    return parts.map((part) => (total === 0 ? 0 : this.#valueAtRank(counts, Math.max(1, Math.ceil(part * total)))));
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
      writeSlot(slot, this.#buckets[slot] as number, this.#slots.subarray(slot * this.#size, (slot + 1) * this.#size));
    }
    writeSlot(-1, -1, this.#allTime);
    return written;
  }

  restore(written: readonly WrittenLatencies[], isSlot: (slot: number, bucket: number) => boolean): void {
    for (const [slot, bucket, ...pairs] of written) {
      if (slot === undefined || bucket === undefined) continue;
      if (slot !== -1 && !isSlot(slot, bucket)) continue;
      const counts = slot === -1 ? this.#allTime : this.#slots.subarray(slot * this.#size, (slot + 1) * this.#size);
      if (slot !== -1) this.#buckets[slot] = bucket;
      for (let index = 0; index + 1 < pairs.length; index += 2) {
        const latencyBucket = pairs[index] as number;
        if (latencyBucket < this.#size) counts[latencyBucket] = pairs[index + 1] as number;
      }
    }
  }

  #valueAtRank(counts: Float64Array, rank: number): number {
    let seen = 0;
    let bucket = 0;
    while (bucket < this.#size - 1) {
      seen += counts[bucket] as number;
      if (seen >= rank) break;
      bucket++;
    }
    return middleOf(bucket, this.#perOctave);
  }
}
