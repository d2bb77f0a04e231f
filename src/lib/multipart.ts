// Reads multipart/form-data (RFC 7578, RFC 2046 5.1) from bytes that are pushed at any cut: says where each part begins and
// ends, hands its content on as views of what was pushed, and keeps nothing but what may still become a boundary.

import { MultipartFault } from "./multipart-fault.ts";
import { type PartHead, readPartHead } from "./multipart-head.ts";

/** Receives the parts of a form, in its order. Offsets count from the first byte of the body. */
export interface MultipartReceiver {
  part(head: PartHead, place: PartPlace): void;
  /** Views of the pushed bytes, never empty, as many as there are. */
  data(bytes: Uint8Array): void;
  /** The content ends before this offset; what follows is CRLF and the next boundary line. */
  partEnd(contentEnd: number): void;
}

interface PartPlace {
  /** Place of the boundary line before the part. */
  begin: number;
  contentStart: number;
}

interface MultipartLimits {
  maxParts: number;
  maxHeadBytes: number;
  /** Before the first boundary, and behind the last one. */
  maxOutsideBytes: number;
}

const LIMITS: MultipartLimits = { maxParts: 100, maxHeadBytes: 16 * 1024, maxOutsideBytes: 64 * 1024 };

/** Behind a boundary, up to the line feed. Who writes more than that writes text that looks like a boundary. */
const MAX_TAIL_BYTES = 256;

const FIRST_HEAD_BYTES = 1024;

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const DASH = 45;

/** How far the line of a boundary is known; from `part` on it is decided. */
const PHASE = {
  boundary: 0,
  dash: 1,
  dashes: 2,
  padding: 3,
  paddingBehindDashes: 4,
  carriageReturn: 5,
  carriageReturnBehindDashes: 6,
  part: 7,
  close: 8,
  data: 9,
} as const;

type Phase = (typeof PHASE)[keyof typeof PHASE];

const HEAD_END = Buffer.from("\r\n\r\n");

type MultipartState = "prefix" | "data" | "line" | "head" | "closed";

export class MultipartReader {
  /** CRLF, two dashes and the boundary. The CRLF before the first boundary may be missing, and is taken as read. */
  readonly #delimiter: Uint8Array;
  readonly #receiver: MultipartReceiver;
  readonly #limits: MultipartLimits;
  #state: MultipartState = "prefix";
  /** Bytes of the delimiter that the last ones were equal to. */
  #matched = 2;
  #phase: Phase = PHASE.boundary;
  /** Behind the delimiter, on the same line. */
  readonly #tail = new Uint8Array(MAX_TAIL_BYTES);
  #tailBytes = 0;
  /** The head of the part that is being read, after a CRLF that makes the end of an empty head look like that of others. */
  #head = new Uint8Array(FIRST_HEAD_BYTES);
  #headBytes = 0;
  #begin = 0;
  #parts = 0;
  #isInPart = false;
  /** Two bytes of what is outside are the CRLF that was never there. */
  #outsideBytes = -2;
  /** The number of bytes pushed before. */
  #base = 0;
  #closedAt: number | undefined;

  constructor(boundary: string, receiver: MultipartReceiver, limits: Partial<MultipartLimits> = {}) {
    this.#delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
    this.#receiver = receiver;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Where the last boundary line begins, once it was read. */
  get closedAt(): number | undefined {
    return this.#closedAt;
  }

  /** Throws MultipartFault, and what the receiver throws; nothing may be pushed after that. */
  push(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < bytes.length; ) at = this.#advance(bytes, piece, at);
    this.#base += bytes.length;
  }

