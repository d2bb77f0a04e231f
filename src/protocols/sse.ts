// Server-Sent Events as bytes: whole events out of arbitrary pieces (https://html.spec.whatwg.org/multipage/server-sent-events.html).

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Longest single event that is held back; no known backend sends events of this size. */
export const MAX_EVENT_BYTES = 32 * 1024 * 1024;

/**
 * Cuts a byte stream at event boundaries without copying in the usual case, so that a client never sees half an event.
 * Throws RangeError when one event grows beyond `maxBytes`.
 */
export class EventFramer {
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes = MAX_EVENT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes up to the last event boundary, or undefined when no event is complete yet. */
  push(chunk: Uint8Array): Uint8Array | undefined {
    const length = chunk.length;
    if (this.#heldBytes === 0 && length >= 2 && isBoundary(chunk[length - 1], chunk[length - 2], chunk[length - 3])) {
      return chunk;
    }
    const end = this.#lastBoundary(chunk);
    if (end === 0) {
      this.#hold(chunk);
      return undefined;
    }
    const whole = this.#heldBytes === 0 ? chunk.subarray(0, end) : this.#join(chunk.subarray(0, end));
    if (end < length) this.#hold(chunk.subarray(end));
    return whole;
  }

  /** What is left after the last boundary. */
  rest(): Uint8Array {
    return this.#join(new Uint8Array(0));
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > this.#maxBytes) throw new RangeError("an event of the stream is too large");
    this.#held.push(bytes);
  }

  #join(last: Uint8Array): Uint8Array {
    const whole = new Uint8Array(this.#heldBytes + last.length);
    let offset = 0;
    for (const piece of this.#held) {
      whole.set(piece, offset);
      offset += piece.length;
    }
    whole.set(last, offset);
    this.#held = [];
    this.#heldBytes = 0;
    return whole;
  }

  /** Offset in the chunk behind the last boundary that ends inside it; 0 when there is none. */
  #lastBoundary(chunk: Uint8Array): number {
    for (let end = chunk.length; end > 0; end--) {
      const last = chunk[end - 1];
      if (last !== LINE_FEED && last !== CARRIAGE_RETURN) continue;
      if (isBoundary(last, this.#byteBefore(chunk, end - 1), this.#byteBefore(chunk, end - 2))) return end;
    }
    return 0;
  }

  /** The byte before an offset of the chunk, looked up in what is held when the offset is at its start. */
  #byteBefore(chunk: Uint8Array, offset: number): number | undefined {
    if (offset > 0) return chunk[offset - 1];
    let back = offset; // 0 = the last byte held, -1 = the one before it
    for (let index = this.#held.length - 1; index >= 0; index--) {
      const piece = this.#held[index] as Uint8Array;
      if (piece.length + back > 0) return piece[piece.length - 1 + back];
      back += piece.length;
    }
    return undefined;
  }
}

/** Whether a byte ends an event: an empty line with any of the three line ends of the standard. */
function isBoundary(last: number | undefined, before: number | undefined, beforeThat: number | undefined): boolean {
  if (last === LINE_FEED) {
    return (
      before === LINE_FEED ||
      (before === CARRIAGE_RETURN && (beforeThat === LINE_FEED || beforeThat === CARRIAGE_RETURN))
    );
  }
  return last === CARRIAGE_RETURN && before === CARRIAGE_RETURN;
}

const latin1 = new TextDecoder("latin1");

/** Whole events one by one, as bytes; together they are what was given. */
export function singleEvents(events: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let offset = 0;
  // As Latin-1 every byte is one character, so that offsets are right whatever the bytes are.
  for (const { length } of latin1.decode(events).split(/(?<=\n\r?\n|\r\r)/)) {
    pieces.push(events.subarray(offset, offset + length));
    offset += length;
  }
  return pieces;
}

/** The data of each event in a text of whole events; comments and events without data are left out. */
export function eventData(text: string): string[] {
  return readEvents(text).map((event) => event.data);
}

export interface SseEvent {
  /** The `event:` field. */
  name: string | undefined;
  data: string;
}

/** The events in a text of whole events, read line by line; comments and events without data are left out. */
export function readEvents(text: string): SseEvent[] {
  const lines = text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
  const events: SseEvent[] = [];
  let name: string | undefined;
  let data: string | undefined;
  let start = 0;
  while (start < lines.length) {
    const lineFeed = lines.indexOf("\n", start);
    const end = lineFeed < 0 ? lines.length : lineFeed;
    if (end === start) {
      if (data !== undefined) events.push({ name, data });
      name = undefined;
      data = undefined;
    } else if (lines.startsWith("data:", start)) {
      const value = lines.slice(lines[start + 5] === " " ? start + 6 : start + 5, end);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (end - start === 4 && lines.startsWith("data", start)) {
      data = data === undefined ? "" : `${data}\n`;
    } else if (lines.startsWith("event:", start)) {
      name = lines.slice(lines[start + 6] === " " ? start + 7 : start + 6, end);
    }
    start = end + 1;
  }
  if (data !== undefined) events.push({ name, data });
  return events;
}
