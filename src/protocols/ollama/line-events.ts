// The lines of an Ollama server's stream as events, so that all that watches, keeps and joins streams can read them.

import type { Framer } from "../protocol.ts";
import { MAX_EVENT_BYTES } from "../sse.ts";

const LINE_FEED = 10;
const DATA = Buffer.from("data: ");
const END = Buffer.from("\n\n");

export class LineEvents implements Framer {
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes = MAX_EVENT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  push(piece: Uint8Array): Uint8Array | undefined {
    const end = piece.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      this.#hold(piece);
      return undefined;
    }
    const lines = this.#taken(piece.subarray(0, end));
    this.#hold(piece.subarray(end));
    const events = eventsOf(lines);
    return events.length === 0 ? undefined : events;
  }

  /** A last line may lack its end. */
  rest(): Uint8Array {
    return eventsOf(this.#taken(new Uint8Array(0)));
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > this.#maxBytes) throw new RangeError("a line of the stream is too large");
    this.#held.push(bytes);
  }

  #taken(last: Uint8Array): Uint8Array {
    if (this.#held.length === 0) return last;
    const whole = Buffer.concat([...this.#held, last]);
    this.#held = [];
    this.#heldBytes = 0;
    return whole;
  }
}

/** Empty lines say nothing. */
function eventsOf(lines: Uint8Array): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let start = 0; start < lines.length; ) {
    const found = lines.indexOf(LINE_FEED, start);
    const end = found < 0 ? lines.length : found;
    if (end > start) pieces.push(DATA, lines.subarray(start, end), END);
    start = end + 1;
  }
  return Buffer.concat(pieces);
}
