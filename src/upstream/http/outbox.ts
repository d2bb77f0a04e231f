// What a socket has still to send of a request.

import type { OutgoingRequest } from "./request-head.ts";

interface Writable {
  /** Returns how many bytes were taken; -1 for a socket that is closed. */
  write(bytes: Uint8Array, from?: number, length?: number): number;
}

export class RequestOutbox {
  readonly #parts: Uint8Array[] = [];

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** @param scratch - where a small request is put together, so that it leaves in one piece */
  send({ head, body, bodyBytes }: OutgoingRequest, socket: Writable, scratch: Buffer): void {
    if (head.length + bodyBytes > scratch.length) {
      this.#parts.push(Buffer.from(head, "latin1"));
      if (body !== undefined) this.#parts.push(typeof body === "string" ? Buffer.from(body) : body);
      this.flush(socket);
      return;
    }
    const headBytes = scratch.write(head, 0, "latin1");
    if (typeof body === "string") scratch.write(body, headBytes, "utf8");
    else if (body !== undefined) scratch.set(body, headBytes);
    const length = headBytes + bodyBytes;
    const written = Math.max(0, socket.write(scratch, 0, length));
    if (written < length) this.#parts.push(new Uint8Array(scratch.subarray(written, length)));
  }

  /** Sends what the socket takes now. A closed one takes nothing, and tells its owner by itself. */
  flush(socket: Writable): void {
    for (let part = this.#parts[0]; part !== undefined; part = this.#parts[0]) {
      const written = Math.max(0, socket.write(part));
      if (written < part.length) {
        this.#parts[0] = part.subarray(written);
        return;
      }
      this.#parts.shift();
    }
  }

  clear(): void {
    this.#parts.length = 0;
  }
}
