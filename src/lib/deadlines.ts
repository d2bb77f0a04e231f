// One coarse timer for every deadline of the process: a timer per request would cost more than the request's other work.

import { type Linked, RecencyList } from "./recency-list.ts";

/** Something with a deadline that may be moved at any time by writing `deadlineMs` (clock milliseconds; Infinity = none). */
export interface Deadline extends Partial<Linked<Deadline>> {
  deadlineMs: number;
  /** Called once when the deadline has passed, after the entry was removed. */
  expire(): void;
}

export interface Deadlines {
  add(entry: Deadline): void;
  /** Removing an entry that is not there does nothing. */
  remove(entry: Deadline): void;
  /** Entries watched now. */
  readonly size: number;
}

/** How late an expiry may be noticed. */
export const DEADLINE_RESOLUTION_MS = 25;

/**
 * A process that was busy for this long sends what it wrote meanwhile only now, so no answer can have come. Nothing expires at
 * the first look after such a time.
 */
const BUSY_MS = 4 * DEADLINE_RESOLUTION_MS;

/**
 * The entries are a list by themselves: a Set that thousands of them pass through every second spends more time on its own
 * upkeep than all else here.
 */
export function createDeadlines(now: () => number = () => performance.now()): Deadlines {
  const entries = new RecencyList<Deadline>();
  let timer: Timer | undefined;
  let lookedMs = 0;
  let wasBusy = false;

  function remove(entry: Deadline): void {
    if (entries.has(entry)) entries.remove(entry); // the sweep stops its own timer: no new one for each request
  }

  function sweep(): void {
    const nowMs = now();
    wasBusy = !wasBusy && nowMs - lookedMs >= BUSY_MS;
    lookedMs = nowMs;
    if (wasBusy) return;
    // Entries that have passed are gathered first: expiring one may add or remove others.
    const passed: Deadline[] = [];
    for (let entry = entries.oldest; entry !== undefined; entry = entry.newer) {
      if (entry.deadlineMs <= nowMs) passed.push(entry);
    }
    for (const entry of passed) {
      if (!entries.has(entry) || entry.deadlineMs > nowMs) continue; // removed or moved meanwhile
      entries.remove(entry);
      entry.expire();
    }
    if (entries.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    add(entry) {
      if (entries.has(entry)) return;
      entries.add(entry);
      if (timer !== undefined) return;
      lookedMs = now();
      timer = setInterval(sweep, DEADLINE_RESOLUTION_MS);
    },
    remove,
    get size() {
      return entries.size;
    },
  };
}
