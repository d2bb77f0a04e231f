// A Server-Sent Events body whose steps come at a steady pace and that stops at once when the client leaves.

import { abortableDelay } from "../lib/abortable-delay.ts";

/**
 * Each step is one or more whole events. A step is sent only when the reader has room for it, and after a wait of
 * `delayMs` (0 = none) unless it is the first.
 */
export function pacedEventStream(
  steps: Iterator<string>,
  { delayMs, signal }: { delayMs: number; signal: AbortSignal },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const cancelled = new AbortController();
  const over = AbortSignal.any([signal, cancelled.signal]);
  // One step ahead, so that the stream closes together with its last step.
  let upcoming = steps.next();
  let isFirst = true;

  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!isFirst && delayMs > 0) await abortableDelay(delayMs, over);
      signal.throwIfAborted();
      if (over.aborted) return;
      isFirst = false;
      if (!upcoming.done) controller.enqueue(encoder.encode(upcoming.value));
      upcoming = steps.next();
      if (upcoming.done) controller.close();
    },
    cancel: () => cancelled.abort(),
  });
}
