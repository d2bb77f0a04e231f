// One coarse timer for every deadline of the process: a timer per request would cost more than the request's other work.

/** Something with a deadline that may be moved at any time by writing `deadlineMs` (clock milliseconds; Infinity = none). */
export interface Deadline {
  deadlineMs: number;
  /** Called once when the deadline has passed, after the entry was removed. */
  expire(): void;
  /** Owned by the list that the entry is in; both are undefined while it is in none. */
  previousDeadline?: Deadline | undefined;
  nextDeadline?: Deadline | undefined;
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
 * The entries form a ring through a sentinel: a Set that thousands of entries pass through every second spends more
 * time on its own upkeep than all else here.
 */
export function createDeadlines(now: () => number = () => performance.now()): Deadlines {
  const sentinel: Deadline = { deadlineMs: Number.POSITIVE_INFINITY, expire: () => {} };
  sentinel.previousDeadline = sentinel;
  sentinel.nextDeadline = sentinel;
  let size = 0;
  let timer: Timer | undefined;

  function remove(entry: Deadline): void {
    const { previousDeadline, nextDeadline } = entry;
    if (previousDeadline === undefined || nextDeadline === undefined) return;
    previousDeadline.nextDeadline = nextDeadline;
    nextDeadline.previousDeadline = previousDeadline;
    entry.previousDeadline = undefined;
    entry.nextDeadline = undefined;
    size--; // the sweep stops its own timer, so that a busy gateway does not start one per request
  }

  function sweep(): void {
    const nowMs = now();
    // Entries that have passed are gathered first: expiring one may add or remove others.
    const passed: Deadline[] = [];
    for (let entry = sentinel.nextDeadline as Deadline; entry !== sentinel; entry = entry.nextDeadline as Deadline) {
      if (entry.deadlineMs <= nowMs) passed.push(entry);
    }
    for (const entry of passed) {
      if (entry.nextDeadline === undefined || entry.deadlineMs > nowMs) continue; // removed or moved meanwhile
      remove(entry);
      entry.expire();
    }
    if (size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    add(entry) {
      if (entry.nextDeadline !== undefined) return;
      const last = sentinel.previousDeadline as Deadline;
      entry.previousDeadline = last;
      entry.nextDeadline = sentinel;
      last.nextDeadline = entry;
      sentinel.previousDeadline = entry;
      size++;
      timer ??= setInterval(sweep, DEADLINE_RESOLUTION_MS);
    },
    remove,
    get size() {
      return size;
    },
  };
}