  /** Reports the end of the body. */
  end(): void {
    const { dashes, paddingBehindDashes, carriageReturnBehindDashes } = PHASE;
    const isLastLine =
      this.#phase === dashes || this.#phase === paddingBehindDashes || this.#phase === carriageReturnBehindDashes;
    if (this.#state === "line" && isLastLine) this.#close(this.#base);
    if (this.#state === "closed") return;
    if (this.#parts === 0) {
      throw new MultipartFault(
        "boundaryNotFound",
        "The form does not contain the boundary that its Content-Type names.",
      );
    }
    throw new MultipartFault("cutOff", "The form is cut off: its final boundary is missing.");
  }

  #advance(bytes: Uint8Array, piece: Buffer, at: number): number {
    switch (this.#state) {
      case "prefix":
        return this.#readPrefix(bytes, at);
      case "data":
        return this.#readData(bytes, piece, at);
      case "line":
        return this.#readLine(bytes, at);
      case "head":
        return this.#readHead(bytes, at);
      case "closed":
        this.#countOutside(bytes.length - at);
        return bytes.length;
    }
  }

  #readPrefix(bytes: Uint8Array, start: number): number {
    const delimiter = this.#delimiter;
    let at = start;
    while (at < bytes.length && this.#matched < delimiter.length) {
      if (bytes[at] !== delimiter[this.#matched]) {
        this.#state = "data";
        this.#emit(delimiter.subarray(0, this.#matched));
        return at;
      }
      at++;
      this.#matched++;
    }
    if (this.#matched === delimiter.length) this.#startLine();
    return at;
  }

  #readData(bytes: Uint8Array, piece: Buffer, start: number): number {
    const delimiter = this.#delimiter;
    let search = start;
    for (;;) {
      const found = piece.indexOf(delimiter, search);
      if (found === -1) break;
      if (isOnlyData(bytes, found + delimiter.length)) {
        search = found + 2;
        continue;
      }
      this.#emit(bytes.subarray(start, found));
      this.#startLine();
      return found + delimiter.length;
    }
    // A boundary has no carriage return but its first byte.
    const last = piece.lastIndexOf(CR);
    const isPrefix = last >= Math.max(start, bytes.length - delimiter.length + 1) && startsWith(delimiter, bytes, last);
    if (isPrefix) {
      this.#state = "prefix";
      this.#matched = bytes.length - last;
    }
    this.#emit(bytes.subarray(start, isPrefix ? last : bytes.length));
    return bytes.length;
  }

  #startLine(): void {
    this.#state = "line";
    this.#phase = PHASE.boundary;
    this.#tailBytes = 0;
  }

