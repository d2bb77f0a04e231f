// One event of an image stream, read without its picture: the picture is most of the event, and is not needed.

import { isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { readEvents, singleEvents } from "../sse.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const QUOTE = 34;
const BACKSLASH = 92;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const BOUNDARY = Buffer.from("\n\n");
const DATA_LINE = Buffer.from("\ndata:");
const PICTURE = /"b64_json"\s*:\s*"/;
/** Where the type stands in events that begin with it. */
const TYPE = /^\s*\{\s*"type"\s*:\s*"([a-z_.]+)"/;
/** How many bytes of the data are looked through for the type and for the beginning of the picture. */
const HEAD_BYTES = 4096;

const { indexOf } = Buffer.prototype;

/** What an event says, and its picture: base64 without quotes. */
export interface SaidOfImage {
  members: JsonObject;
  picture: Uint8Array | undefined;
}

export class ImageEvent {
  /** As it came, with its empty line. */
  readonly bytes: Uint8Array;
  /** "" for what is no event of this format: a comment, [DONE], a whole answer. */
  readonly type: string;
  #said: SaidOfImage | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.type = this.#readType();
  }

  /** No members for what is no object. */
  get said(): SaidOfImage {
    this.#said ??= readImageEvent(this.bytes);
    return this.#said;
  }

  get isDoneMarker(): boolean {
    return this.bytes.length < 64 && /^data: ?\[DONE\]/m.test(decoder.decode(this.bytes));
  }

  /** Where the type does not stand at the beginning, all but the picture is read. */
  #readType(): string {
    const data = dataOf(this.bytes);
    if (data === undefined) return "";
    const first = TYPE.exec(decoder.decode(data.subarray(0, 128)))?.[1];
    if (first !== undefined) return first;
    const { type, error } = this.said.members;
    if (typeof type === "string") return type;
    return isPresent(error) ? "error" : (nameOf(this.bytes) ?? "");
  }
}

/** The events one by one; together their bytes are what was given. */
export function imageEvents(events: Uint8Array): ImageEvent[] {
  return cut(events).map((bytes) => new ImageEvent(bytes));
}

/** As singleEvents, without a text of the size of the pictures. */
function cut(events: Uint8Array): Uint8Array[] {
  if (events.includes(CARRIAGE_RETURN)) return singleEvents(events);
  const pieces: Uint8Array[] = [];
  let start = 0;
  while (start < events.length) {
    const boundary = indexOf.call(events, BOUNDARY, start);
    const end = boundary < 0 ? events.length : boundary + BOUNDARY.length;
    pieces.push(events.subarray(start, end));
    start = end;
  }
  return pieces;
}

/** The `event:` field; it stands before the data. */
function nameOf(bytes: Uint8Array): string | undefined {
  const head = decoder.decode(bytes.subarray(0, 256));
  return /(?:^|[\r\n])event: ?([^\r\n]*)[\r\n]+data:/.exec(head)?.[1];
}

/** The bytes of the only data line. */
function dataOf(bytes: Uint8Array): Uint8Array | undefined {
  const start = bytes[0] === 100 ? 0 : startOfDataLine(bytes, 0);
  if (start === undefined) return undefined;
  const end = indexOf.call(bytes, LINE_FEED, start);
  const line = bytes.subarray(start + "data:".length, end < 0 ? bytes.length : end);
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}

function startOfDataLine(bytes: Uint8Array, from: number): number | undefined {
  const found = indexOf.call(bytes, DATA_LINE, from);
  return found < 0 ? undefined : found + 1;
}

function readImageEvent(bytes: Uint8Array): SaidOfImage {
  const data = dataOf(bytes);
  if (data !== undefined && startOfDataLine(bytes, data.byteOffset - bytes.byteOffset + data.length) === undefined) {
    const said = readAround(data);
    if (said !== undefined) return said;
  }
  // Lines of data that belong together, or a picture where none is expected.
  const members = parseObject(readEvents(decoder.decode(bytes)).at(0)?.data ?? "") ?? {};
  const { b64_json: picture, ...rest } = members;
  if (typeof picture !== "string") return { members, picture: undefined };
  return { members: rest, picture: encoder.encode(picture) };
}

/** Undefined where the data is not what is expected of an event with a picture. */
function readAround(data: Uint8Array): SaidOfImage | undefined {
  // As Latin-1 every byte is one character, so that offsets are right.
  const head = Buffer.from(data.buffer, data.byteOffset, Math.min(data.length, HEAD_BYTES)).toString("latin1");
  const found = PICTURE.exec(head);
  if (found === null) return undefined;
  const start = found.index + found[0].length;
  const end = data.indexOf(QUOTE, start);
  if (end < 0 || data[end - 1] === BACKSLASH) return undefined;
  const rest = Buffer.concat([data.subarray(0, start), data.subarray(end)]);
  const members = parseObject(decoder.decode(rest));
  // A picture inside of a list belongs to a whole answer.
  if (members === undefined || members.b64_json !== "") return undefined;
  const { b64_json: _, ...others } = members;
  return { members: others, picture: data.subarray(start, end) };
}

/** The text of the event that has these members, in their order, and this picture. */
export function writeImageEvent(members: JsonObject & { type: string }, picture?: Uint8Array): Uint8Array {
  const written = JSON.stringify(members);
  const start = `event: ${members.type}\ndata: ${written.slice(0, -1)}`;
  if (picture === undefined) return encoder.encode(`${start}}\n\n`);
  return Buffer.concat([encoder.encode(`${start},"b64_json":"`), picture, encoder.encode('"}\n\n')]);
}

/** The event with one more member in front of the others, and all its other bytes. */
export function withImageMember(bytes: Uint8Array, name: string, value: unknown): Uint8Array {
  const data = dataOf(bytes);
  const brace = data === undefined ? -1 : data.indexOf(123);
  if (data === undefined || brace < 0) return bytes;
  const offset = data.byteOffset - bytes.byteOffset + brace + 1;
  const member = encoder.encode(`${JSON.stringify(name)}:${JSON.stringify(value)},`);
  return Buffer.concat([bytes.subarray(0, offset), member, bytes.subarray(offset)]);
}
