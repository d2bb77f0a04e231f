// Numbers over all time and over windows, in blocks that never grow: one for each slot of the rings, and one for all time.

import { RING_COUNT, type RingPosition, SLOT_COUNT, type WindowSlot } from "../lib/time-rings.ts";

type Numbers = Float64Array | Uint32Array;

/** True while a slot still holds the numbers of this bucket. */
export type SlotCheck = (slot: number, bucket: number) => boolean;

export class WindowedNumbers<Block extends Numbers = Numbers> {
  /** Doubles, because a 32-bit count of all time would overflow in a busy year. */
  protected readonly allTime: Float64Array;
  protected readonly values: Block;
  /** Numbers in a block. */
  readonly #width: number;
  /** The bucket that a slot holds; an older one is forgotten when the slot is written again. */
  readonly #buckets = new Int32Array(SLOT_COUNT);

  constructor(width: number, Block: new (length: number) => Block) {
    this.#width = width;
    this.allTime = new Float64Array(width);
    this.values = new Block(SLOT_COUNT * width);
  }

  /** Counts one, at this place of a block. */
  count(position: RingPosition, index: number): void {
    this.forgetOld(position);
    const { slots } = position;
    this.allTime[index]!++;
    for (let ring = 0; ring < RING_COUNT; ring++) this.values[slots[ring]! * this.#width + index]!++;
  }

  /** Before anything is added to the blocks of a position. */
  protected forgetOld({ slots, buckets }: RingPosition): void {
    for (let ring = 0; ring < RING_COUNT; ring++) {
      const slot = slots[ring]!;
      if (this.#buckets[slot] === buckets[ring]) continue;
      this.#buckets[slot] = buckets[ring]!;
      this.#blockOf(slot).fill(0);
    }
  }

  /** Undefined: all time. */
  sums(window: readonly WindowSlot[] | undefined): Float64Array {
    if (window === undefined) return this.allTime;
    const sums = new Float64Array(this.#width);
    for (const { slot, bucket } of window) {
      if (this.#buckets[slot] !== bucket) continue;
      const base = slot * this.#width;
      for (let index = 0; index < this.#width; index++) sums[index]! += this.values[base + index]!;
    }
    return sums;
  }

  /** Slot, bucket, and what is to be written of the block; slot and bucket -1: all time. */
  protected writeBlocks(encode: (block: Numbers) => number[]): number[][] {
    const written: number[][] = [];
    const write = (slot: number, bucket: number, block: Numbers) => {
      const numbers = encode(block);
      if (numbers.some((number) => number !== 0)) written.push([slot, bucket, ...numbers]);
    };
    for (const [slot, bucket] of this.#buckets.entries()) if (bucket !== 0) write(slot, bucket, this.#blockOf(slot));
    write(-1, -1, this.allTime);
    return written;
  }

  protected restoreBlocks(
    written: readonly (readonly number[])[],
    isSlot: SlotCheck,
    decode: (numbers: number[], block: Numbers) => void,
  ): void {
    for (const [slot, bucket, ...numbers] of written) {
      if (slot === undefined || bucket === undefined) continue;
      if (slot === -1) decode(numbers, this.allTime);
      else if (isSlot(slot, bucket)) {
        this.#buckets[slot] = bucket;
        decode(numbers, this.#blockOf(slot));
      }
    }
  }

  #blockOf(slot: number): Numbers {
    return this.values.subarray(slot * this.#width, (slot + 1) * this.#width);
  }
}
