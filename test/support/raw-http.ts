// A raw HTTP/1.1 client on a socket: sends exactly the bytes it is given, so that requests may be malformed or unfinished.

import type { Socket, SocketHandler } from "bun";
import { parseBody, parseHead, parsePartialChunked } from "./http-message.ts";
import { waitFor } from "./wait-for.ts";

export interface RawResponse {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  text: string;
  json: <Shape = Record<string, unknown>>() => Shape;
}

export class RawConnection {
  received = Buffer.alloc(0);
  isClosed = false;
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #unsent = Buffer.alloc(0);

  private constructor(socket: Socket, closed: Promise<void>) {
    this.#socket = socket;
    this.closed = closed;
  }

  /** @param where - a port of this machine, or the path of a unix socket */
  static async open(where: number | string): Promise<RawConnection> {
    const closed = Promise.withResolvers<void>();
    let connection: RawConnection | undefined;
    const hears: SocketHandler<undefined> = {
      data: (_socket, bytes) => {
        if (connection) connection.received = Buffer.concat([connection.received, bytes]);
      },
      drain: () => connection?.flush(),
      end: (ended) => {
        ended.end();
      },
      close: () => {
        if (connection) connection.isClosed = true;
        closed.resolve();
      },
      error: () => {}, // close follows
    };
    const socket =
      typeof where === "string"
        ? await Bun.connect({ unix: where, socket: hears })
        : await Bun.connect({ hostname: "127.0.0.1", port: where, socket: hears });
    connection = new RawConnection(socket, closed.promise);
    return connection;
  }

  write(bytes: string | Uint8Array): void {
    this.#unsent = Buffer.concat([this.#unsent, typeof bytes === "string" ? Buffer.from(bytes) : bytes]);
    this.flush();
  }

  get unsentBytes(): number {
    return this.#unsent.length;
  }

  /** The next whole response; it is taken out of what was received. */
  async response(): Promise<RawResponse> {
    return waitFor(
      "a whole response",
      () => {
        const head = parseHead(this.received);
        if (!head) {
          if (this.isClosed) throw new Error(`closed without a response; received ${this.received.length} bytes`);
          return undefined;
        }
        const body = parseBody(this.received, head.length, head.headers);
        if (!body) return undefined;
        this.received = Buffer.from(this.received.subarray(head.length + body.length));
        return toResponse(head.startLine, head.headers, body.body);
      },
      { explain: () => `received: ${JSON.stringify(this.received.toString("latin1").slice(0, 400))}` },
    );
  }

  /** Body bytes that have arrived so far, chunk framing removed, and whether the last chunk is among them. */
  partialBody(): { body: Buffer; complete: boolean } {
    const head = parseHead(this.received);
    if (!head) return { body: Buffer.alloc(0), complete: false };
    return parsePartialChunked(this.received.subarray(head.length));
  }

  /** Stops reading, so that the sender's buffers fill up. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Leaves at once, with an RST. */
  abort(): void {
    this.#socket.terminate();
  }

  /** Leaves with a FIN, as a client does that ends its process or cancels its request. */
  close(): void {
    this.#socket.end();
  }

  flush(): void {
    if (this.isClosed || this.#unsent.length === 0) return;
    const written = this.#socket.write(this.#unsent);
    this.#unsent = this.#unsent.subarray(Math.max(0, written));
  }
}

/** One POST as bytes, with a correct Content-Length. */
export function postBytes(path: string, body: string, headers: Record<string, string> = {}): Buffer {
  const lines = Object.entries({
    Host: "127.0.0.1",
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

function toResponse(startLine: string, headers: Record<string, string>, body: Buffer): RawResponse {
  const text = body.toString("utf8");
  return { status: Number(startLine.split(" ")[1]), headers, body, text, json: () => JSON.parse(text) };
}
