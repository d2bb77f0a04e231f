// A backend's answer: the whole of a plain one, the first event of a stream. Nothing reaches the client before this.

import type { BackendEntry } from "../backends/board.ts";
import type { BackendAnswer, BodyReceiver } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import type { ProtocolName } from "../generation/content.ts";
import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import { objectNearEnd } from "../lib/json-tail.ts";
import { hasMarker, markersOf } from "../protocols/markers.ts";
import type { Framer } from "../protocols/protocol.ts";
import { errorToldIn, passThrough } from "../protocols/registry.ts";
import { EventFramer, readEvents, type SseEvent } from "../protocols/sse.ts";
import { hasStandardError } from "./error-body.ts";
import type { Exchange } from "./exchange.ts";
import { parseRetryAfter, toldFailure, type UpstreamFailure, usualStatus, withFault } from "./failure.ts";
import { forwardedResponseHeaders } from "./headers.ts";

/** Larger plain answers are refused, so that one backend cannot fill the memory. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
/** Error bodies are read up to this size. */
const MAX_ERROR_BYTES = 1024 * 1024;
/** Answers up to this size are proven to be JSON; larger ones that need not be read are checked at both ends. */
const MAX_PROVEN_BYTES = 64 * 1024;
/** Larger ones are not read. */
const MAX_PARSED_BYTES = 1024 * 1024;
/** Comments before the first event are held back with it, up to this size. */
const MAX_COMMENT_BYTES = 1024 * 1024;

/** A member or a type of that name: inside a text the quotes have backslashes before them. */
const ERROR_MARKER = markersOf('"error"');

const decoder = new TextDecoder();

function invalid(entry: BackendEntry, reason: string): UpstreamFailure {
  return { kind: "invalid-response", message: `Backend '${entry.backend.name}' ${reason}.` };
}

/** The failure behind an answer that is no success: an error status with its body, or a status that makes no sense. */
export async function readRefusal(answer: BackendAnswer, exchange: Exchange): Promise<UpstreamFailure> {
  const { entry } = exchange;
  const { status } = answer;
  if (status < 400) {
    exchange.abort();
    const reason = status >= 300 ? `answered with a redirect (HTTP ${status})` : `answered HTTP ${status}`;
    return invalid(entry, `${reason} instead of a result`);
  }
  const headers: Record<string, string> = {};
  forwardedResponseHeaders(entry.backend, answer, headers);
  const retryAfter = answer.header("retry-after");
  if (retryAfter !== null) headers["retry-after"] = retryAfter;
  // A body that breaks or is too large still leaves a status, which says more than the broken body.
  let body: Uint8Array | undefined;
  try {
    body = await readWhole(answer, exchange, MAX_ERROR_BYTES);
  } catch (error) {
    const failure = exchange.failureOf(error);
    if (failure.kind === "aborted" || failure.kind === "timeout") return failure;
  }
  const failure = {
    kind: "status",
    status: usualStatus(status),
    body: body ?? new Uint8Array(0),
    retryAfterMs: parseRetryAfter(retryAfter, Date.now()),
    headers,
  } as const;
  return withFault(failure, entry.backend.settings.forward_headers.length > 0);
}

/**
 * list: the answer may be a list, as text-embeddings-inference's is. text: it may
 * be a text of any kind, such as subtitles. bytes: what comes is the answer, such as speech, and is handed on as it comes.
 */
export type AnswerShape = "list" | "text" | "bytes";

/** What a backend's answer is written in, and whether the client gets it in another form. */
export interface AnswerFormat {
  name: ProtocolName | undefined;
  isTranslated: boolean;
  /** Undefined: a JSON object, or events. */
  answers: AnswerShape | undefined;
  /** Whether anybody wants to know more of a whole answer than its token counts. */
  isRead: boolean;
}

/** A plain answer: its bytes, exactly as they came, and what they say. */
export interface PlainAnswer {
  body: Uint8Array;
  /** Undefined: they are too many to be looked into. */
  parsed: JsonObject | undefined;
  /** The member with the counts, of an answer that is not parsed. */
  usage?: unknown;
}

/** Reads a plain answer, at once where it is there already. */
export function readPlain(
  answer: BackendAnswer,
  exchange: Exchange,
  format: AnswerFormat,
): PlainAnswer | UpstreamFailure | Promise<PlainAnswer | UpstreamFailure> {
  try {
    const body = readWhole(answer, exchange, MAX_ANSWER_BYTES);
    if (!(body instanceof Promise)) return checked(body, answer, exchange, format);
    return body.then(
      (whole) => checked(whole, answer, exchange, format),
      (error) => exchange.failureOf(error),
    );
  } catch (error) {
    return exchange.failureOf(error);
  }
}

