// Reads HTTP/1.1 answers out of bytes that come in pieces of any size (RFC 9112), one answer after another.

import { AnswerHead, readLine, VALUE_BYTES } from "./answer-head.ts";
import { connectionReset, HttpError, malformed } from "./http-error.ts";

/** What is reported of an answer, from within `push` and `finish`. */
export interface AnswerSink {
  headRead(head: AnswerHead): void;
  /** A part of the bytes that were pushed; a large one is no copy. */
  pieceRead(piece: Uint8Array): void;
}

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_HEAD_LINES = 512;
const MAX_INTERIM_HEADS = 16;
/** Of one chunk's extensions, and of all trailers. */
const MAX_IGNORED_BYTES = 16 * 1024;

const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const SEMICOLON = 59;
const NOTHING = new Uint8Array(0);

type ParserState =
  | "head"
  | "length" // a body of known length
  | "close" // a body that ends with the connection
  | "chunk-line"
  | "chunk"
  | "chunk-end"
  | "trailers"
  | "over";

export class AnswerParser {
  /** While it is set, `push` takes nothing and the sink hears nothing. It may be set and unset from within the sink. */
  paused = false;
  /** Whether the connection can be used again after the answer, as its head says. */
  keepsAlive = false;
  readonly #sink: AnswerSink;
  #state: ParserState = "head";
  #forHead = false;
  /** A head that is not there in whole, in memory that is doubled as it grows; and where its first unread line begins. */
  #held: Uint8Array = NOTHING;
  #heldBytes = 0;
  #lineAt = 0;
  /** Up to where that line was checked. */
  #checkedTo = 0;
  #headLines = 0;
  #interimHeads = 0;
  /** Bytes that the body or the chunk still has, or the chunk's size so far. */
  #left = 0;
  /** Bytes of the running line of the chunked coding, or of all trailers. */
  #lineBytes = 0;
  #linePart: "size" | "blank" | "extension" = "size";
  #isEmptyLine = true;
  #hasReturn = false;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** All of the answer was read. */
  get isOver(): boolean {
    return this.#state === "over";
  }

  /** The next answer is awaited. @param forHead - it answers HEAD, and so has no body */
  begin(forHead: boolean): void {
    this.#state = "head";
    this.#forHead = forHead;
    this.#interimHeads = 0;
    this.paused = false;
  }

