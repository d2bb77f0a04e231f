// Tells what timers do from what requests do: the polls, flushes and deadlines of a gateway belong to no request.

import { AsyncLocalStorage } from "node:async_hooks";

/** From now on; returns whether a timer has begun what runs at the moment, however long ago. */
export function followTimers(): () => boolean {
  const begun = new AsyncLocalStorage<true>();
  const followed =
    <Timers extends typeof setTimeout | typeof setInterval>(set: Timers) =>
    (callback: (...args: unknown[]) => void, ...rest: [delayMs?: number]) =>
      set((...args: unknown[]) => begun.run(true, () => callback(...args)), ...rest);
  Object.assign(globalThis, { setTimeout: followed(setTimeout), setInterval: followed(setInterval) });
  return () => begun.getStore() === true;
}
