// What is over and waits to be sent as spans: gathered for a moment, sent in batches, and bounded. While nobody takes
// anything, what comes is dropped and counted.

import type { SharedAttributes } from "./attributes.ts";
import type { Origin, OtlpEncoding } from "./data.ts";
import type { Recorded } from "./recorder.ts";
import type { Outgoing, Sender } from "./sender.ts";

interface SpanQueueParts {
  origin: Origin;
  encoding(): OtlpEncoding;
  shared: SharedAttributes;
  sender: Pick<Sender, "send">;
  dropped(spans: number): void;
  stop: AbortSignal;
  maxWaiting?: number;
}

/** About half a megabyte before it is packed, made in some milliseconds. */
const BATCH = 1_000;
/** Each takes less than 2 KB. */
const MAX_WAITING = 16_000;
const GATHER_MS = 1_000;

export function createSpanQueue(parts: SpanQueueParts) {
  const { origin, encoding, shared, sender, dropped, stop, maxWaiting = MAX_WAITING } = parts;
  let waiting: Recorded[] = [];
  let timer: Timer | undefined;
  let sending: Promise<void> | undefined;
  let isLast = false;

  function batch(): { outgoing: Outgoing; count: number } {
    const taken = waiting.length <= BATCH ? waiting : waiting.slice(0, BATCH);
    waiting = waiting.length <= BATCH ? [] : waiting.slice(BATCH);
    const written = encoding();
    const body = written.traces(
      origin,
      taken.map((recorded) => recorded.toSpan(shared)),
    );
    return { outgoing: { body, encoding: written }, count: taken.length };
  }

  async function sendBatches(): Promise<void> {
    while (waiting.length > 0 && !stop.aborted) {
      const { outgoing, count } = batch();
      if (!(await sender.send(outgoing, stop))) dropped(count);
      // What came meanwhile gathers again: many small requests cost more than the spans in them.
      if (!isLast && waiting.length < BATCH) break;
    }
    sending = undefined;
    if (stop.aborted) {
      if (waiting.length > 0) dropped(waiting.length);
      waiting = [];
    } else if (waiting.length > 0) gather();
  }

  function send(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendBatches();
    return sending;
  }

  function gather(): void {
    timer = setTimeout(() => void send(), GATHER_MS);
    timer.unref();
  }

  return {
    add(recorded: Recorded): void {
      if (waiting.length >= maxWaiting) {
        dropped(1);
        return;
      }
      waiting.push(recorded);
      if (sending !== undefined) return;
      // Not from within the request that has just ended.
      if (waiting.length === BATCH) setImmediate(() => void send());
      else if (timer === undefined) gather();
    },
    /** Sends everything, also what comes from now on; resolves when it is sent, or `stop` has ended it. */
    async flush(): Promise<void> {
      isLast = true;
      await send();
      if (waiting.length > 0) await send();
    },
  };
}
