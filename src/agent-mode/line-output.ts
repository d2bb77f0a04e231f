// Standard output as a line goes there: whole, in order, and never faster than its reader takes it.

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
  const gone = Promise.withResolvers<void>();
  let isGone = false;
  let sending: Promise<void> | undefined;

  function fail(): void {
    isGone = true;
    gone.resolve();
  }

  return {
    write(line) {
      if (isGone) return;
      try {
        sink.write(line);
        const rest = sink.flush();
        if (!(rest instanceof Promise)) return;
        const sent = rest.then(() => {
          if (sending === sent) sending = undefined;
        }, fail);
        sending = sent;
        return Promise.race([sent, gone.promise]);
      } catch {
        fail(); // EPIPE, as a rule: the reader has gone
      }
    },
    broken: gone.promise,
    flushed: () => Promise.race([sending, gone.promise]),
  };
}