  #readLine(bytes: Uint8Array, start: number): number {
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      const phase = this.#tailBytes === MAX_TAIL_BYTES ? PHASE.data : nextPhase(this.#phase, byte);
      if (phase === PHASE.data) {
        this.#backToData();
        return at;
      }
      this.#tail[this.#tailBytes++] = byte;
      this.#phase = phase;
      if (phase < PHASE.part) continue;
      if (phase === PHASE.part) this.#startPart(this.#base + at + 1);
      else this.#close(this.#base + at + 1);
      return at + 1;
    }
    return bytes.length;
  }

  /** It only looked like a boundary. A carriage return at its end may begin another one. */
  #backToData(): void {
    const { carriageReturn, carriageReturnBehindDashes } = PHASE;
    const isReturn = this.#phase === carriageReturn || this.#phase === carriageReturnBehindDashes;
    this.#state = isReturn ? "prefix" : "data";
    this.#matched = 1;
    this.#emit(this.#delimiter);
    this.#emit(this.#tail.slice(0, this.#tailBytes - (isReturn ? 1 : 0)));
  }

  /** @param lineEnd - behind the boundary line that ends what was read before */
  #endPart(lineEnd: number): void {
    const contentEnd = lineEnd - this.#tailBytes - this.#delimiter.length;
    this.#begin = contentEnd + 2;
    if (this.#isInPart) this.#receiver.partEnd(contentEnd);
    this.#isInPart = false;
  }

  #startPart(lineEnd: number): void {
    this.#endPart(lineEnd);
    this.#parts++;
    if (this.#parts > this.#limits.maxParts) {
      throw new MultipartFault("tooManyParts", `The form has more than ${this.#limits.maxParts} parts.`);
    }
    this.#state = "head";
    this.#head.set([CR, LF]);
    this.#headBytes = 2;
  }

  #close(lineEnd: number): void {
    this.#state = "closed";
    this.#endPart(lineEnd);
    this.#closedAt = this.#begin;
    this.#outsideBytes = 0;
  }

  #readHead(bytes: Uint8Array, start: number): number {
    const before = this.#headBytes;
    if (before === this.#head.length) {
      const larger = new Uint8Array(2 * before);
      larger.set(this.#head);
      this.#head = larger;
    }
    const taken = bytes.subarray(start, start + this.#head.length - before);
    this.#head.set(taken, before);
    this.#headBytes += taken.length;
    const head = Buffer.from(this.#head.buffer, 0, this.#headBytes);
    const found = head.indexOf(HEAD_END, Math.max(0, before - 3));
    const ownBytes = (found === -1 ? this.#headBytes : found + HEAD_END.length) - 2;
    if (ownBytes > this.#limits.maxHeadBytes) {
      throw new MultipartFault(
        "headTooLarge",
        `The headers of a part of the form are larger than ${this.#limits.maxHeadBytes} bytes.`,
      );
    }
    if (found === -1) return start + taken.length;
    const end = start + found + HEAD_END.length - before;
    this.#state = "data";
    this.#isInPart = true;
    const place = { begin: this.#begin, contentStart: this.#base + end };
    this.#receiver.part(readPartHead(head.subarray(Math.min(2, found), found)), place);
    return end;
  }

  #emit(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#isInPart) this.#receiver.data(bytes);
    else this.#countOutside(bytes.length);
  }

  #countOutside(byteCount: number): void {
    this.#outsideBytes += byteCount;
    if (this.#outsideBytes <= this.#limits.maxOutsideBytes) return;
    const place = this.#state === "closed" ? "behind its final boundary" : "before its first boundary";
    throw new MultipartFault(
      this.#state === "closed" ? "tooMuchOutside" : "boundaryNotFound",
      `The form has more than ${this.#limits.maxOutsideBytes} bytes ${place}.`,
    );
  }
}

/** True if a line that goes on like this cannot be a boundary line. */
function isOnlyData(bytes: Uint8Array, start: number): boolean {
  let phase: Phase = PHASE.boundary;
  for (let at = start; at < bytes.length && phase < PHASE.part; at++) {
    phase = at - start === MAX_TAIL_BYTES ? PHASE.data : nextPhase(phase, bytes[at] as number);
  }
  return phase === PHASE.data;
}

function nextPhase(phase: Phase, byte: number): Phase {
  switch (phase) {
    case PHASE.boundary:
      return byte === DASH ? PHASE.dash : inPadding(byte, PHASE.padding, PHASE.carriageReturn);
    case PHASE.padding:
      return inPadding(byte, PHASE.padding, PHASE.carriageReturn);
    case PHASE.dash:
      return byte === DASH ? PHASE.dashes : PHASE.data;
    case PHASE.dashes:
    case PHASE.paddingBehindDashes:
      return inPadding(byte, PHASE.paddingBehindDashes, PHASE.carriageReturnBehindDashes);
    case PHASE.carriageReturn:
      return byte === LF ? PHASE.part : PHASE.data;
    case PHASE.carriageReturnBehindDashes:
      return byte === LF ? PHASE.close : PHASE.data;
    default:
      return phase;
  }
}

function inPadding(byte: number, padding: Phase, carriageReturn: Phase): Phase {
  if (byte === SPACE || byte === TAB) return padding;
  return byte === CR ? carriageReturn : PHASE.data;
}

/** True if the bytes from `at` on are the beginning of `whole`. */
function startsWith(whole: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let index = at; index < bytes.length; index++) {
    if (bytes[index] !== whole[index - at]) return false;
  }
  return true;
}
