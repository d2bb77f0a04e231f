// One reader of the live events: what is written goes to its connection or nowhere.

export interface EventListener {
  /** Sends what it is given unless the reader is behind: then its connection is closed. */
  send(bytes: Uint8Array): void;
  /** The answer ends in order; the reader may come again. */
  end(): void;
  readonly body: ReadableStream;
}

/**
 * A write that the connection does not take at once is the only one that waits: a reader that has not taken it when there
 * is more is dropped, so that nothing piles up for it here.
 * @param over - called once, however it ends; `isDropped`: it was too slow
 */
export function createEventListener(first: Uint8Array, over: (isDropped: boolean) => void): EventListener {
  let client: ReadableStreamDirectController | undefined;
  let isBehind = false;
  let isOver = false;
  const done = Promise.withResolvers<void>();

  function finish(isDropped: boolean): void {
    isOver = true;
    done.resolve();
    over(isDropped);
  }

  function write(bytes: Uint8Array): void {
    const written = client?.write(bytes) as number | Promise<unknown> | undefined;
    if (written === undefined || typeof written === "number") return;
    isBehind = true;
    // A connection that breaks meanwhile cancels the stream.
    written.then(
      () => {
        isBehind = false;
      },
      () => {},
    );
  }

  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(controller) {
      client = controller;
      if (!isOver) {
        write(first);
        await done.promise;
      }
      // Closing a stream that was cancelled does nothing.
      client.close(isBehind ? new Error("the reader fell behind") : undefined);
    },
    cancel() {
      if (!isOver) finish(false);
    },
  };
  return {
    body: new ReadableStream(source),
    send(bytes) {
      if (isOver || client === undefined) return;
      if (isBehind) finish(true);
      else write(bytes);
    },
    end() {
      if (!isOver) finish(false);
    },
  };
}
