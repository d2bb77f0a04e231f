// Time as it passes, for the engines and the clients that the simulation has in virtual time.

import type { Clock } from "./virtual-time.ts";

export class RealTime implements Clock {
  readonly #startMs = performance.now();
  readonly #timers = new Set<Timer>();
  /** When the event that runs was due. */
  #dueMs: number | undefined;
  #isOver = false;

  get nowMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Inside an event the delay counts from when that was due, so that a busy processor makes no engine slower. */
  schedule(delayMs: number, action: () => void): void {
    if (this.#isOver) return;
    const dueMs = (this.#dueMs ?? this.nowMs) + delayMs;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#dueMs = dueMs;
        try {
          action();
        } finally {
          this.#dueMs = undefined;
        }
      },
      Math.max(0, dueMs - this.nowMs),
    );
    this.#timers.add(timer);
  }

  /** Nothing happens any more. */
  end(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}