  /**
   * @returns how many of the bytes were taken: all, unless the answer is over or the sink has set `paused`
   * @throws HttpError for what is no answer; nothing may be pushed after that
   */
  push(bytes: Uint8Array): number {
    let at = 0;
    while (at < bytes.length && !this.paused && this.#state !== "over") at = this.#step(bytes, at);
    return at;
  }

  /** The backend has closed the connection in order. @throws HttpError if the answer is not complete with that */
  finish(): void {
    if (this.#state === "close") this.#state = "over";
    if (this.#state !== "over") throw connectionReset();
  }

  #step(bytes: Uint8Array, at: number): number {
    switch (this.#state) {
      case "head":
        return this.#readHead(bytes, at);
      case "chunk-line":
        return this.#readChunkLine(bytes, at);
      case "chunk-end":
        return this.#readChunkEnd(bytes, at);
      case "trailers":
        return this.#readTrailers(bytes, at);
      default:
        return this.#readBody(bytes, at);
    }
  }

  #readHead(bytes: Uint8Array, from: number): number {
    const heldBytes = this.#heldBytes;
    const head = heldBytes > 0 ? this.#hold(bytes.subarray(from)) : bytes;
    const start = heldBytes > 0 ? 0 : from;
    let line = start + this.#lineAt;
    let checked = start + this.#checkedTo;
    for (;;) {
      const next = line < head.length ? readLine(head, line, line === start, checked) : -1;
      if (next > start + MAX_HEAD_BYTES || this.#headLines > MAX_HEAD_LINES) malformed("its head is too large");
      if (next < 0) break;
      this.#headLines++;
      const isLast = next === line + 2;
      line = next;
      checked = next;
      if (!isLast) continue;
      this.#forgetHead();
      this.#applyHead(new AnswerHead(latin1(head, start, line)));
      return line - start - heldBytes + from;
    }
    if (head.length - start > MAX_HEAD_BYTES) malformed("its head is too large");
    if (heldBytes === 0) this.#hold(bytes.subarray(from));
    this.#lineAt = line - start;
    this.#checkedTo = head.length - start - (head.length > line && head[head.length - 1] === CARRIAGE_RETURN ? 1 : 0);
    return bytes.length;
  }

  /** Adds to what is held of the head. @returns all of it */
  #hold(piece: Uint8Array): Uint8Array {
    const bytes = this.#heldBytes + piece.length;
    if (bytes > this.#held.length) {
      const larger = new Uint8Array(Math.max(bytes, 2 * this.#held.length));
      larger.set(this.#held);
      this.#held = larger;
    }
    this.#held.set(piece, this.#heldBytes);
    this.#heldBytes = bytes;
    return this.#held.subarray(0, bytes);
  }

  #forgetHead(): void {
    this.#held = NOTHING;
    this.#heldBytes = 0;
    this.#lineAt = 0;
    this.#checkedTo = 0;
    this.#headLines = 0;
  }

  #applyHead(head: AnswerHead): void {
    if (head.status < 200) {
      if (head.status === 101) throw new HttpError("UnrequestedUpgrade", "The backend changed the protocol unasked.");
      if (++this.#interimHeads > MAX_INTERIM_HEADS) malformed("too many interim answers");
      return;
    }
    this.#applyFraming(head);
    this.#sink.headRead(head);
  }

  /** How long the body is (RFC 9112, section 6.3), and whether the connection lasts (section 9.3). */
  #applyFraming(head: AnswerHead): void {
    const length = head.header("content-length");
    const coding = head.header("transfer-encoding");
    const connection = head.header("connection") ?? "";
    this.keepsAlive = (head.isHttp10 ? KEEP_ALIVE.test(connection) : true) && !CLOSE.test(connection);
    if (length !== null && !/^\d{1,15}$/.test(length)) {
      throw new HttpError("InvalidContentLength", "The answer's Content-Length is no number.");
    }
    if (coding !== null && (length !== null || head.isHttp10)) malformed("a body with two lengths");
    if (coding !== null && coding.toLowerCase() !== "chunked") malformed("a transfer coding that was not asked for");
    if (this.#forHead || head.status === 204 || head.status === 304) {
      this.#state = "over";
    } else if (coding !== null) {
      this.#beginLine("chunk-line");
    } else if (length !== null) {
      this.#left = Number(length);
      this.#state = this.#left > 0 ? "length" : "over";
    } else {
      this.#state = "close";
      this.keepsAlive = false;
    }
  }

  #readBody(bytes: Uint8Array, at: number): number {
    const there = bytes.length - at;
    if (this.#state === "close") {
      this.#sink.pieceRead(part(bytes, at, bytes.length));
      return bytes.length;
    }
    const end = this.#left < there ? at + this.#left : bytes.length;
    this.#left -= end - at;
    if (this.#left === 0) {
      if (this.#state === "length") this.#state = "over";
      else this.#beginLine("chunk-end");
    }
    this.#sink.pieceRead(part(bytes, at, end));
    return end;
  }

  #beginLine(state: "chunk-line" | "chunk-end" | "trailers"): void {
    this.#state = state;
    this.#left = 0;
    this.#lineBytes = 0;
    this.#linePart = "size";
    this.#isEmptyLine = true;
    this.#hasReturn = false;
  }

  /** The size of a chunk; extensions behind it are ignored (RFC 9112, section 7.1.1). */
  #readChunkLine(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (this.#hasReturn) {
        if (byte !== LINE_FEED) malformed("a bare CR in a chunk's line");
        if (this.#left > 0) this.#state = "chunk";
        else this.#beginLine("trailers");
        return at + 1;
      }
      if (++this.#lineBytes > MAX_IGNORED_BYTES) malformed("a chunk's line is too long");
      const digit = this.#linePart === "size" ? hexDigit(byte) : -1;
      if (digit >= 0) {
        this.#left = this.#left * 16 + digit;
        if (this.#left > Number.MAX_SAFE_INTEGER) malformed("a chunk is too large");
      } else if (this.#lineBytes === 1) {
        malformed("a chunk has no size");
      } else if (byte === CARRIAGE_RETURN) {
        this.#hasReturn = true;
      } else if (this.#linePart === "extension") {
        if (VALUE_BYTES[byte] !== 1) malformed("a control character in a chunk's line");
      } else if (byte === SEMICOLON) {
        this.#linePart = "extension";
      } else if (byte === SPACE || byte === TAB) {
        this.#linePart = "blank";
      } else {
        malformed("a chunk's size is no number");
      }
    }
    return bytes.length;
  }

  #readChunkEnd(bytes: Uint8Array, at: number): number {
    if (bytes[at] !== (this.#hasReturn ? LINE_FEED : CARRIAGE_RETURN)) malformed("a chunk is longer than its size");
    if (this.#hasReturn) this.#beginLine("chunk-line");
    else this.#hasReturn = true;
    return at + 1;
  }

  /** Trailers are ignored, up to the empty line that ends them. */
  #readTrailers(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (++this.#lineBytes > MAX_IGNORED_BYTES) malformed("its trailers are too long");
      if (this.#hasReturn) {
        if (byte !== LINE_FEED) malformed("a bare CR in a trailer");
        if (this.#isEmptyLine) {
          this.#state = "over";
          return at + 1;
        }
        this.#hasReturn = false;
        this.#isEmptyLine = true;
      } else if (byte === CARRIAGE_RETURN) {
        this.#hasReturn = true;
      } else {
        if (VALUE_BYTES[byte] !== 1) malformed("a control character in a trailer");
        this.#isEmptyLine = false;
      }
    }
    return bytes.length;
  }
}

const { latin1Slice } = Buffer.prototype;

/** Without an object for a view of the bytes. */
function latin1(bytes: Uint8Array, start: number, end: number): string {
  return latin1Slice.call(bytes, start, end);
}

/** Up to this size a copy takes the runtime less than a view does. */
const MAX_COPIED_BYTES = 4 * 1024;

export function part(bytes: Uint8Array, start: number, end: number): Uint8Array {
  if (start === 0 && end === bytes.length) return bytes;
  return end - start <= MAX_COPIED_BYTES ? bytes.slice(start, end) : bytes.subarray(start, end);
}

/** -1 for what is no digit. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}
