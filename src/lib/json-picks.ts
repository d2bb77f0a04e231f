// Values at known places of a JSON document, while its bytes arrive: of a long one, only what is asked for is ever in memory. It
// does not check the document; what is not JSON has no such values.

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const TABULATOR = 9;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Names of members are read so far; longer ones are not asked for. */
const MAX_NAME_BYTES = 64;
/** What is nested deeper is nothing that a program writes; it is not read on. */
const MAX_DEPTH = 1_000;

export interface JsonPick {
  /** Names of members and places in lists, from the outside to the value. */
  path: readonly (string | number)[];
  /** The value as it is written, in memory of its own. */
  bytes: Uint8Array;
}

interface OpenPick {
  path: readonly (string | number)[];
  /** A number, true, false or null ends where something else begins. */
  isBare: boolean;
  pieces: Uint8Array[];
  length: number;
}

export class JsonPicks {
  readonly #wanted: readonly (readonly string[])[];
  readonly #maxBytes: number;
  /** Where the present value stands: a name or a place for each open object and list. */
  readonly #path: (string | number)[] = [];
  #expected: "value" | "name" | "other" = "value";
  #string: "name" | "value" | undefined;
  #isEscaped = false;
  #name = "";
  #open: OpenPick | undefined;
  #isWhole = false;
  /** It is no document: nothing more of it is read. */
  #isBroken = false;

  /**
   * @param wanted - names with dots between them, and `*` for each value of a list; no two of them one inside of the other
   * @param maxBytes - of a value; longer ones are passed over
   */
  constructor(wanted: readonly string[], maxBytes: number) {
    this.#wanted = wanted.map((path) => path.split("."));
    this.#maxBytes = maxBytes;
  }

  /** The outermost object or list has ended. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** The values that end in these bytes. */
  *read(bytes: Uint8Array): Generator<JsonPick, void> {
    let start = 0;
    for (let position = 0; position < bytes.length && !this.#isBroken; position++) {
      if (this.#string !== undefined) {
        position = this.#skipString(bytes, position);
        if (position === bytes.length) break;
      }
      const byte = bytes[position] as number;
      const before = this.#open;
      if (isSpace(byte) && before?.isBare !== true) continue;
      if (before?.isBare && endsBare(byte)) {
        const pick = this.#close(bytes.subarray(start, position));
        if (pick !== undefined) yield pick;
      }
      const hasEnded = this.#take(byte);
      if (this.#open !== undefined && this.#open !== before) start = position;
      if (!hasEnded || this.#open === undefined || this.#path.length > this.#open.path.length) continue;
      const pick = this.#close(bytes.subarray(start, position + 1));
      if (pick !== undefined) yield pick;
    }
    if (this.#open !== undefined) this.#keep(bytes.subarray(start));
  }

  /** The place of the quote that ends the present string, or the end of the bytes. */
  #skipString(bytes: Uint8Array, from: number): number {
    let isEscaped = this.#isEscaped;
    let end = from;
    for (; end < bytes.length; end++) {
      if (isEscaped) isEscaped = false;
      else if (bytes[end] === QUOTE) break;
      else isEscaped = bytes[end] === BACKSLASH;
    }
    this.#isEscaped = isEscaped;
    if (this.#string === "name" && this.#name.length <= MAX_NAME_BYTES)
      this.#name += Buffer.from(bytes.subarray(from, Math.min(end, from + MAX_NAME_BYTES + 1))).toString("latin1");
    return end;
  }

  /** True behind the last byte of a string, an object or a list. */
  #take(byte: number): boolean {
    if (this.#string !== undefined) return this.#endString();
    switch (byte) {
      case QUOTE:
        if (this.#expected === "name") {
          this.#string = "name";
          this.#name = "";
        } else {
          this.#begin(false);
          this.#string = "value";
        }
        return false;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#begin(false);
        if (this.#path.push(byte === OPEN_BRACE ? "" : 0) > MAX_DEPTH) this.#isBroken = true;
        this.#expected = byte === OPEN_BRACE ? "name" : "value";
        return false;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#path.pop();
        this.#expected = "other";
        this.#isWhole ||= this.#path.length === 0;
        return true;
      case COMMA: {
        const place = this.#path.pop();
        this.#path.push(typeof place === "number" ? place + 1 : "");
        this.#expected = typeof place === "number" ? "value" : "name";
        return false;
      }
      case COLON:
        this.#expected = "value";
        return false;
      default:
        if (isSpace(byte)) return false;
        if (this.#expected === "value") this.#begin(true);
        if (this.#path.length === 0) this.#isBroken = true;
        return false;
    }
  }

  #endString(): boolean {
    const isValue = this.#string === "value";
    this.#string = undefined;
    if (!isValue) this.#path[this.#path.length - 1] = this.#name;
    return isValue;
  }

  /** The value at the path begins. */
  #begin(isBare: boolean): void {
    this.#expected = "other";
    if (this.#open !== undefined || !this.#wanted.some((wanted) => leadsTo(wanted, this.#path))) return;
    this.#open = { path: [...this.#path], isBare, pieces: [], length: 0 };
  }

  #keep(piece: Uint8Array): void {
    const open = this.#open as OpenPick;
    open.length += piece.length;
    if (open.length > this.#maxBytes) open.pieces = [];
    else open.pieces.push(piece.slice());
  }

  /** Undefined where it was too long. */
  #close(piece: Uint8Array): JsonPick | undefined {
    const { path, length, pieces } = this.#open as OpenPick;
    this.#open = undefined;
    if (length + piece.length > this.#maxBytes) return undefined;
    return { path, bytes: Buffer.concat([...pieces, piece]) };
  }
}

function leadsTo(wanted: readonly string[], path: readonly (string | number)[]): boolean {
  if (wanted.length !== path.length) return false;
  return path.every((step, index) => (typeof step === "number" ? "*" : step) === wanted[index]);
}

function endsBare(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte);
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TABULATOR;
}
