// A Server-Sent Events body whose steps come at a steady pace and that stops at once when nobody wants it any more.

export interface PacedStreamOptions {
  /** Wait before every step except the first; 0 = none. */
  delayMs: number;
  signal: AbortSignal;
}

/** Each step is one or more whole events. A step is sent only when the reader has room for it. */
export function pacedEventStream(steps: Iterator<string>, options: PacedStreamOptions): ReadableStream<Uint8Array> {
  const { delayMs, signal } = options;
  const encoder = new TextEncoder();
  // One step ahead, so that the stream closes together with its last step.
  let upcoming = steps.next();
  let isFirst = true;
  let isOver = false;
  let timer: Timer | undefined;
  let wakeUp: (() => void) | undefined;
  let onAbort: (() => void) | undefined;

  /** Leaves no timer and no listener behind; a pull() that waits returns and finds that the stream is over. */
  function end(): void {
    isOver = true;
    clearTimeout(timer);
    wakeUp?.();
    if (onAbort) signal.removeEventListener("abort", onAbort);
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      wakeUp = resolve;
      timer = setTimeout(resolve, delayMs);
    });
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      onAbort = () => {
        end();
        controller.error(signal.reason);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    },
    async pull(controller) {
      if (!isFirst && delayMs > 0) await pause();
      if (isOver) return;
      isFirst = false;
      if (!upcoming.done) controller.enqueue(encoder.encode(upcoming.value));
      upcoming = steps.next();
      if (!upcoming.done) return;
      end();
      controller.close();
    },
    cancel: end,
  });
}

/** One event that carries a JSON object. */
export function dataEvent(payload: object): string {
  return `data: ${JSON.stringify(payload)}\n\n`;
}

export const DONE_EVENT = "data: [DONE]\n\n";
