// First looks at backends that came together: requests that come meanwhile wait for the answers, for a limited time.

import { timerMs } from "../backends/control-request.ts";
import { inTime, orAborted } from "../lib/abortable-delay.ts";

export type FirstLooks = ReturnType<typeof createFirstLooks>;

/** The longest wait for the first answers of other backends, once one is available. */
const COLD_WAIT_MS = 2_000;

export function createFirstLooks(now: () => number, hasAvailable: () => boolean) {
  const stop = new AbortController();
  let round = { done: Promise.resolve(), startedMs: now(), isOver: true };

  function untilLate(work: Promise<unknown>, timeoutMs: number): Promise<unknown> {
    return inTime(orAborted(work, stop.signal), timerMs(timeoutMs));
  }

  return {
    /** Resolves when every look that has begun is over, or late; never rejects. */
    get done(): Promise<void> {
      return round.done;
    },
    /** Another round of looks, given up after the time. */
    begin(looks: readonly Promise<void>[], timeoutMs: number): void {
      const { done: before } = round;
      const begun = { done: before, startedMs: now(), isOver: false };
      // `done` covers earlier rounds, too: it is the end of every look.
      begun.done = untilLate(Promise.all(looks), timeoutMs)
        .then(() => before)
        .then(() => {
          begun.isOver = true;
        });
      round = begun;
    },
    /** Resolves when a look is worth no more waiting. */
    async answers(): Promise<void> {
      const { isOver, startedMs, done } = round;
      if (isOver) return;
      const restMs = startedMs + COLD_WAIT_MS - now();
      if (restMs <= 0 && hasAvailable()) return;
      await untilLate(done, restMs);
      if (!hasAvailable()) await done;
    },
    /** Ends all waits. */
    stop: () => stop.abort(),
  };
}
