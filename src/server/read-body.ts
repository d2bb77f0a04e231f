// A client's body: bounded in size, in time, and in the memory that all bodies take together, with errors that say what is
// wrong with it.

import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { RequestBody } from "../lib/request-body.ts";
import { BodyBudget, type BodyHolder } from "./body-budget.ts";
import { createBodyParser } from "./parse-body.ts";

interface BodyLimits {
  maxBytes: number;
  /** How long the client may take to send its body. */
  timeoutMs: number;
  /** What the bodies of all requests may take together. */
  budgetBytes: number;
}

export function bodyLimits({ timeouts, server }: Settings, maxBytes: number): BodyLimits {
  return { maxBytes, timeoutMs: timeouts.request_body, budgetBytes: server.max_buffered_bodies };
}

interface BodyReaderParts {
  deadlines: Deadlines;
  now(): number;
  budget?: BodyBudget;
}

export type BodyReader = ReturnType<typeof createBodyReader>;

export function createBodyReader({ deadlines, now, budget = new BodyBudget() }: BodyReaderParts) {
  const parseBody = createBodyParser();

  /** The body as it came; throws 413, 408 and 503. */
  function readBytes(request: Request, holder: BodyHolder, limits: BodyLimits): Promise<Uint8Array> {
    const { maxBytes, timeoutMs, budgetBytes } = limits;
    const declared = request.headers.get("content-length");
    if (declared !== null) {
      if (Number(declared) > maxBytes) throw tooLarge(maxBytes);
      budget.take(holder, Number(declared), budgetBytes);
    }
    return new Promise((resolve, reject) => {
      let isRefused = false;
      /** What a refused request has taken is given back already: nothing more is taken, nor read. */
      function take(byteCount: number): void {
        if (isRefused) throw new Error("the request was refused");
        budget.take(holder, byteCount, budgetBytes);
      }
      const deadline: Deadline = {
        deadlineMs: now() + timeoutMs,
        expire: () => {
          isRefused = true;
          const message = `The request body did not arrive within ${timeoutMs} ms (timeouts.request_body).`;
          // What is left of the body would be taken for the next request.
          reject(new GatewayError(ERRORS.requestTimeout, message, { headers: { Connection: "close" } }));
        },
      };
      deadlines.add(deadline);
      const reading = declared !== null ? request.bytes() : readChunked(request, maxBytes, take);
      reading.then(resolve, reject).finally(() => deadlines.remove(deadline));
    });
  }

  return {
    readBytes,
    /** Throws also 400. */
    async readJson(request: Request, holder: BodyHolder, limits: BodyLimits): Promise<RequestBody> {
      const bytes = await readBytes(request, holder, limits);
      const { signal, headers } = request;
      const parsing = parseBody(bytes, {
        take: (byteCount) => budget.take(holder, byteCount, limits.budgetBytes),
        signal,
        encoding: headers.get("content-encoding"),
      });
      return new RequestBody(bytes, parsing instanceof Promise ? await parsing : parsing);
    },
    /** What the request holds of the budget is free again: all of it, or all but the bytes that it still needs. */
    release: (holder: BodyHolder, neededBytes?: number) => budget.release(holder, neededBytes),
  };
}

/** So many chunks are put together before more of them are kept: clients may send them byte by byte. */
const MAX_LOOSE_CHUNKS = 1_000;

/** A body of unknown length is counted while it arrives. What was not read of a body that is refused can still be. */
async function readChunked(request: Request, maxBytes: number, take: (byteCount: number) => void): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const whole: Uint8Array[] = [];
  let loose: Uint8Array[] = [];
  let totalBytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      totalBytes += value.length;
      if (totalBytes > maxBytes) throw tooLarge(maxBytes);
      take(value.length);
      loose.push(value);
      if (loose.length < MAX_LOOSE_CHUNKS) continue;
      whole.push(Buffer.concat(loose));
      loose = [];
    }
  } catch (error) {
    reader.releaseLock();
    throw error;
  }
  return whole.length === 0 && loose.length === 1 ? (loose[0] as Uint8Array) : Buffer.concat([...whole, ...loose]);
}

function tooLarge(maxBytes: number): GatewayError {
  const megabytes = maxBytes / (1024 * 1024);
  return new GatewayError(
    ERRORS.payloadTooLarge,
    `The request body is larger than the ${megabytes} MiB that this endpoint takes.`,
  );
}
