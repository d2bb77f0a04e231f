// One coarse timer for every deadline of the process: a timer per request would cost more than the request's other work.

/** Something with a deadline that may be moved at any time by writing `deadlineMs` (clock milliseconds; Infinity = none). */
export interface Deadline {
  deadlineMs: number;
  /** Called once when the deadline has passed, after the entry was removed. */
  expire(): void;
}

export interface Deadlines {
  add(entry: Deadline): void;
  remove(entry: Deadline): void;
  /** Entries watched now; zero means that no timer runs. */
  readonly size: number;
}

/** How late an expiry may be noticed. */
export const DEADLINE_RESOLUTION_MS = 25;

export function createDeadlines(now: () => number = () => performance.now()): Deadlines {
  const entries = new Set<Deadline>();
  let timer: Timer | undefined;

  function sweep(): void {
    const nowMs = now();
    for (const entry of entries) {
      if (entry.deadlineMs > nowMs) continue;
      entries.delete(entry);
      entry.expire();
    }
    if (entries.size === 0 && timer) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    add(entry) {
      entries.add(entry);
      timer ??= setInterval(sweep, DEADLINE_RESOLUTION_MS);
    },
    remove(entry) {
      entries.delete(entry); // the sweep stops its own timer, so that a busy gateway does not start one per request
    },
    get size() {
      return entries.size;
    },
  };
}
