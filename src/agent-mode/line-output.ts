// Standard output as a line goes there: whole, in order, and never faster than its reader takes it.

import { orAborted } from "../lib/abortable-delay.ts";

interface LineOutput {
  /** A promise: the reader has not taken it yet, and more should wait. After the reader has gone nothing happens. */
  write(line: Uint8Array): void | Promise<void>;
  /** Resolves when the reader has gone; never rejects. */
  readonly broken: Promise<void>;
  /** Resolves when everything has left, or the reader has gone. */
  flushed(): Promise<void>;
}

export function createLineOutput(file: { writer(): Bun.FileSink } = Bun.stdout): LineOutput {
  const sink = file.writer();
  // A signal, not a promise: each line that waits would leave a reaction behind at a promise.
  const gone = new AbortController();
  const broken = new Promise<void>((resolve) => gone.signal.addEventListener("abort", () => resolve()));
  const fail = () => gone.abort();
  let sending: Promise<void> | undefined;

  return {
    write(line) {
      if (gone.signal.aborted) return;
      try {
        sink.write(line);
        const rest = sink.flush();
        if (!(rest instanceof Promise)) return;
        const sent = rest.then(() => {
          if (sending === sent) sending = undefined;
        }, fail);
        sending = sent;
        return orAborted(sent, gone.signal);
      } catch {
        fail(); // EPIPE, as a rule: the reader has gone
      }
    },
    broken,
    flushed: () => orAborted(Promise.resolve(sending), gone.signal),
  };
}
