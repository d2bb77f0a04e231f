// The end of a turn because the person wants it: whoever waits is freed at once, whatever becomes of the work.

export class Cancelled extends Error {
  override readonly name = "Cancelled";

  constructor() {
    super("cancelled by the user");
  }
}

/** What the work comes to; throws Cancelled as soon as the signal aborts, and the work goes on by itself. */
export function orCancelled<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const end = () => reject(new Cancelled());
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
    // Also listened to when nobody waits any more: work that is left alone may fail without a word.
    work
      .then(resolve, (error) => reject(signal.aborted ? new Cancelled() : error))
      .finally(() => {
        signal.removeEventListener("abort", end);
      });
  });
}

export function checkNotCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new Cancelled();
}
