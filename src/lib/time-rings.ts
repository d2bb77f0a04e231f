// Time as rings of buckets: where a moment is counted, and which buckets make up "the last hour". A bucket is used again
// when its turn comes, so that what is counted over time needs the same memory for ever.

import type { Clock } from "./clock.ts";

interface Ring {
  bucketMs: number;
  slots: number;
}

const MINUTE_MS = 60_000;

/** Fine for an hour, coarser for a day and for a week; each has the bucket that is being filled and one more. */
const RINGS: readonly Ring[] = [
  { bucketMs: MINUTE_MS, slots: 62 },
  { bucketMs: 15 * MINUTE_MS, slots: 98 },
  { bucketMs: 120 * MINUTE_MS, slots: 86 },
];

export const RING_COUNT = RINGS.length;
/** All slots of all rings, numbered through. */
export const SLOT_COUNT = RINGS.reduce((sum, { slots }) => sum + slots, 0);

const FIRST_SLOT = RINGS.map((_, ring) => RINGS.slice(0, ring).reduce((sum, { slots }) => sum + slots, 0));

/** Where a moment is counted: in each ring the slot, and the number of its bucket since 1970. */
export interface RingPosition {
  readonly slots: Int32Array;
  readonly buckets: Int32Array;
}

/** A clock that never goes back, whatever happens to the wall clock; it starts at the wall time. */
export class RingClock {
  readonly #clock: Clock;
  readonly #offsetMs: number;
  readonly position: RingPosition = { slots: new Int32Array(RING_COUNT), buckets: new Int32Array(RING_COUNT) };
  #minute = -1;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.wallTime() - clock.now();
  }

  /** Milliseconds since 1970; moves `position` along. */
  tick(): number {
    const timeMs = this.#clock.now() + this.#offsetMs;
    const minute = Math.floor(timeMs / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      for (let ring = 0; ring < RING_COUNT; ring++) {
        const bucket = Math.floor(timeMs / (RINGS[ring] as Ring).bucketMs);
        this.position.buckets[ring] = bucket;
        this.position.slots[ring] = slotOf(ring, bucket);
      }
    }
    return timeMs;
  }
}

function slotOf(ring: number, bucket: number): number {
  return (FIRST_SLOT[ring] as number) + (bucket % (RINGS[ring] as Ring).slots);
}

/** A slot that belongs to a window if it still holds this bucket. */
export interface WindowSlot {
  slot: number;
  bucket: number;
}

/** The slots of the last `windowMs`, from the finest ring that reaches so far; the oldest bucket counts as a whole. */
export function slotsWithin(windowMs: number, timeMs: number): WindowSlot[] {
  const reaches = RINGS.findIndex(({ bucketMs, slots }) => windowMs <= bucketMs * (slots - 2));
  const ring = reaches < 0 ? RING_COUNT - 1 : reaches;
  const { bucketMs, slots } = RINGS[ring] as Ring;
  const newest = Math.floor(timeMs / bucketMs);
  const count = Math.min(slots - 1, Math.ceil(windowMs / bucketMs) + 1);
  return Array.from({ length: count }, (_, age) => ({ slot: slotOf(ring, newest - age), bucket: newest - age }));
}

/** True if a saved slot may be restored: its number fits, and it is not from the future. */
export function isSlotOf(slot: number, bucket: number, timeMs: number): boolean {
  for (let ring = 0; ring < RING_COUNT; ring++) {
    const first = FIRST_SLOT[ring] as number;
    const { bucketMs, slots } = RINGS[ring] as Ring;
    if (slot >= first && slot < first + slots) {
      return slotOf(ring, bucket) === slot && bucket <= Math.floor(timeMs / bucketMs);
    }
  }
  return false;
}
