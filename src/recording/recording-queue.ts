// Requests that are over wait here for a moment, so that many of them are sealed one behind the other and written together: a
// transaction of its own costs a recording twice as much as its row.

import type { FinishedRecording } from "./recorder.ts";

/** A kill loses what came within this time. */
const GATHER_MS = 250;
/** So many, or so large together, do not wait. */
const MOST_GATHERED = 64;
const MOST_GATHERED_BYTES = 1024 ** 2;

interface RecordingQueueParts {
  /** One call at a time. Must not reject. */
  keep(recordings: readonly FinishedRecording[]): Promise<void>;
  /** Of what was kept, or could not be. */
  giveBack(bytes: number): void;
}

export function createRecordingQueue({ keep, giveBack }: RecordingQueueParts) {
  let waiting: FinishedRecording[] = [];
  let waitingBytes = 0;
  let timer: Timer | undefined;
  let keeping: Promise<void> = Promise.resolve();

  /** Resolves when all that came until now is kept, or cannot be. */
  function settle(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length > 0) {
      const [together, bytes] = [waiting, waitingBytes];
      waiting = [];
      waitingBytes = 0;
      keeping = keeping.then(() => keep(together)).finally(() => giveBack(bytes));
    }
    return keeping;
  }

  return {
    settle,
    /** @param bytes - of the allowance */
    add(recording: FinishedRecording, bytes: number): void {
      waiting.push(recording);
      waitingBytes += bytes;
      if (waiting.length === MOST_GATHERED || waitingBytes >= MOST_GATHERED_BYTES) void settle();
      else timer ??= setTimeout(settle, GATHER_MS).unref();
    },
  };
}
