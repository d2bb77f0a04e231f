// Parses a large JSON object or list piece by piece, with a pause after each, so that nothing else waits for the whole. The
// outcome is that of JSON.parse: the same value, or a SyntaxError, which here any other value is too. Bytes that are no UTF-8
// are a TypeError, as with a strict TextDecoder.

import { endOfString } from "./json-shape.ts";

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const LETTER_U = 117;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export interface Pieces {
  /** At least 16. What is parsed in one go is hardly longer. */
  pieceBytes: number;
  /** Gives other work its turn. */
  pause(): Promise<void>;
}

/** Byte order marks inside the text are text. */
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

type Container = unknown[] | Record<string, unknown>;

/** A list or an object that is open at the present position. */
interface JsonFrame {
  closing: number;
  /** Where the text begins that nothing has been made of yet. */
  start: number;
  /** Where the present element or member begins. */
  entryStart: number;
  /** Made when it is known that the container is too long for one piece. */
  value: Container | undefined;
  /** The present entry is in `value` already; only a comma or the end may follow. */
  isEntryDone: boolean;
}

export function parseInPieces(bytes: Uint8Array, pieces: Pieces): Promise<unknown> {
  return new PieceParser(bytes, pieces).parse();
}

class PieceParser {
  readonly #bytes: Uint8Array;
  readonly #pieceBytes: number;
  readonly #pause: () => Promise<void>;
  readonly #frames: JsonFrame[] = [];

  constructor(bytes: Uint8Array, { pieceBytes, pause }: Pieces) {
    this.#bytes = bytes;
    this.#pieceBytes = pieceBytes;
    this.#pause = pause;
  }

