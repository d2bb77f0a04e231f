// Bytes -> lines, wherever the bytes were split. A line that is too long is reported once and skipped; nothing of it is kept.

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Memory that stays between two lines; that of a longer line is freed with it. */
const KEPT_BYTES = 64 * 1024;

/** A line without its end, valid until the next one is asked for; "too-long" stands for one that was skipped. */
export type Line = Uint8Array | "too-long";

export class LineReader {
  readonly #maxBytes: number;
  /** The beginning of a line whose end has not come; it doubles, so that each byte is copied a few times at most. */
  #buffer = new Uint8Array(0);
  #length = 0;
  #isSkipping = false;
  #ended = 0;
  /** Counts the lines before the present one, and that one; blank lines count too. */
  number = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in these bytes. All of them must be asked for before the next bytes are given. */
  *read(bytes: Uint8Array): Generator<Line, void> {
    let start = 0;
    while (start < bytes.length) {
      const end = bytes.indexOf(LINE_FEED, start);
      if (end < 0) {
        if (this.#keep(bytes.subarray(start)) !== "too-long") return;
        this.number = this.#ended + 1;
        yield "too-long";
        return;
      }
      const line = this.#finish(bytes.subarray(start, end));
      if (line !== undefined) yield line;
      start = end + 1;
    }
  }

  /** The bytes behind the last line feed: a client may end without one. */
  end(): Uint8Array | undefined {
    const line = this.#finish(new Uint8Array(0));
    return line === "too-long" ? undefined : line;
  }

  #keep(bytes: Uint8Array): "too-long" | undefined {
    if (this.#isSkipping) return undefined;
    const length = this.#length + bytes.length;
    if (length > this.#maxBytes) {
      this.#forget();
      this.#isSkipping = true;
      return "too-long";
    }
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.min(this.#maxBytes, Math.max(length, 2 * this.#buffer.length)));
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#length);
    this.#length = length;
    return undefined;
  }

  /** The line that ends with these bytes; undefined for a blank one, and for the rest of one that is skipped. */
  #finish(bytes: Uint8Array): Line | undefined {
    this.number = ++this.#ended;
    if (this.#isSkipping) {
      this.#isSkipping = false;
      return undefined;
    }
    if (this.#length === 0) return bytes.length > this.#maxBytes ? "too-long" : withoutEnd(bytes);
    if (this.#keep(bytes) === "too-long") {
      this.#isSkipping = false;
      return "too-long";
    }
    const line = withoutEnd(this.#buffer.subarray(0, this.#length));
    this.#forget();
    return line;
  }

  #forget(): void {
    this.#length = 0;
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = new Uint8Array(0);
  }
}

function withoutEnd(bytes: Uint8Array): Uint8Array | undefined {
  const line = bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
  return line.every((byte) => byte === 32 || byte === 9 || byte === CARRIAGE_RETURN) ? undefined : line;
}