function checked(
  body: Uint8Array | undefined,
  answer: BackendAnswer,
  { entry }: Exchange,
  format: AnswerFormat,
): PlainAnswer | UpstreamFailure {
  if (body === undefined) return invalid(entry, `sent an answer of more than ${MAX_ANSWER_BYTES} bytes`);
  // A recording without speech is an empty text.
  if (format.answers === "text") return checkedText(body, answer, entry, format);
  if (body.length === 0) return invalid(entry, "sent an empty answer");
  if (
    body.length > MAX_PARSED_BYTES ||
    (body.length > MAX_PROVEN_BYTES && !format.isRead && !hasMarker(body, ERROR_MARKER))
  ) {
    const isWhole = format.answers === "list" || looksLikeObject(body);
    if (!isWhole) return invalid(entry, notJson(answer));
    return { body, parsed: undefined, usage: objectNearEnd(body, passThrough(format.name).usageMember ?? "usage") };
  }
  const parsed = parseJson(decoder.decode(body));
  if (parsed === undefined) return invalid(entry, notJson(answer));
  if (format.answers === "list" && Array.isArray(parsed)) return { body, parsed: undefined };
  if (!isObject(parsed)) return invalid(entry, "sent JSON that is no object");
  // Some engines answer 200 with an error inside.
  if (tellsError(parsed, format)) return embeddedError(format, parsed, body);
  return { body, parsed };
}

/** A text of any kind; what a proxy shows to people, and an error inside a 200, are none. */
function checkedText(
  body: Uint8Array,
  answer: BackendAnswer,
  entry: BackendEntry,
  format: AnswerFormat,
): PlainAnswer | UpstreamFailure {
  const contentType = answer.header("content-type") ?? "";
  if (contentType.includes("html")) return invalid(entry, `answered with ${contentType}`);
  if (body.length > MAX_PARSED_BYTES || !looksLikeObject(body)) return { body, parsed: undefined };
  const parsed = parseJson(decoder.decode(body));
  if (!isObject(parsed)) return { body, parsed: undefined };
  return tellsError(parsed, format) ? embeddedError(format, parsed, body) : { body, parsed };
}

/** A stream of which the first event, or the first bytes, are known to be good. Its body is paused. */
export interface OpenStream {
  answer: BackendAnswer;
  framer: Framer;
  /** Whole events, ready for the client. */
  firstEvents: Uint8Array;
}

/** The whole answer of a backend that does not stream, in place of a stream. */
export interface EventsOfWhole {
  events: Uint8Array;
  answer: PlainAnswer;
}

/** Of a stream whose events are lines. */
const LINES = "ndjson";

/** Bytes go on as they come. */
const NO_FRAMES: Framer = { push: (piece) => piece, rest: () => new Uint8Array(0) };

/**
 * Reads until the first event with data, or the first of an answer that is bytes; what fails before it can be retried
 * unseen. The whole answer of a backend that does not stream, where its format has events for it.
 */
export async function openStream(
  answer: BackendAnswer,
  exchange: Exchange,
  format: AnswerFormat,
): Promise<OpenStream | EventsOfWhole | UpstreamFailure> {
  const contentType = answer.header("content-type") ?? "";
  const unframed = contentType.includes(LINES) ? passThrough(format.name).unframe?.() : undefined;
  if (unframed === undefined && (contentType.includes("json") || contentType.includes("html"))) {
    // An error told as a plain answer has a message worth forwarding; most else is no stream.
    const plain = await readPlain(answer, exchange, format);
    if ("kind" in plain) return plain;
    const events = format.answers === "bytes" ? undefined : passThrough(format.name).asEvents?.(plain.body);
    if (events !== undefined) return { events, answer: plain };
    return invalid(exchange.entry, `answered a request for a stream with ${contentType}`);
  }
  return new Promise((resolve) =>
    answer.read(
      format.answers === "bytes"
        ? new FirstBytes(answer, exchange, resolve)
        : new Gate(answer, exchange, format, unframed ?? new EventFramer(), resolve),
    ),
  );
}

/** Waits for the first bytes of an answer that is nothing else. */
class FirstBytes implements BodyReceiver {
  readonly #answer: BackendAnswer;
  readonly #exchange: Exchange;
  readonly #open: (opened: OpenStream | UpstreamFailure) => void;

  constructor(answer: BackendAnswer, exchange: Exchange, open: (opened: OpenStream | UpstreamFailure) => void) {
    this.#answer = answer;
    this.#exchange = exchange;
    this.#open = open;
  }

  received(piece: Uint8Array): void {
    this.#exchange.chunkReceived();
    this.#answer.pause();
    this.#open({ answer: this.#answer, framer: NO_FRAMES, firstEvents: piece });
  }

  ended(): void {
    this.#open(invalid(this.#exchange.entry, "sent an empty answer"));
  }

  failed(error: unknown): void {
    this.#open(this.#exchange.failureOf(error));
  }
}

/** Holds everything back until the first event is known. */
class Gate implements BodyReceiver {
  readonly #answer: BackendAnswer;
  readonly #exchange: Exchange;
  readonly #format: AnswerFormat;
  readonly #open: (opened: OpenStream | UpstreamFailure) => void;
  readonly #framer: Framer;
  #events: Uint8Array | undefined;

