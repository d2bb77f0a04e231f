// What is to be written to a bucket, one after the other in the background: bounded, and the oldest goes first when there is
// no room.

import { Pause } from "../lib/pause.ts";
import { type Linked, RecencyList } from "../lib/recency-list.ts";
import { reasonOf } from "./bucket-reason.ts";

interface QueuedWrite extends Partial<Linked<QueuedWrite>> {
  model: string;
  bytes: number;
  failures?: number;
  /** Rejects when it could not be done, which is tried again later. */
  write(signal: AbortSignal): Promise<void>;
}

interface WriteQueueParts {
  now(): number;
  /** Told when writing stops to work, with the reason, and when it works again. */
  changed(isUp: boolean, reason: string): void;
}

export const MAX_QUEUED = 1_000;
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const WRITES_AT_A_TIME = 4;
const WRITE_TIMEOUT_MS = 10_000;
const MOST_FAILURES = 5;

export function createWriteQueue({ now, changed }: WriteQueueParts) {
  const waiting = new RecencyList<QueuedWrite>();
  const pause = new Pause(changed);
  const counts = { written: 0, dropped: 0, failures: 0 };
  let bytes = 0;
  let running = 0;
  let timer: Timer | undefined;

  function take(entry: QueuedWrite): void {
    waiting.remove(entry);
    bytes -= entry.bytes;
  }

  /** In a while: nothing is signed or sent before the answer itself is on its way. */
  function later(delayMs: number): void {
    if (timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      drain();
    }, delayMs);
    timer.unref();
  }

  function drain(): void {
    while (running < WRITES_AT_A_TIME && waiting.oldest !== undefined) {
      if (pause.leave(now()) === "none") {
        // A trial that is under way comes back here by itself.
        if (running === 0) later(Math.max(1, pause.endsMs - now()));
        return;
      }
      const entry = waiting.oldest;
      take(entry);
      running++;
      void run(entry);
    }
  }

  async function run(entry: QueuedWrite): Promise<void> {
    try {
      await entry.write(AbortSignal.timeout(WRITE_TIMEOUT_MS));
      counts.written++;
      pause.succeeded();
    } catch (error) {
      counts.failures++;
      pause.failed(now(), reasonOf(error));
      entry.failures = (entry.failures ?? 0) + 1;
      // It may be this one that the server does not take.
      if (entry.failures < MOST_FAILURES) add(entry);
      else counts.dropped++;
    } finally {
      running--;
      drain();
    }
  }

  function add(entry: QueuedWrite): void {
    if (entry.bytes > MAX_QUEUED_BYTES) {
      counts.dropped++;
      return;
    }
    waiting.add(entry);
    bytes += entry.bytes;
    while ((waiting.size > MAX_QUEUED || bytes > MAX_QUEUED_BYTES) && waiting.oldest !== undefined) {
      take(waiting.oldest);
      counts.dropped++;
    }
  }

  return {
    push(entry: QueuedWrite): void {
      add(entry);
      later(0);
    },
    /** Nothing that waits is written any more, of one model or of all. */
    clear(model: string | undefined): void {
      for (const entry of waiting) if (model === undefined || entry.model === model) take(entry);
    },
    stats: () => ({ isUp: pause.isUp, queued: waiting.size, queuedBytes: bytes, ...counts }),
  };
}
