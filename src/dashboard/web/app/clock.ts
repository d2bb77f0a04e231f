// The time that the page shows: one signal for every text such as "5 s ago".

import { type ReadonlySignal, signal } from "@preact/signals";

const TICK_MS = 1_000;

export type PageClock = ReturnType<typeof createClock>;

/** @param read - milliseconds by the gateway's clock */
export function createClock(read: () => number) {
  const now = signal(read());
  function tick(): void {
    if (!document.hidden) now.value = read();
  }
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
  return { now: now as ReadonlySignal<number> };
}
