// Percentiles of latencies without keeping the latencies: a log-linear histogram. What is answered is the middle of the
// bucket in which the exact value lies.

import type { RingPosition, WindowSlot } from "../lib/time-rings.ts";
import { type SlotCheck, WindowedNumbers } from "./windowed-numbers.ts";

/**
 * How many bits of a latency's mantissa number its bucket. An answer is at most half a bucket off, as a part of the exact
 * value: 1.6 % where it is fine (0.8 MB), 6.3 % where it is coarse (0.2 MB).
 */
export const FINE = 5;
export const COARSE = 3;

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

function middleOf(bucket: number, perOctave: number): number {
  const octave = 2 ** (MIN_EXPONENT + Math.floor(bucket / perOctave));
  return octave * (1 + ((bucket % perOctave) + 0.5) / perOctave);
}

export class WindowedLatencies extends WindowedNumbers<Uint32Array> {
  readonly #perOctave: number;
  readonly #shift: number;
  readonly #offset: number;
  readonly #last: number;
  /** Here the bits of a double are read. */
  readonly #double = new Float64Array(1);
  readonly #words = new Uint32Array(this.#double.buffer);

  constructor(bits: number) {
    const perOctave = 2 ** bits;
    super(OCTAVES * perOctave, Uint32Array);
    this.#perOctave = perOctave;
    this.#shift = MANTISSA_BITS - bits;
    this.#offset = (BITS_OF_ONE >>> this.#shift) + MIN_EXPONENT * perOctave;
    this.#last = OCTAVES * perOctave - 1;
  }

  add(position: RingPosition, latencyMs: number): void {
    this.count(position, this.#bucketOf(latencyMs));
  }

  /** By nearest rank: the smallest latency that at least this part of all requests did not exceed. Undefined: all time. */
  percentiles(window: readonly WindowSlot[] | undefined, parts: readonly number[]): number[] {
    const counts = this.sums(window);
    const total = counts.reduce((sum, count) => sum + count, 0);
    return parts.map((part) => (total === 0 ? 0 : this.#valueAtRank(counts, Math.max(1, Math.ceil(part * total)))));
  }

  /** Pairs of a bucket of latency and its count. */
  write(): number[][] {
    return this.writeBlocks((block) => {
      const pairs: number[] = [];
      for (const [bucket, count] of block.entries()) if (count > 0) pairs.push(bucket, count);
      return pairs;
    });
  }

  restore(written: readonly (readonly number[])[], isSlot: SlotCheck): void {
    this.restoreBlocks(written, isSlot, (pairs, block) => {
      for (let index = 0; index + 1 < pairs.length; index += 2) {
        const bucket = pairs[index] as number;
        if (bucket <= this.#last) block[bucket] = pairs[index + 1] as number;
      }
    });
  }

  #bucketOf(latencyMs: number): number {
    if (!(latencyMs > MIN_LATENCY_MS)) return 0;
    if (latencyMs >= MAX_LATENCY_MS) return this.#last;
    this.#double[0] = latencyMs;
    return ((this.#words[1] as number) >>> this.#shift) - this.#offset;
  }

  #valueAtRank(counts: Float64Array, rank: number): number {
    let seen = 0;
    let bucket = 0;
    while (bucket < this.#last) {
      seen += counts[bucket] as number;
      if (seen >= rank) break;
      bucket++;
    }
    return middleOf(bucket, this.#perOctave);
  }
}
