// The head of an HTTP/1.1 answer: the grammar of its lines, and what it says by name.

import { malformed } from "./http-error.ts";

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const COLON = 58;

/** 1 for the bytes that a header name may consist of (RFC 9110, section 5.6.2). */
const NAME_BYTES = byteTable((byte) => /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(byte)));

/** 1 for the bytes that a header value or a reason may hold (RFC 9110, section 5.5). */
export const VALUE_BYTES = byteTable((byte) => byte === 9 || (byte >= 32 && byte !== 127));

function byteTable(holds: (byte: number) => boolean): Readonly<Uint8Array> {
  return Uint8Array.from({ length: 256 }, (_, byte) => (holds(byte) ? 1 : 0));
}

const STATUS_LINE = /^HTTP\/1\.(\d) ([1-5]\d\d)(?: |$)/;
const STATUS_LINE_START = "HTTP/1.";

export class AnswerHead {
  readonly status: number;
  readonly isHttp10: boolean;
  readonly #text: string;
  #lowerText: string | undefined;

  /** @param text - whole lines, whose grammar was checked by `readLine` */
  constructor(text: string) {
    const [, minor, status] = STATUS_LINE.exec(text.slice(0, text.indexOf("\r"))) ?? malformed("no status line");
    this.status = Number(status);
    this.isHttp10 = minor === "0";
    this.#text = text;
  }

  /** A header by its name in lower case; several of one name are joined with ", " (RFC 9110, section 5.3). */
  header(name: string): string | null {
    this.#lowerText ??= this.#text.toLowerCase(); // of bytes, so that every place stays where it is
    const key = `\n${name}:`;
    let at = this.#lowerText.indexOf(key);
    if (at < 0) return null;
    const value = this.#valueAt(at + key.length);
    at = this.#lowerText.indexOf(key, at + key.length);
    return at < 0 ? value : this.#joined(value, at, key);
  }

  #joined(first: string, second: number, key: string): string {
    const values = [first];
    const text = this.#lowerText as string;
    for (let at = second; at >= 0; at = text.indexOf(key, at + key.length)) values.push(this.#valueAt(at + key.length));
    return values.join(", ");
  }

  /** Without the spaces and tabs around it; others belong to it, such as the last byte of an "à" in UTF-8. */
  #valueAt(lineAt: number): string {
    let start = lineAt;
    let end = this.#text.indexOf("\r", start);
    while (isBlank(this.#text.charCodeAt(start))) start++;
    while (end > start && isBlank(this.#text.charCodeAt(end - 1))) end--;
    return this.#text.slice(start, end);
  }
}

function isBlank(character: number): boolean {
  return character === SPACE || character === TAB;
}

/**
 * Checks the line of a head that begins at `start`, its first one being the status line.
 * @param checked - up to where an earlier call has seen nothing wrong, at most to a CR; else `start`
 * @returns where the next line begins; -1 if the line is not there in whole yet
 * @throws HttpError for bytes that no such line has: a line that is folded, ends with a bare LF, has no name, …
 */
export function readLine(bytes: Uint8Array, start: number, isFirst: boolean, checked: number): number {
  let at = checked;
  if (isFirst) {
    at = Math.max(at, checkStart(bytes, start));
  } else if (bytes[start] !== CARRIAGE_RETURN && !hasColon(bytes, start, checked)) {
    at = nameEnd(bytes, start, checked);
    if (at >= bytes.length) return -1;
  }
  while (VALUE_BYTES[bytes[at] as number] === 1) at++;
  if (at >= bytes.length) return -1;
  if (bytes[at] !== CARRIAGE_RETURN) malformed("a control character in a header");
  if (at + 1 >= bytes.length) return -1;
  if (bytes[at + 1] !== LINE_FEED) malformed("a bare CR in a header");
  return at + 2;
}

function hasColon(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end) return false;
  const colon = bytes.indexOf(COLON, start);
  return colon >= 0 && colon < end;
}

/** Where the colon behind a header's name is; the end of the bytes if they end before it. */
function nameEnd(bytes: Uint8Array, start: number, checked: number): number {
  let at = checked;
  while (NAME_BYTES[bytes[at] as number] === 1) at++;
  if (at < bytes.length && (at === start || bytes[at] !== COLON)) malformed("no header name");
  return at;
}

/** What is no HTTP shows in its first bytes: a server of another protocol may wait for more after them. */
function checkStart(bytes: Uint8Array, start: number): number {
  const end = Math.min(bytes.length, start + STATUS_LINE_START.length);
  for (let at = start; at < end; at++) {
    if (bytes[at] !== STATUS_LINE_START.charCodeAt(at - start)) malformed("no status line");
  }
  return end;
}
