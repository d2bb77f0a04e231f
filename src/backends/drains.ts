// Backends that were removed or disabled and still have requests: each finishes what it has, within a time.

import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import type { Backend, BackendCounters } from "./backend.ts";

/** Requests in flight at a removed or disabled backend are cut after this time (docs/resilience.md). */
export const DRAIN_LIMIT_MS = 5 * 60_000;

/** Names may repeat: a name that was given to another backend may be taken away again before the first is done. */
export interface Drain {
  backend: Backend;
  counters: BackendCounters;
  remainingMs: number;
}

interface DrainsParts {
  deadlines: Deadlines;
  /** Milliseconds of the clock of the deadlines. */
  now(): number;
  /** A backend has finished what it had, all but the requests that were cut. */
  finished?(backend: Backend, cut: number): void;
}

export type Drains = ReturnType<typeof createDrains>;

export function createDrains({ deadlines, now, finished }: DrainsParts) {
  const drains = new Map<BackendCounters, Deadline & { backend: Backend }>();
  /** Those that seemed to have nothing to finish. */
  const idle = new WeakMap<BackendCounters, Backend>();

  function forget(counters: BackendCounters): boolean {
    const drain = drains.get(counters);
    if (drain !== undefined) deadlines.remove(drain);
    return drains.delete(counters);
  }

  function watch(backend: Backend, counters: BackendCounters): void {
    const drain = {
      backend,
      deadlineMs: now() + DRAIN_LIMIT_MS,
      expire() {
        forget(counters);
        // In flight in other processes are some that these cut themselves.
        const late = counters.inFlight;
        for (const each of [...counters.running]) each.cut();
        finished?.(backend, late);
      },
    };
    drains.set(counters, drain);
    deadlines.add(drain);
  }

  return {
    /** No new requests from now on. For a backend that drains already, the time runs on. */
    begin(backend: Backend, counters: BackendCounters): void {
      if (counters.onIdle !== undefined) return;
      counters.onIdle = () => {
        if (forget(counters)) finished?.(backend, 0);
      };
      if (counters.inFlight === 0) idle.set(counters, backend);
      else watch(backend, counters);
    },
    /** Requests of another process became known: a backend that takes no new ones has these to finish. */
    found(counters: BackendCounters): void {
      const backend = counters.onIdle === undefined || drains.has(counters) ? undefined : idle.get(counters);
      if (backend !== undefined) watch(backend, counters);
    },
    /** The backend is enabled again: what runs there need not hurry. */
    end(counters: BackendCounters): void {
      counters.onIdle = undefined;
      forget(counters);
    },
    /** Those that have requests still, the oldest first. */
    list(): Drain[] {
      const nowMs = now();
      return [...drains].map(([counters, { backend, deadlineMs }]) => {
        return { backend, counters, remainingMs: Math.max(0, deadlineMs - nowMs) };
      });
    },
    /** Leaves everything running to the end of the process. */
    stop(): void {
      for (const drain of drains.values()) deadlines.remove(drain);
    },
  };
}
