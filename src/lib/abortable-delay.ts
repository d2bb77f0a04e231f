// Waits that end early: with a signal, or with a time limit. The work itself goes on, and a failure of work that is no
// longer waited for is ignored.

/**
 * The result of the work, or undefined as soon as the signal aborts. Leaves no listener behind: a stream may wait for a
 * slow client thousands of times under one signal.
 */
export function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    // The listener and the handler of the result are one closure, because streams wait here for each chunk.
    const end = (result: unknown) => {
      signal.removeEventListener("abort", end);
      resolve(signal.aborted ? undefined : (result as Result));
    };
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", end);
    work.then(end, (error) => {
      signal.removeEventListener("abort", end);
      reject(error);
    });
  });
}

/** The result of the work; throws the signal's reason as soon as the signal aborts. */
export async function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  try {
    return (await orAborted(work, signal)) as Result;
  } finally {
    signal.throwIfAborted();
  }
}

/** The result of the work, or undefined when the time is over first. Leaves no timer behind. */
export function inTime<Result>(work: Promise<Result>, timeMs: number): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), timeMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
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
