// A peer of JSON-RPC 2.0: answers the client's requests, in any order, and makes requests of its own.

import { isObject, type JsonObject } from "../lib/json.ts";
import { LineOutbox, type Write } from "./outbox.ts";
import { RPC, RpcError, requestCancelled } from "./rpc-error.ts";

/** Requests of the client that are not answered yet. */
const MAX_OPEN = 1_024;

/** Our requests that the client has not answered yet. */
const MAX_ASKED = 1_024;

const CANCEL = "$/cancel_request";

export interface RpcCall {
  /** Aborts when the client takes the request back, with the error that answers it, and when the connection ends. */
  readonly signal: AbortSignal;
  /** False for a notification, which is never answered. */
  readonly isRequest: boolean;
}

/** Throws RpcError for a refusal; a notification's result is of no interest, and so is its error. */
export type RpcHandler = (method: string, params: unknown, call: RpcCall) => unknown;

interface AskOptions {
  signal?: AbortSignal;
  /** The answer has come, but it is no longer waited for. */
  late?(result: unknown): void;
}

interface RpcConnectionParts {
  write: Write;
  handle: RpcHandler;
  /** Anything thrown that is not for the client as it is -> the error for the client. */
  refusalOf(error: unknown): RpcError;
}

interface AskedClient {
  answer(result: unknown): void;
  fail(error: Error): void;
}

export class RpcConnection {
  readonly outbox: LineOutbox;
  readonly #parts: RpcConnectionParts;
  /** Keys are the JSON text of the request's id. */
  readonly #open = new Map<string, AbortController>();
  readonly #asked = new Map<number, AskedClient>();
  /** Resolvers that wait for the last answer. */
  #waiting: (() => void)[] = [];
  #lastId = -1;
  #isClosed = false;

  constructor(parts: RpcConnectionParts) {
    this.#parts = parts;
    this.outbox = new LineOutbox(parts.write);
  }

  /** One line of the client, parsed. `text` is read again where a number in it is too long for a double. */
  receive(message: unknown, text: () => string): void {
    if (!isObject(message)) {
      this.refuse(invalidRequest(describeNonObject(message)));
      return;
    }
    const { method } = message;
    if (method === undefined && this.#isAnswer(message)) {
      this.#answered(message);
      return;
    }
    const id = "id" in message ? idText(message.id, text) : undefined;
    if (message.jsonrpc !== "2.0") this.refuse(invalidRequest('jsonrpc must be "2.0".'), id);
    else if (typeof method !== "string") this.refuse(invalidRequest("method must be a string."), id);
    else if (method === CANCEL) this.#cancel(message.params, text, id);
    else if (id === undefined) this.#run(method, message.params);
    else this.#serve(method, message.params, id);
  }

  /** Answers with an error; without an id where none could be read. */
  refuse({ code, message, data }: RpcError, id = "null"): void {
    this.outbox.send(`{"jsonrpc":"2.0","id":${id},"error":${toJson({ code, message, data })}}`);
  }

  /** False: it was too long to be sent. */
  notify(method: string, params: object): boolean {
    return this.outbox.send(toJson({ jsonrpc: "2.0", method, params }));
  }

  /** The client's result. Throws RpcError with the client's own words, and the signal's reason. */
  async ask(method: string, params: object, { signal, late }: AskOptions = {}): Promise<unknown> {
    if (this.outbox.isFull) await this.outbox.room(signal); // else it goes out in this moment, in order
    signal?.throwIfAborted();
    if (this.#isClosed) throw connectionClosed();
    if (this.#asked.size >= MAX_ASKED) throw internal("too many requests wait for the client's answers");
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    let isGivenUp = false;
    const giveUp = () => {
      isGivenUp = true;
      if (late === undefined) this.#asked.delete(id);
      this.notify(CANCEL, { requestId: id });
      reject(signal?.reason);
    };
    this.#asked.set(id, {
      answer: (result) => (isGivenUp ? late?.(result) : resolve(result)),
      fail: reject,
    });
    if (!this.outbox.send(toJson({ jsonrpc: "2.0", id, method, params }))) {
      this.#asked.delete(id);
      throw internal("the request is larger than a client takes (32 MiB)");
    }
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** Every request of the client has its answer. */
  answered(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Nothing is answered from now on, and nothing asked. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { fail } of this.#asked.values()) fail(connectionClosed());
    for (const controller of this.#open.values()) controller.abort(requestCancelled());
    this.#asked.clear();
    this.#open.clear();
    this.outbox.close();
  }

  /** Some clients leave an empty result out. */
  #isAnswer(message: JsonObject): boolean {
    if (!("id" in message)) return false;
    return "result" in message || "error" in message || this.#asked.has(message.id as number);
  }

  #answered({ id, result, error }: JsonObject): void {
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined;
    if (asked === undefined) return; // too late, or never asked for
    this.#asked.delete(id as number);
    if (error === undefined || error === null) asked.answer(result);
    else asked.fail(clientError(error));
  }

