// A look over the bytes of JSON before anything is made of them: how deep it nests, how many parts it has, and how many
// members its outermost object. It goes over any bytes; what it says is true of valid JSON only.

const QUOTE = 34;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Requests of agents have some 10,000 parts, with a thousand tools some 100,000. So many take up to 50 MB, and an object
 * with that many names still grows without holding others up for long.
 */
const MAX_PARTS = 500_000;

/** Schemas of tools nest some ten levels deep; translations take 200 levels of one field (protocols/fields.ts). */
const MAX_DEPTH = 256;

/** What is too much for those who read it, as a predicate of a sentence; undefined: nothing. */
export function excessIn({ deepest, parts }: Pick<JsonShape, "deepest" | "parts">): string | undefined {
  if (deepest > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`;
  if (parts > MAX_PARTS) return `consists of more than ${MAX_PARTS} objects, lists, names and texts`;
  return undefined;
}

/** Most strings end within so many bytes; longer ones are left to the runtime's search. */
const SHORT_STRING_BYTES = 16;

export class JsonShape {
  /** The levels of the deepest value. */
  deepest = 0;
  /** Objects, lists, names and texts: what takes memory of its own when it is parsed. Numbers and words do not. */
  parts = 0;
  /** Members of the outermost object, repeated ones included. */
  members = 0;
  readonly #bytes: Uint8Array;
  #position = 0;
  #depth = 0;
  #isInString = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isComplete(): boolean {
    return this.#position >= this.#bytes.length;
  }

  /** Goes on over so many bytes, or more where a search is quicker than counting. */
  advance(byteCount: number): void {
    const bytes = this.#bytes;
    const end = Math.min(bytes.length, this.#position + byteCount);
    let position = this.#position;
    let depth = this.#depth;
    let isInString = this.#isInString;
    let { deepest, parts, members } = this;
    while (position < end) {
      if (isInString) {
        const behind = endOfString(bytes, position, end);
        isInString = behind < 0;
        position = Math.abs(behind);
        continue;
      }
      const byte = bytes[position++];
      if (byte === QUOTE) {
        parts++;
        isInString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        parts++;
        if (++depth > deepest) deepest = depth;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
      else if (byte === COLON && depth === 1) members++;
    }
    this.#position = position;
    this.#depth = depth;
    this.#isInString = isInString;
    this.deepest = deepest;
    this.parts = parts;
    this.members = members;
  }
}

/**
 * The offset behind the closing quote of a string whose text, or the rest of it, begins at `start`; the end of the bytes
 * where it has none. Once the search has come to `pauseAt` it may stop: minus the offset where it is to go on.
 */
export function endOfString(bytes: Uint8Array, start: number, pauseAt: number): number {
  let position = start;
  const quick = Math.min(bytes.length, start + SHORT_STRING_BYTES);
  while (position < quick) {
    const byte = bytes[position];
    if (byte === QUOTE) return position + 1;
    position += byte === BACKSLASH ? 2 : 1;
  }
  // From here on `position` is not behind an open backslash, so that the count of those before a quote can end there.
  while (position < pauseAt) {
    const quote = bytes.indexOf(QUOTE, position);
    if (quote < 0) return bytes.length;
    let textEnd = quote;
    while (textEnd > position && bytes[textEnd - 1] === BACKSLASH) textEnd--;
    position = quote + 1;
    if ((quote - textEnd) % 2 === 0) return position;
  }
  return position < bytes.length ? -position : bytes.length;
}
