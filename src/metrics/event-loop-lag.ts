// How late timers come: the longest delay of the event loop within the last ten seconds.

const INTERVAL_MS = 500;
const MEASUREMENTS = 20;

export function watchEventLoopLag(now: () => number) {
  const delaysMs = new Float64Array(MEASUREMENTS);
  let next = 0;
  let dueMs = now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const nowMs = now();
    delaysMs[next] = Math.max(0, nowMs - dueMs);
    next = (next + 1) % MEASUREMENTS;
    dueMs = nowMs + INTERVAL_MS;
  }, INTERVAL_MS);
  timer.unref();
  return {
    /** In seconds; includes a block that is still going on. */
    read: () => Math.max(now() - dueMs, ...delaysMs) / 1000,
    stop: () => clearInterval(timer),
  };
}
