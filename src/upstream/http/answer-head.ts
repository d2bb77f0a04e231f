// The head of an HTTP/1.1 answer: the grammar of its lines, and what it says by name.

import { malformed } from "./http-error.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
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

  #valueAt(start: number): string {
    return this.#text.slice(start, this.#text.indexOf("\r", start)).trim();
  }
}

/**
 * Checks the line of a head that begins at `start`, its first one being the status line.
 * @returns where the next line begins; -1 if the line is not there in whole yet
 * @throws HttpError for bytes that no such line has: a line that is folded, ends with a bare LF, has no name, …
 */
export function readLine(bytes: Uint8Array, start: number, isFirst: boolean): number {
  let at = start;
  if (isFirst) {
    at = checkStart(bytes, start);
  } else if (bytes[at] !== CARRIAGE_RETURN) {
    while (NAME_BYTES[bytes[at] as number] === 1) at++;
    if (at >= bytes.length) return -1;
    if (at === start || bytes[at] !== COLON) malformed("no header name");
    at++;
  }
  while (VALUE_BYTES[bytes[at] as number] === 1) at++;
  if (at >= bytes.length) return -1;
  if (bytes[at] !== CARRIAGE_RETURN) malformed("a control character in a header");
  if (at + 1 >= bytes.length) return -1;
  if (bytes[at + 1] !== LINE_FEED) malformed("a bare CR in a header");
  return at + 2;
}

/** What is no HTTP shows in its first bytes: a server of another protocol may wait for more after them. */
function checkStart(bytes: Uint8Array, start: number): number {
  const end = Math.min(bytes.length, start + STATUS_LINE_START.length);
  for (let at = start; at < end; at++) {
    if (bytes[at] !== STATUS_LINE_START.charCodeAt(at - start)) malformed("no status line");
  }
  return end;
}
