// A client's JSON body: bounded in size and time, with errors that say what is wrong with it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { isObject } from "../lib/json.ts";
import { readBounded } from "../lib/read-bounded.ts";

export interface BodyLimits {
  maxBytes: number;
  /** How long the client may take to send its body. */
  timeoutMs: number;
}

export interface JsonBody {
  /** The client's own bytes. */
  bytes: Uint8Array;
  value: Record<string, unknown>;
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
  deadlines: Deadlines,
  now: () => number,
): Promise<JsonBody> {
  const bytes = await readBytes(request, limits, deadlines, now);
  if (bytes.length === 0)
    throw new GatewayError(ERRORS.invalidJson, "The request body is empty; a JSON object is expected.");
  const value = parse(bytes, request.headers);
  if (!isObject(value)) {
    const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
    throw new GatewayError(ERRORS.invalidRequest, `The request body must be a JSON object, not ${kind}.`);
  }
  return { bytes, value };
}

function parse(bytes: Uint8Array, headers: Headers): unknown {
  let text: string;
  try {
    text = strictDecoder.decode(bytes);
  } catch (cause) {
    const encoding = headers.get("content-encoding");
    const reason =
      encoding === null
        ? "it is not valid UTF-8"
        : `Content-Encoding '${encoding}' is not supported, send it uncompressed`;
    throw new GatewayError(ERRORS.invalidJson, `The request body cannot be read: ${reason}.`, { cause });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^JSON Parse error: /, "") : "syntax error";
    throw new GatewayError(ERRORS.invalidJson, `The request body is not valid JSON: ${reason}.`, { cause });
  }
}

/** The body as it came; throws 413 and 408. */
export function readBytes(
  request: Request,
  { maxBytes, timeoutMs }: BodyLimits,
  deadlines: Deadlines,
  now: () => number,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
  return new Promise((resolve, reject) => {
    const deadline: Deadline = {
      deadlineMs: now() + timeoutMs,
      expire: () => {
        const message = `The request body did not arrive within ${timeoutMs} ms (timeouts.request_body).`;
        // What is left of the body would be taken for the next request.
        reject(new GatewayError(ERRORS.requestTimeout, message, { headers: { Connection: "close" } }));
      },
    };
    deadlines.add(deadline);
    const reading = declared !== null ? request.bytes() : readChunked(request, maxBytes);
    reading.then(resolve, reject).finally(() => deadlines.remove(deadline));
  });
}

/** A body of unknown length is counted while it arrives. */
async function readChunked(request: Request, maxBytes: number): Promise<Uint8Array> {
  const bytes = await readBounded(request.body, maxBytes);
  if (bytes === undefined) throw tooLarge(maxBytes);
  return bytes;
}

function tooLarge(maxBytes: number): GatewayError {
  const megabytes = maxBytes / (1024 * 1024);
  return new GatewayError(
    ERRORS.payloadTooLarge,
    `The request body is larger than the ${megabytes} MiB that this endpoint takes.`,
    {
      // The client may still be sending: its connection cannot be used again.
      headers: { Connection: "close" },
    },
  );
}
