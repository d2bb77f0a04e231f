// What waits for the client to read: whole lines, in order. Nothing is ever thrown away; those who make text wait for room
// instead, so that a client that does not read stops them and not the memory.

/** The official library takes no more, in either direction. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** From here on turns and replays wait. */
const FULL_BYTES = 1024 * 1024;

/** From here on nothing more is read from the client: it can ask for more than it reads. */
const CHOKED_BYTES = 16 * 1024 * 1024;

const encoder = new TextEncoder();

export type Write = (line: Uint8Array) => void | Promise<void>;

interface Waiter {
  maxBytes: number;
  resolve(): void;
}

export class LineOutbox {
  readonly #write: Write;
  readonly #lines: Uint8Array[] = [];
  #bytes = 0;
  /** A line is on its way, and the next ones must wait. */
  #isWriting = false;
  #isClosed = false;
  #waiters: Waiter[] = [];

  constructor(write: Write) {
    this.#write = write;
  }

  get isFull(): boolean {
    return this.#bytes > FULL_BYTES;
  }

  get isChoked(): boolean {
    return this.#bytes > CHOKED_BYTES;
  }

  /** Bytes that wait to be sent. */
  get size(): number {
    return this.#bytes;
  }

  /** Text of one message without line breaks, as JSON.stringify makes it. False: it is longer than a client takes. */
  send(text: string): boolean {
    const line = encoder.encode(`${text}\n`);
    if (line.length > MAX_LINE_BYTES) return false;
    if (this.#isClosed) return true;
    this.#lines.push(line);
    this.#bytes += line.length;
    if (!this.#isWriting) this.#pump();
    return true;
  }

  /** Resolves when there is room for more; throws the signal's reason. */
  room(signal?: AbortSignal): Promise<void> {
    return this.#below(FULL_BYTES, signal);
  }

  unchoked(): Promise<void> {
    return this.#below(CHOKED_BYTES);
  }

  /** Everything is written, or the reader is gone. */
  drained(): Promise<void> {
    return this.#below(0);
  }

  /** The reader is gone: what waits is dropped, and waits end. */
  close(): void {
    this.#isClosed = true;
    this.#lines.length = 0;
    this.#bytes = 0;
    this.#wake();
  }

  #below(maxBytes: number, signal?: AbortSignal): Promise<void> {
    if (this.#isReady(maxBytes)) return Promise.resolve();
    return new Promise<void>((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const aborted = () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        maxBytes,
        resolve() {
          signal?.removeEventListener("abort", aborted);
          resolve();
        },
      };
      signal?.addEventListener("abort", aborted, { once: true });
      this.#waiters.push(waiter);
    });
  }

  #isReady(maxBytes: number): boolean {
    return this.#isClosed || (this.#bytes <= maxBytes && (maxBytes > 0 || !this.#isWriting));
  }

  /** Writes until a write has to be waited for. */
  #pump(): void {
    for (let line = this.#lines.shift(); line !== undefined; line = this.#lines.shift()) {
      const { length } = line;
      let written: void | Promise<void>;
      try {
        written = this.#write(line);
      } catch {
        this.close(); // the client has closed its end
        return;
      }
      if (written === undefined) {
        this.#bytes -= length;
        continue;
      }
      this.#isWriting = true;
      written.then(
        () => {
          this.#isWriting = false;
          if (!this.#isClosed) this.#bytes -= length;
          this.#pump();
          this.#wake();
        },
        () => {
          this.#isWriting = false;
          this.close();
        },
      );
      return;
    }
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ maxBytes }) => this.#isReady(maxBytes));
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter((each) => !ready.includes(each));
    for (const waiter of ready) waiter.resolve();
  }
}
