// Drains on a clock that is set by hand.

import type { Backend } from "../../src/backends/backend.ts";
import { createDrains, type Drains } from "../../src/backends/drains.ts";
import type { Deadline, Deadlines } from "../../src/lib/deadlines.ts";

export interface ManualTime {
  readonly nowMs: number;
  deadlines: Deadlines;
  /** Moves the clock and lets what has passed expire. */
  moveBy(durationMs: number): void;
}

export function manualTime(): ManualTime {
  const entries = new Set<Deadline>();
  let nowMs = 0;
  return {
    get nowMs() {
      return nowMs;
    },
    deadlines: {
      add: (entry) => void entries.add(entry),
      remove: (entry) => void entries.delete(entry),
      get size() {
        return entries.size;
      },
    },
    moveBy(durationMs) {
      nowMs += durationMs;
      for (const entry of [...entries]) {
        if (entry.deadlineMs <= nowMs && entries.delete(entry)) entry.expire();
      }
    },
  };
}

export interface ManualDrains {
  drains: Drains;
  time: ManualTime;
  /** Names of those that finished, with the number of requests that were cut. */
  finished: string[];
}

export function manualDrains(): ManualDrains {
  const time = manualTime();
  const finished: string[] = [];
  const drains = createDrains({
    deadlines: time.deadlines,
    now: () => time.nowMs,
    finished: ({ name }: Backend, cut: number) => void finished.push(`${name} ${cut}`),
  });
  return { drains, time, finished };
}
