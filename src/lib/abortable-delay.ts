// Waiting that ends early when nobody is interested any more.

/**
 * Resolves when the work is done, or as soon as the signal aborts; the work goes on by itself. Leaves no listener behind:
 * a stream may wait for a slow client thousands of times under one signal.
 */
export function orAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      signal.removeEventListener("abort", end);
      resolve();
    };
    signal.addEventListener("abort", end);
    work.then(end, (error) => {
      signal.removeEventListener("abort", end);
      reject(error);
    });
  });
}

/** Resolves after the time, or at once when the signal aborts. Leaves no timer and no listener behind. */
export async function abortableDelay(durationMs: number, signal: AbortSignal): Promise<void> {
  let timer: Timer | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, durationMs);
  });
  await orAborted(over, signal);
  clearTimeout(timer);
}
