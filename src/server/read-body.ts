// A client's body: bounded in size, in time, and in the memory that all bodies take together, with errors that say what is
// wrong with it.

import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { FormBody } from "../lib/form-body.ts";
import { JsonBody, type RequestBody } from "../lib/request-body.ts";
import { BodyBudget, type BodyHolder } from "./body-budget.ts";
import { formBoundary, formRefusal } from "./form-refusal.ts";
import { type BodyToParse, createBodyParser } from "./parse-body.ts";

interface BodyLimits {
  maxBytes: number;
  /** How long the client may take to send its body. */
  timeoutMs: number;
  /** Memory for the bodies of all requests together. */
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

  /** Resolves with the result of `make` for the whole body; throws 413, 408 and 503, and rejects with them. */
  function read<Made>(
    request: Request,
    holder: BodyHolder,
    limits: BodyLimits,
    make: (bytes: Uint8Array, body: IncomingBody) => Made | Promise<Made>,
  ): Promise<Made> {
    const declared = request.headers.get("content-length");
    if (declared !== null) {
      if (Number(declared) > limits.maxBytes) throw tooLarge(limits.maxBytes);
      budget.take(holder, Number(declared), limits.budgetBytes);
    }
    return new Promise((resolve, reject) => {
      const body = new IncomingBody(request, holder, limits, budget, now() + limits.timeoutMs, reject);
      deadlines.add(body);
      const reading = declared === null ? readChunked(request, limits.maxBytes, body) : request.bytes();
      reading.then(
        (bytes) => {
          deadlines.remove(body);
          try {
            resolve(make(bytes, body));
          } catch (error) {
            reject(error);
          }
        },
        (error) => {
          deadlines.remove(body);
          reject(error);
        },
      );
    });
  }

  function toBody(bytes: Uint8Array, body: IncomingBody): RequestBody | Promise<RequestBody> {
    const parsing = parseBody(bytes, body);
    if (parsing instanceof Promise) return parsing.then((value) => new JsonBody(bytes, value));
    return new JsonBody(bytes, parsing);
  }

  function readForm(request: Request, holder: BodyHolder, limits: BodyLimits): Promise<FormBody> {
    const boundary = formBoundary(request);
    return read(request, holder, limits, (bytes, body) => {
      try {
        return FormBody.read(bytes, boundary, (byteCount) => body.take(byteCount));
      } catch (error) {
        throw formRefusal(error);
      }
    });
  }

  return {
    /** The body as it came; throws 413, 408 and 503. */
    readBytes: (request: Request, holder: BodyHolder, limits: BodyLimits) => read(request, holder, limits, asItCame),
    /** Throws 400 too. */
    readJson: (request: Request, holder: BodyHolder, limits: BodyLimits) => read(request, holder, limits, toBody),
    /** multipart/form-data, files included; throws also 400. */
    readForm,
    /** Room for what is put into a body that was read; throws 413 and 503. */
    hold: (holder: BodyHolder, byteCount: number, { server }: Settings) =>
      budget.take(holder, byteCount, server.max_buffered_bodies),
    /** Frees the request's share of the budget: all of it, or all but the bytes that it still needs. */
    release: (holder: BodyHolder, neededBytes?: number) => budget.release(holder, neededBytes),
  };
}

function asItCame(bytes: Uint8Array): Uint8Array {
  return bytes;
}

/** A body until it is there as a whole, and parsed where that is wanted. */
class IncomingBody implements Deadline, BodyToParse {
  readonly deadlineMs: number;
  older: Deadline | undefined = undefined;
  newer: Deadline | undefined = undefined;
  readonly #request: Request;
  readonly #holder: BodyHolder;
  readonly #limits: BodyLimits;
  readonly #budget: BodyBudget;
  readonly #refuse: (error: GatewayError) => void;
  #isRefused = false;

  constructor(
    request: Request,
    holder: BodyHolder,
    limits: BodyLimits,
    budget: BodyBudget,
    deadlineMs: number,
    refuse: (error: GatewayError) => void,
  ) {
    this.#request = request;
    this.#holder = holder;
    this.#limits = limits;
    this.#budget = budget;
    this.deadlineMs = deadlineMs;
    this.#refuse = refuse;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get encoding(): string | null {
    return this.#request.headers.get("content-encoding");
  }

  /** A refused request has given back its share already: it takes no more, and is read no further. */
  take(byteCount: number): void {
    if (this.#isRefused) throw new Error("the request was refused");
    this.#budget.take(this.#holder, byteCount, this.#limits.budgetBytes);
  }

  expire(): void {
    this.#isRefused = true;
    const message = `The request body did not arrive within ${this.#limits.timeoutMs} ms (timeouts.request_body).`;
    // The rest of the body would be read as the next request.
    this.#refuse(new GatewayError(ERRORS.requestTimeout, message, { headers: { Connection: "close" } }));
  }
}

/** So many chunks are put together before more of them are kept: clients may send them byte by byte. */
const MAX_LOOSE_CHUNKS = 1_000;

/** A body of unknown length is counted while it arrives. What was not read of a body that is refused can still be. */
async function readChunked(request: Request, maxBytes: number, body: IncomingBody): Promise<Uint8Array> {
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
      body.take(value.length);
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

export function tooLarge(maxBytes: number): GatewayError {
  const megabytes = maxBytes / (1024 * 1024);
  return new GatewayError(
    ERRORS.payloadTooLarge,
    `The request body is larger than the ${megabytes} MiB that this endpoint takes.`,
  );
}
