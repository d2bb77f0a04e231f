// The bytes of a client's body -> a JSON object. What would take too much memory or time is refused before it is parsed,
// and large bodies are parsed in pieces, one body at a time, so that other requests go on.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { repeatedMember } from "../lib/json-members.ts";
import { parseInPieces } from "../lib/json-pieces.ts";
import { excessIn, JsonShape } from "../lib/json-shape.ts";
import { otherWork } from "../lib/other-work.ts";

/** Larger bodies are parsed in pieces. The worst of this size, an object of distinct names, takes about 20 ms. */
const MAX_AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

/** Memory for each object, list, name or text, beside its bytes. */
const PART_BYTES = 64;

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

/** The text of a body; throws 400 for bytes that are not UTF-8. `encoding`: Content-Encoding of the request. */
export function decodeBody(bytes: Uint8Array, encoding: string | null): string {
  try {
    return strictDecoder.decode(bytes);
  } catch (cause) {
    throw unreadable(encoding, cause);
  }
}

export interface BodyToParse {
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** Content-Encoding of the request. */
  readonly encoding: string | null;
  /** Takes so much of the memory for bodies, or throws. */
  take(byteCount: number): void;
}

/** Parses the bodies of all requests; large ones take turns. */
export function createBodyParser() {
  /** The end of the large body that is parsed last. */
  let lastTurn: Promise<unknown> = Promise.resolve();

  async function parseLarge(bytes: Uint8Array, body: BodyToParse): Promise<JsonObject> {
    const { signal } = body;
    /** Lets the requests go on that have something to do. */
    async function pause(): Promise<void> {
      await otherWork();
      signal.throwIfAborted();
    }
    const shape = new JsonShape(bytes);
    while (!shape.isComplete) {
      shape.advance(PIECE_BYTES);
      checkSize(shape);
      await pause();
    }
    body.take(shape.parts * PART_BYTES);
    try {
      return checked(await parseInPieces(bytes, { pieceBytes: PIECE_BYTES, pause }), shape, bytes);
    } catch (error) {
      throw refusalOf(error, body.encoding);
    }
  }

  return (bytes: Uint8Array, body: BodyToParse): JsonObject | Promise<JsonObject> => {
    if (bytes.length > MAX_AT_ONCE_BYTES) {
      const turn = lastTurn.then(() => parseLarge(bytes, body));
      lastTurn = turn.catch(() => {});
      return turn;
    }
    return parseAtOnce(bytes, body);
  };
}

/** For bodies of some kilobytes, whose memory counts for nothing. */
export function parseSmallBody(bytes: Uint8Array, encoding: string | null): JsonObject {
  return parseAtOnce(bytes, { encoding, take() {} });
}

function parseAtOnce(bytes: Uint8Array, body: Omit<BodyToParse, "signal">): JsonObject {
  if (bytes.length === 0) {
    throw new GatewayError(ERRORS.invalidJson, "The request body is empty; a JSON object is expected.");
  }
  const shape = new JsonShape(bytes);
  shape.advance(bytes.length);
  checkSize(shape);
  body.take(shape.parts * PART_BYTES);
  let value: unknown;
  try {
    value = JSON.parse(decodeBody(bytes, body.encoding));
  } catch (error) {
    throw refusalOf(error, body.encoding);
  }
  return checked(value, shape, bytes);
}

function checkSize(shape: JsonShape): void {
  const excess = excessIn(shape);
  if (excess !== undefined) throw new GatewayError(ERRORS.invalidRequest, `The request body ${excess}.`);
}

function checked(value: unknown, { members }: JsonShape, bytes: Uint8Array): JsonObject {
  if (!isObject(value)) {
    const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
    throw new GatewayError(ERRORS.invalidRequest, `The request body must be a JSON object, not ${kind}.`);
  }
  // A reader that takes the first of two equal members and one that takes the last would see different requests.
  if (Object.keys(value).length !== members) {
    const name = bytes.length > MAX_AT_ONCE_BYTES ? undefined : repeatedMember(bytes)?.slice(0, 64);
    const shown = name ?? "A member of the outermost object";
    throw new GatewayError(
      ERRORS.invalidRequest,
      `${shown}: stands more than once in the request body.`,
      name === undefined ? {} : { param: name },
    );
  }
  return value;
}

function refusalOf(error: unknown, encoding: string | null): unknown {
  if (error instanceof SyntaxError) {
    const reason = error.message.replace(/^JSON Parse error: /, "");
    return new GatewayError(ERRORS.invalidJson, `The request body is not valid JSON: ${reason}.`, { cause: error });
  }
  return error instanceof TypeError ? unreadable(encoding, error) : error;
}

function unreadable(encoding: string | null, cause: unknown): GatewayError {
  const reason =
    encoding === null
      ? "it is not valid UTF-8"
      : `Content-Encoding '${encoding}' is not supported, send it uncompressed`;
  return new GatewayError(ERRORS.invalidJson, `The request body cannot be read: ${reason}.`, { cause });
}
