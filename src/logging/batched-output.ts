// Log lines leave in batches: one system call per line would cost a busy gateway a tenth of its time.

import { writeSync } from "node:fs";

const FLUSH_INTERVAL_MS = 100;
const FLUSH_LENGTH = 16 * 1024;

export interface BatchedOutput {
  /** Called by the logger with one whole line. */
  write(line: string): void;
  /** Writes at once what has gathered. */
  flush(): void;
}

/**
 * Lines wait at most a tenth of a second. Whoever ends the process must let its exit handlers run: they flush; a kill
 * that cannot be caught loses the last tenth of a second.
 */
export function batchedOutput(fileDescriptor: number): BatchedOutput {
  let gathered = "";
  let timer: Timer | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const text = gathered;
    gathered = "";
    if (text !== "") writeAll(fileDescriptor, text);
  }

  process.on("exit", flush);
  return {
    write(line) {
      gathered += line;
      if (gathered.length >= FLUSH_LENGTH) flush();
      else timer ??= setTimeout(flush, FLUSH_INTERVAL_MS);
    },
    flush,
  };
}

/** A pipe may take a part only, or nothing for the moment; a reader that has gone away must not end the gateway. */
function writeAll(fileDescriptor: number, text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  let refusals = 0;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fileDescriptor, rest));
      refusals = 0;
    } catch (error) {
      const code = (error as { code?: string }).code;
      // A reader that has fallen behind is waited for shortly; a log that nobody reads is not worth a stopped gateway.
      if (code !== "EAGAIN" || ++refusals > 50) return;
      Bun.sleepSync(1);
    }
  }
}