  async parse(): Promise<unknown> {
    const bytes = this.#bytes;
    const frames = this.#frames;
    const start = hasByteOrderMark(bytes) ? 3 : 0;
    let position = start;
    let pauseAt = this.#pieceBytes;
    while (position < bytes.length) {
      if (position >= pauseAt) {
        await this.#pause();
        pauseAt = position + this.#pieceBytes;
      }
      const byte = bytes[position++];
      const frame = frames.at(-1);
      if (byte === QUOTE) {
        let end = endOfString(bytes, position, position + this.#pieceBytes);
        while (end < 0) {
          await this.#pause();
          end = endOfString(bytes, -end, this.#pieceBytes - end);
        }
        if (frame !== undefined && end - position > this.#pieceBytes) await this.#addLongString(position, end);
        position = end;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (frame === undefined && !isBlank(bytes, start, position - 1)) throw new SyntaxError("Unexpected text");
        const closing = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
        frames.push({ closing, start: position, entryStart: position, value: undefined, isEntryDone: false });
      } else if (byte === COMMA && frame !== undefined) {
        if (frame.isEntryDone || position - frame.start > this.#pieceBytes) {
          await this.#addEntries(frames.length - 1, position - 1);
          frame.start = position;
        }
        frame.entryStart = position;
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && frame !== undefined) {
        if (frame.value !== undefined || this.#isLong(frame, position - 1)) {
          if (byte !== frame.closing) throw new SyntaxError("Unexpected closing bracket");
          await this.#addEntries(frames.length - 1, position - 1);
        }
        frames.pop();
        if (frames.length === 0) return this.#end(frame, start, position);
        if (frame.value !== undefined) this.#entryDone(position);
      }
    }
    if (frames.length > 0) throw new SyntaxError("Unexpected end of the text");
    throw new SyntaxError("Expected an object or a list");
  }

  /** True if a container that ends here has more unread text than a piece, other than blanks. */
  #isLong({ start }: JsonFrame, end: number): boolean {
    return end - start > this.#pieceBytes && !isBlank(this.#bytes, start, end);
  }

  #end(root: JsonFrame, start: number, end: number): unknown {
    if (!isBlank(this.#bytes, end, this.#bytes.length)) throw new SyntaxError("Unexpected text after the JSON value");
    return root.value ?? JSON.parse(this.#text(start, end));
  }

  /** The innermost open container has its present entry, which ends here. */
  #entryDone(end: number): void {
    const frame = this.#frames.at(-1) as JsonFrame;
    frame.start = end;
    frame.isEntryDone = true;
  }

  /** Adds what stands between the start of a container's unread text and `end`: whole entries. */
  async #addEntries(level: number, end: number): Promise<void> {
    const frame = this.#frames[level] as JsonFrame;
    const { start, isEntryDone } = frame;
    frame.isEntryDone = false;
    if (isEntryDone) {
      if (!isBlank(this.#bytes, start, end)) throw new SyntaxError("Expected a comma");
      return;
    }
    const container = await this.#containerAt(level);
    const added = addTo(container, this.#text(start, end));
    if (added === 0) throw new SyntaxError("Unexpected comma");
    await this.#pause();
  }

  /** The container of a level, made now if it has not been, and those around it. */
  async #containerAt(level: number): Promise<Container> {
    const frame = this.#frames[level] as JsonFrame;
    if (frame.value === undefined) {
      const value: Container = frame.closing === CLOSE_BRACE ? {} : [];
      if (level > 0) await this.#addEntry(level - 1, frame.start - 1, value);
      frame.value = value;
    }
    return frame.value;
  }

  /** Adds the present entry of a container: a value whose text begins at `valueStart`. */
  async #addEntry(level: number, valueStart: number, value: unknown): Promise<void> {
    const frame = this.#frames[level] as JsonFrame;
    const container = await this.#containerAt(level);
    if (frame.isEntryDone) throw new SyntaxError("Expected a comma");
    if (frame.entryStart > frame.start) {
      await this.#addEntries(level, frame.entryStart - 1);
      frame.start = frame.entryStart;
    }
    const before = this.#text(frame.entryStart, valueStart);
    if (Array.isArray(container)) {
      if (before.trim() !== "") throw new SyntaxError("Expected a comma");
      container.push(value);
      return;
    }
    const [name = ""] = Object.keys(JSON.parse(`{${before}0}`) as object);
    setMember(container, name, value);
  }

  /** A string that is longer than a piece; its text begins at `start`, and `end` is behind its closing quote. */
  async #addLongString(start: number, end: number): Promise<void> {
    const level = this.#frames.length - 1;
    const { closing, entryStart } = this.#frames[level] as JsonFrame;
    const isName = closing === CLOSE_BRACE && isBlank(this.#bytes, entryStart, start - 1);
    if (isName || this.#bytes[end - 1] !== QUOTE) return; // left to the piece that it stands in
    let text = "";
    for (let from = start; from < end - 1; ) {
      const to = this.#cutBefore(Math.min(from + this.#pieceBytes, end - 1), from, end - 1);
      text += JSON.parse(`"${this.#text(from, to)}"`) as string;
      from = to;
      await this.#pause();
    }
    await this.#addEntry(level, start - 1, text);
    this.#entryDone(end);
  }

  /** The last place up to `limit` that is not inside a character or an escape. */
  #cutBefore(limit: number, from: number, textEnd: number): number {
    if (limit >= textEnd) return textEnd;
    const bytes = this.#bytes;
    let cut = limit;
    while (cut > from && ((bytes[cut] as number) & 0xc0) === 0x80) cut--;
    for (let back = 1; back <= 5; back++) {
      const at = cut - back;
      if (at < from) break;
      if (bytes[at] !== BACKSLASH || (back > 1 && bytes[at + 1] !== LETTER_U)) continue;
      let run = at;
      while (run > from && bytes[run - 1] === BACKSLASH) run--;
      if ((at - run) % 2 === 0) return at; // an escape begins there
    }
    return cut > from ? cut : limit; // no UTF-8: reading it will say so
  }

  #text(start: number, end: number): string {
    return strictDecoder.decode(this.#bytes.subarray(start, end));
  }
}

/** Returns the number of entries that the text had. */
function addTo(container: Container, text: string): number {
  if (Array.isArray(container)) {
    const elements = JSON.parse(`[${text}]`) as unknown[];
    for (const element of elements) container.push(element);
    return elements.length;
  }
  const members = JSON.parse(`{${text}}`) as Record<string, unknown>;
  const names = Object.keys(members);
  for (const name of names) setMember(container, name, members[name]);
  return names.length;
}

function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let position = start; position < end; position++) {
    const byte = bytes[position];
    if (byte !== 32 && byte !== 10 && byte !== 13 && byte !== 9) return false;
  }
  return true;
}

function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}
