// Spans that wait to be sent: written as they end, gathered for a moment, sent in batches, and bounded. While the
// receiver takes nothing, what comes is dropped and counted.

import type { Origin, OtlpEncoding, OtlpSpan, SpanWriter } from "./data.ts";
import type { ExportSender } from "./sender.ts";

interface SpanQueueParts {
  origin: Origin;
  encoding(): OtlpEncoding;
  sender: Pick<ExportSender, "send">;
  dropped(spans: number): void;
  stop: AbortSignal;
  maxWaiting?: number;
}

interface Batch {
  encoding: OtlpEncoding;
  writer: SpanWriter;
  count: number;
}

/** About half a megabyte before it is packed. */
const BATCH = 1_000;
/** Largest batch; its spans may be large. */
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_WAITING = 16_000;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const GATHER_MS = 1_000;

function isFull({ count, writer }: Batch): boolean {
  return count >= BATCH || writer.size >= MAX_BATCH_BYTES;
}

export function createSpanQueue(parts: SpanQueueParts) {
  const { origin, encoding, sender, dropped, stop, maxWaiting = MAX_WAITING } = parts;
  /** Spans are added to the last batch. */
  let waiting: Batch[] = [];
  let waitingSpans = 0;
  let fullBytes = 0;
  /** A batch that was sent, for the next one: its memory serves again. */
  let spare: Batch | undefined;
  let timer: Timer | undefined;
  let sending: Promise<void> | undefined;
  let isLast = false;

  function newBatch(): Batch {
    const wanted = encoding();
    const batch = spare?.encoding === wanted ? spare : { encoding: wanted, writer: wanted.spans(origin), count: 0 };
    spare = undefined;
    waiting.push(batch);
    return batch;
  }

  function openBatch(): Batch {
    const last = waiting.at(-1);
    if (last === undefined) return newBatch();
    if (!isFull(last) && last.encoding === encoding()) return last;
    fullBytes += last.writer.size;
    return newBatch();
  }

  async function sendFirst(): Promise<void> {
    const batch = waiting.shift() as Batch;
    const { count, writer } = batch;
    waitingSpans -= count;
    if (waiting.length > 0) fullBytes -= writer.size;
    if (!(await sender.send({ body: writer.take(), encoding: batch.encoding }, stop))) dropped(count);
    batch.count = 0;
    spare = batch;
  }

  async function sendBatches(): Promise<void> {
    while (waitingSpans > 0 && !stop.aborted) {
      await sendFirst();
      // New spans gather again: many small requests would cost more than the spans in them.
      const [next] = waiting;
      if (!isLast && waiting.length < 2 && (next === undefined || !isFull(next))) break;
    }
    sending = undefined;
    if (stop.aborted) {
      if (waitingSpans > 0) dropped(waitingSpans);
      waiting = [];
      waitingSpans = 0;
      fullBytes = 0;
    } else if (waitingSpans > 0) gather();
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
    add(span: OtlpSpan): void {
      if (waitingSpans >= maxWaiting || fullBytes >= MAX_WAITING_BYTES) {
        dropped(1);
        return;
      }
      const batch = openBatch();
      batch.writer.add(span);
      batch.count++;
      waitingSpans++;
      if (sending !== undefined) return;
      // Not from within the request that has just ended.
      if (isFull(batch)) setImmediate(() => void send());
      else if (timer === undefined) gather();
    },
    /** Sends everything, also what comes from now on; resolves when it is sent, or `stop` has ended it. */
    async flush(): Promise<void> {
      isLast = true;
      await send();
      if (waitingSpans > 0) await send();
    },
  };
}