  /** A notification; with an id of its own it is answered all the same. */
  #cancel(params: unknown, text: () => string, id: string | undefined): void {
    if (isObject(params) && "requestId" in params)
      this.#open.get(idText(params.requestId, text, "requestId"))?.abort(requestCancelled());
    if (id !== undefined) this.outbox.send(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
  }

  #run(method: string, params: unknown): void {
    const call: RpcCall = { signal: new AbortController().signal, isRequest: false };
    // A notification has no answer; what its handler has to say of it stands in the log.
    Promise.try(this.#parts.handle, method, params, call).catch(this.#parts.refusalOf);
  }

  #serve(method: string, params: unknown, id: string): void {
    if (this.#open.size >= MAX_OPEN) {
      const message = `More than ${MAX_OPEN} requests are open: wait for answers before sending more.`;
      this.refuse(new RpcError(RPC.application, message, { reason: "too_many_requests" }), id);
      return;
    }
    const controller = new AbortController();
    this.#open.set(id, controller);
    const done = () => {
      if (this.#open.get(id) === controller) this.#open.delete(id);
      if (this.#open.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    };
    const fail = (error: unknown) => {
      this.refuse(this.#parts.refusalOf(error), id);
      done();
    };
    const answer = (result: unknown) => {
      const isSent = this.outbox.send(`{"jsonrpc":"2.0","id":${id},"result":${toJson(result ?? {})}}`);
      if (!isSent) this.refuse(internal("the answer is larger than a client takes (32 MiB)"), id);
      done();
    };
    try {
      const result = this.#parts.handle(method, params, { signal: controller.signal, isRequest: true });
      if (result instanceof Promise) result.then(answer, fail);
      else answer(result);
    } catch (error) {
      fail(error);
    }
  }
}

/** Half of a character that stands alone is no text for many clients. */
function toJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!json.includes("\\ud")) return json;
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "string" ? each.toWellFormed() : each));
}

/** An id as JSON; one with more digits than a double has is taken from the text as it was written. */
function idText(id: unknown, text: () => string, name = "id"): string {
  if (typeof id === "number" && !Number.isSafeInteger(id)) return writtenNumber(text(), name) ?? JSON.stringify(id);
  return JSON.stringify(id);
}

/** Of the message itself, or of its params: a message within the params has an id of its own. */
function writtenNumber(text: string, name: string): string | undefined {
  const written = new Map<unknown, string>();
  const reviver = function (this: unknown, key: string, value: unknown, context?: { source?: string }): unknown {
    if (key === name && typeof value === "number" && context?.source !== undefined) written.set(this, context.source);
    return value;
  };
  const message = JSON.parse(text, reviver as (key: string, value: unknown) => unknown) as JsonObject;
  return written.get(name === "id" ? message : message.params);
}

function invalidRequest(message: string): RpcError {
  return new RpcError(RPC.invalidRequest, message, { reason: "invalid_request" });
}

function describeNonObject(message: unknown): string {
  return Array.isArray(message)
    ? "Batches are not supported: send one message a line."
    : "A message must be a JSON object.";
}

function internal(what: string): RpcError {
  return new RpcError(RPC.internal, `This did not work: ${what}.`, { reason: "internal_error" });
}

function connectionClosed(): RpcError {
  return new RpcError(RPC.internal, "The client is gone.", { reason: "connection_closed" });
}

function clientError(error: unknown): RpcError {
  const { code, message } = isObject(error) ? error : { code: undefined, message: error };
  const words = typeof message === "string" && message !== "" ? message : "The client gave no reason.";
  return new RpcError(typeof code === "number" ? code : RPC.internal, words, { reason: "client_error" });
}
