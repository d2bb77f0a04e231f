// Event-stream frames of AWS as bytes, and the events that they hold in the words of Server-Sent Events. A frame has its
// length, that of its headers and a checksum of both; then headers and payload, and a checksum of all
// (https://smithy.io/2.0/aws/amazon-eventstream.html). The codec checks and reads a whole frame; cutting the bytes into
// frames, within a bound, is done here.

import type { EventStreamCodec } from "@smithy/eventstream-codec";
import { parseObject } from "../../lib/json.ts";
import { textOf } from "../reading.ts";
import { exceptionAs } from "./errors.ts";

/** The two lengths and their checksum. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** Twice as much as AWS allows for a payload. */
const MAX_FRAME_BYTES = 32 * 1024 * 1024;

/** What came is no stream of frames, or was changed on its way. */
export class BrokenFrame extends Error {
  override readonly name = "BrokenFrame";
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Cuts arbitrary pieces into frames. Holds one frame at most that is not whole. */
export class FrameCutter {
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** How many bytes there must be before anything new can be said. */
  #needed = PRELUDE_BYTES;

  /** Gives away the frames that are whole by now. Throws BrokenFrame behind those that are good. */
  push(piece: Uint8Array, give: (frame: Uint8Array) => void): void {
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    if (this.#heldBytes < this.#needed) return;
    let rest: Uint8Array = this.#held.length === 1 ? piece : Buffer.concat(this.#held, this.#heldBytes);
    this.#needed = PRELUDE_BYTES;
    while (rest.length >= PRELUDE_BYTES) {
      const length = frameLength(rest);
      if (rest.length < length) {
        this.#needed = length;
        break;
      }
      give(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
  }

  get isBetweenFrames(): boolean {
    return this.#heldBytes === 0;
  }
}

/** The prelude is checked before its length is believed: nothing waits for the end of a frame that has none. */
function frameLength(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, PRELUDE_BYTES);
  const length = view.getUint32(0);
  if (Bun.hash.crc32(bytes.subarray(0, PRELUDE_BYTES - CHECKSUM_BYTES)) !== view.getUint32(8)) {
    throw new BrokenFrame("a frame with a wrong checksum");
  }
  if (length < PRELUDE_BYTES + CHECKSUM_BYTES || length > MAX_FRAME_BYTES) {
    throw new BrokenFrame("a frame of an impossible length");
  }
  return length;
}

const decoder = new TextDecoder();

/** A whole frame as a whole event; "" for one that says nothing. Throws BrokenFrame. */
export function frameAsEvent(codec: Pick<EventStreamCodec, "decode">, frame: Uint8Array): string {
  const { headers, body } = decodeFrame(codec, frame);
  const header = (name: string) => textOf(headers[name]?.value);
  switch (header(":message-type")) {
    case "exception":
      return errorEvent(header(":exception-type"), parseObject(decoder.decode(body)));
    case "error":
      return errorEvent(header(":error-code"), { message: header(":error-message") });
    case "event":
      return plainEvent(header(":event-type"), decoder.decode(body));
    default:
      throw new BrokenFrame("a frame of an unknown type");
  }
}

function decodeFrame(codec: Pick<EventStreamCodec, "decode">, frame: Uint8Array) {
  try {
    return codec.decode(frame);
  } catch {
    throw new BrokenFrame("a frame with a wrong checksum");
  }
}

function errorEvent(name: string, detail: unknown): string {
  return event("error", JSON.stringify(exceptionAs(name, 0, detail)));
}

/** The first member of the events that models of Anthropic write. */
const FIRST_TYPE = /^\s*\{\s*"type"\s*:\s*"([a-z_]+)"/;

function plainEvent(name: string, payload: string): string {
  if (name === "initial-response") return "";
  if (name !== "chunk") return event(name, payload);
  // InvokeModelWithResponseStream: what the model itself writes, in base64.
  const written = Buffer.from(textOf(parseObject(payload)?.bytes), "base64").toString("utf8");
  return event(FIRST_TYPE.exec(written)?.[1] ?? textOf(parseObject(written)?.type), written);
}

/** Line ends in JSON stand between its tokens. */
function event(name: string, data: string): string {
  return `event: ${name.replace(/[\r\n]/g, "")}\ndata: ${data.replace(/[\r\n]+/g, " ")}\n\n`;
}