  constructor(
    answer: BackendAnswer,
    exchange: Exchange,
    format: AnswerFormat,
    framer: Framer,
    open: (opened: OpenStream | UpstreamFailure) => void,
  ) {
    this.#answer = answer;
    this.#exchange = exchange;
    this.#format = format;
    this.#framer = framer;
    this.#open = open;
  }

  received(piece: Uint8Array): void {
    this.#exchange.chunkReceived();
    let whole: Uint8Array | undefined;
    try {
      whole = this.#framer.push(piece);
    } catch {
      this.#refuse(invalid(this.#exchange.entry, "sent a first event that is too large"));
      return;
    }
    if (whole === undefined) return;
    const events = this.#events === undefined ? whole : joined(this.#events, whole);
    this.#events = events;
    const { preamble } = passThrough(this.#format.name);
    const first = readEvents(decoder.decode(events)).find((event) => !isPreamble(event, preamble));
    if (first === undefined) {
      // Comments and the like only: the engine is alive, but has said nothing yet.
      if (events.length > MAX_COMMENT_BYTES) this.#refuse(invalid(this.#exchange.entry, "sent nothing but comments"));
      return;
    }
    const failure = firstEventFailure(first, this.#exchange, this.#format);
    if (failure !== undefined) {
      this.#refuse(failure);
      return;
    }
    this.#answer.pause();
    this.#open({ answer: this.#answer, framer: this.#framer, firstEvents: events });
  }

  ended(): void {
    const rest = decoder.decode(this.#framer.rest());
    const reason = rest.trim() === "" ? "closed the stream before its first event" : notEvents(rest);
    this.#open(invalid(this.#exchange.entry, reason));
  }

  failed(error: unknown): void {
    this.#open(this.#exchange.failureOf(error));
  }

  #refuse(failure: UpstreamFailure): void {
    this.#open(failure);
    this.#exchange.abort();
  }
}

/** The type where an event has no name. */
const TYPE = /^\{\s*"type"\s*:\s*"([a-z_.]+)"/;

/** Whether an event says nothing of the answer yet: an error may still follow unseen. */
function isPreamble({ name, data }: SseEvent, preamble: ReadonlySet<unknown>): boolean {
  return preamble.has(name ?? TYPE.exec(data)?.[1]);
}

function firstEventFailure(
  { name, data }: SseEvent,
  exchange: Exchange,
  format: AnswerFormat,
): UpstreamFailure | undefined {
  if (data.trim() === "[DONE]") return undefined;
  const { entry } = exchange;
  const parsed = parseJson(data);
  if (parsed === undefined) return invalid(entry, "sent a first event that is not JSON");
  const isError = name === "error" || (isObject(parsed) && tellsError(parsed, format));
  return isError ? embeddedError(format, parsed, new TextEncoder().encode(data)) : undefined;
}

/** Whether an answer or an event tells of an error, in the way of all formats or of its own. */
function tellsError(told: JsonObject, { name }: AnswerFormat): boolean {
  const { error, type } = told;
  if ((error !== undefined && error !== null) || type === "error") return true;
  return passThrough(name).hasFailed?.(told) === true;
}

/** Told in the backend's own bytes where the client's format is the backend's and they say all that is needed. */
function embeddedError({ name, isTranslated }: AnswerFormat, parsed: unknown, body: Uint8Array): UpstreamFailure {
  const told = errorToldIn(name, parsed);
  const failure = toldFailure(told, isTranslated ? undefined : told.param);
  const isAsTold = failure.status === usualStatus(told.status);
  return !isTranslated && isAsTold && hasStandardError(body) ? { ...failure, body } : failure;
}

/** As readWholeBody. */
function readWhole(answer: BackendAnswer, exchange: Exchange, maxBytes: number) {
  const body = readWholeBody(answer, maxBytes, exchange);
  if (body instanceof Promise) return body.then((whole) => withinLimit(whole, exchange));
  return withinLimit(body, exchange);
}

/** Of a body that is larger than allowed, the rest is not read. */
function withinLimit(body: Uint8Array | undefined, exchange: Exchange): Uint8Array | undefined {
  if (body === undefined) exchange.abort();
  return body;
}

function looksLikeObject(body: Uint8Array): boolean {
  const start = decoder.decode(body.subarray(0, 64)).trimStart();
  const end = decoder.decode(body.subarray(-64)).trimEnd();
  return start.startsWith("{") && end.endsWith("}");
}

function notJson(answer: BackendAnswer): string {
  const contentType = answer.header("content-type");
  return `sent an answer that is not valid JSON (HTTP ${answer.status}, ${contentType ?? "no content type"})`;
}

function notEvents(text: string): string {
  return /^\s*</.test(text) ? "sent HTML instead of a stream of events" : "sent something that is no stream of events";
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  return Buffer.concat([first, second]);
}
