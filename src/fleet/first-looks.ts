// First looks at backends that came together: whoever asks meanwhile waits for what they answer, though not for long.

import { timerMs } from "../backends/control-request.ts";

export type FirstLooks = ReturnType<typeof createFirstLooks>;

/** Once a backend is available, nobody waits longer than this for the first answers of the others. */
const COLD_WAIT_MS = 2_000;

export function createFirstLooks(now: () => number, hasAvailable: () => boolean) {
  const stopped = Promise.withResolvers<void>();
  let round = { done: Promise.resolve(), startedMs: now(), isOver: true };

  function untilLate(work: Promise<unknown>, timeoutMs: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, timerMs(timeoutMs));
    return Promise.race([work, late.promise, stopped.promise]).then(() => clearTimeout(timer));
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
    /** Keeps nobody waiting any longer. */
    stop: () => stopped.resolve(),
  };
}
