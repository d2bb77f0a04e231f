// A large body piece by piece: no more is asked of the client before the last piece was taken.

import { ERRORS } from "../errors/catalog.ts";
import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { tooLarge } from "./read-body.ts";

export interface PiecesOptions {
  deadlines: Deadlines;
  now(): number;
  /** Longest pause of the client. */
  timeoutMs: number;
  /** Largest size of the whole request. */
  maxBytes: number;
}

/**
 * Each piece is the reader's only until the next one is asked for. Throws GatewayError: 408 for a client that pauses too long,
 * or that has left, and 413. What was not read then still can be.
 */
export async function* bodyPieces(request: Request, options: PiecesOptions): AsyncGenerator<Uint8Array, void> {
  if (Number(request.headers.get("content-length") ?? 0) > options.maxBytes) throw tooLarge(options.maxBytes);
  if (request.body === null) return;
  const reader = (request.body as ReadableStream<Uint8Array>).getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const client = new SendingClient(options);
  let totalBytes = 0;
  try {
    for (;;) {
      const value = await client.next(reader);
      if (value === undefined) return;
      totalBytes += value.length;
      if (totalBytes > options.maxBytes) throw tooLarge(options.maxBytes);
      yield value;
      letGo(value);
    }
  } catch (error) {
    throw request.signal.aborted ? clientLeft() : error;
  } finally {
    client.end();
    // A reader that still waits for a piece keeps its lock: there is nothing to be drained.
    if (!client.isLate) reader.releaseLock();
  }
}

/**
 * Pieces are up to a megabyte and a half, hundreds come in a second, and none is read again: left to the garbage
 * collector, they take tens of megabytes together.
 */
function letGo({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

/** A client while it sends: its time runs only while it is waited for. */
class SendingClient implements Deadline {
  deadlineMs = Number.POSITIVE_INFINITY;
  older: Deadline | undefined = undefined;
  newer: Deadline | undefined = undefined;
  isLate = false;
  readonly #options: PiecesOptions;
  #refuse: (error: GatewayError) => void = () => {};

  constructor(options: PiecesOptions) {
    this.#options = options;
  }

  /** Undefined at the end of the body. */
  next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    const { deadlines, now, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      this.#refuse = reject;
      this.deadlineMs = now() + timeoutMs;
      deadlines.add(this);
      reader.read().then(({ value }) => {
        this.deadlineMs = Number.POSITIVE_INFINITY;
        resolve(value);
      }, reject);
    });
  }

  end(): void {
    this.#options.deadlines.remove(this);
  }

  expire(): void {
    this.isLate = true;
    const message = `No more of the request body arrived within ${this.#options.timeoutMs} ms (timeouts.request_body).`;
    // The rest of the body would be read as the next request.
    this.#refuse(new GatewayError(ERRORS.requestTimeout, message, { headers: { Connection: "close" } }));
  }
}
