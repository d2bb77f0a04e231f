// Log lines leave in batches: one system call per line would cost a busy gateway a tenth of its time. A reader that has
// stalled never holds the gateway up: lines wait for it up to a bound, and are counted when they are dropped.

import { constants, fstatSync, openSync, writeSync } from "node:fs";

const FLUSH_INTERVAL_MS = 100;
const FLUSH_LENGTH = 16 * 1024;
/** Characters that wait for a slow reader at most. */
const MAX_WAITING_LENGTH = 1024 * 1024;
/** PIPE_BUF of Linux. */
const ATOMIC_BYTES = 4096;
const NEWLINE = 10;
/** How long the end of the process waits for a slow reader. */
const EXIT_WAIT_MS = 100;

interface BatchedOutput {
  /** Called by the logger with one whole line. */
  write(line: string): void;
  /** Writes at once what has gathered, as far as the reader takes it. */
  flush(): void;
}

/**
 * Lines wait at most a tenth of a second. The process must end in a way that runs its exit handlers: they flush; a kill
 * that cannot be caught loses the last tenth of a second. `isShared`: other processes write there too, and no line must
 * stand within one of theirs.
 */
export function batchedOutput(
  fileDescriptor: number,
  lostLines: (count: number) => string,
  isShared = false,
): BatchedOutput {
  const target = nonBlocking(fileDescriptor);
  let gathered = "";
  /** The rest of a batch of which the reader has taken a part. */
  let unsent: Uint8Array = new Uint8Array(0);
  let lost = 0;
  let timer: Timer | undefined;

  /** True when nothing is left to write. */
  function send(): boolean {
    for (;;) {
      if (unsent.length === 0) {
        if (lost > 0) {
          gathered += lostLines(lost);
          lost = 0;
        }
        if (gathered === "") return true;
        unsent = new TextEncoder().encode(gathered);
        gathered = "";
      }
      try {
        unsent = unsent.subarray(writeSync(target, isShared ? wholeLines(unsent) : unsent));
      } catch (error) {
        if ((error as { code?: string }).code === "EAGAIN") return false;
        unsent = new Uint8Array(0); // the reader has gone; that must not end the gateway
      }
    }
  }

  function flush(): void {
    clearTimeout(timer);
    timer = send() ? undefined : setTimeout(flush, FLUSH_INTERVAL_MS);
  }

  process.on("exit", () => {
    const endMs = performance.now() + EXIT_WAIT_MS;
    while (!send() && performance.now() < endMs) Bun.sleepSync(5);
  });
  return {
    write(line) {
      if (gathered.length + line.length > MAX_WAITING_LENGTH) {
        lost++;
        return;
      }
      gathered += line;
      if (gathered.length >= FLUSH_LENGTH && unsent.length === 0) flush();
      else timer ??= setTimeout(flush, FLUSH_INTERVAL_MS);
    },
    flush,
  };
}

/** The first lines that a pipe takes in one piece; a line that is longer may be interrupted. */
function wholeLines(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= ATOMIC_BYTES) return bytes;
  const end = bytes.lastIndexOf(NEWLINE, ATOMIC_BYTES - 1);
  return bytes.subarray(0, (end < 0 ? bytes.indexOf(NEWLINE) : end) + 1);
}

/** A pipe is opened once more for this process alone: the mode of the inherited one is shared with other processes. */
function nonBlocking(fileDescriptor: number): number {
  try {
    if (!fstatSync(fileDescriptor).isFIFO()) return fileDescriptor;
    return openSync(`/proc/self/fd/${fileDescriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return fileDescriptor; // not Linux
  }
}
