// One attempt at one backend: send the request, read its answer up to the point where the client may see it.

import { type BackendCounters, operationPath, UNKNOWN_LATENCY_MS } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { statusText } from "../backends/control-request.ts";
import { CredentialError } from "../backends/credentials/credential.ts";
import { formatOf, type Operation } from "../backends/operations.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Usage } from "../generation/usage.ts";
import type { AnswerReader } from "../protocols/answer-reader.ts";
import { BytesReader } from "../protocols/bytes-reader.ts";
import { PassReader } from "../protocols/pass-reader.ts";
import { type AnswerEdits, AnswerFailed, DecodeError, type PassThrough } from "../protocols/protocol.ts";
import { passThrough } from "../protocols/registry.ts";
import type { TranslatedAnswer, Translation } from "../protocols/translate.ts";
import type { TraceContext } from "../tracing/trace-context.ts";
import { readAmazonAnswer } from "./amazon-answer.ts";
import { rewordedErrorBody } from "./error-body.ts";
import { type Client, Exchange, type ExchangeEnvironment, type ExchangeTimeouts } from "./exchange.ts";
import { isCredentialRefusal, type StatusFailure, toldFailure, type UpstreamFailure } from "./failure.ts";
import { forwardedResponseHeaders, upstreamHeaders } from "./headers.ts";
import { isUnsendable } from "./http/http-error.ts";
import { withoutSecrets } from "./own-secrets.ts";
import {
  type AnswerFormat,
  type AnswerShape,
  type EventsOfWhole,
  type OpenStream,
  openStream,
  type PlainAnswer,
  readPlain,
  readRefusal,
} from "./read-answer.ts";

export interface OutgoingRequest {
  /** What the backend is asked for. */
  operation: Operation;
  model: string;
  stream: boolean;
  /** How many choices a complete answer has. */
  choices: number;
  body: Uint8Array;
  /** Where the operation's usual path is not the right one. */
  path?: string | undefined;
  /** Headers that belong to the body's format. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Set where the client speaks another format than the backend. */
  translation?: Translation | undefined;
  /** The gateway asked for the counts of the stream, not the client. */
  hidesUsage?: boolean | undefined;
  /** What is changed in an answer that passes. */
  edits?: AnswerEdits | undefined;
  /** What an answer is besides a JSON object or its events. */
  answers?: AnswerShape | undefined;
  clientHeaders: Headers;
  trace: TraceContext;
  client: Client;
  timeouts: ExchangeTimeouts;
}

/** Expected trouble is an outcome, never an exception. Every outcome but an open stream has released its exchange. */
export type SendOutcome = {
  /** Until the head of the answer; of a stream, until its first event. Undefined where nothing came. */
  firstByteMs?: number | undefined;
} & (
  | {
      ok: true;
      kind: "plain";
      body: Uint8Array;
      contentType: string;
      headers: Record<string, string>;
      /** Token counts of an answer that passes untouched. */
      usage?: Usage | undefined;
      /** Ids of the items of a Responses answer that passes untouched. */
      itemIds?: readonly string[] | undefined;
    }
  | {
      ok: true;
      kind: "stream";
      stream: OpenStream;
      reader: AnswerReader;
      exchange: Exchange;
      headers: Record<string, string>;
      /** Undefined: a stream of events. */
      contentType?: string | undefined;
    }
  | { ok: false; failure: UpstreamFailure }
);

export interface Sender {
  /** Rejects with GatewayError 400 where the client has sent a header that cannot be sent on: the backend is not asked. */
  send(entry: BackendEntry, request: OutgoingRequest, settings: Settings): Promise<SendOutcome>;
}

/** Of a stream of events. */
export const EVENT_STREAM = "text/event-stream; charset=utf-8";
/** RFC 9110, section 8.3: what a receiver may take content for whose type is not said. */
const UNKNOWN_TYPE = "application/octet-stream";

/** Weight of the newest measurement in a backend's average time to the first byte. */
const LATENCY_SMOOTHING = 0.2;
/** What a failure counts as: a backend that refuses quickly must not pass for a fast one. */
const FAILURE_LATENCY_MS = 10_000;

export function createSender(transport: Transport, environment: ExchangeEnvironment): Sender {
  return {
    async send(entry, request, settings) {
      const { backend, counters } = entry;
      const { operation, translation } = request;
      // The router saw that the backend has the operation.
      const path = request.path ?? (operationPath(backend, operation, request.model, request.stream) as string);
      const headers = upstreamHeaders(backend, request, settings);
      const exchange = new Exchange(entry, request.client, request.timeouts, environment);
      counters.totalRequests++;
      let open = false;
      let firstByteMs: number | undefined;
      try {
        const call = transport(backend, path, { method: "POST", headers, body: request.body });
        exchange.begin(call);
        const answer = await (backend.kind.answersInFrames ? readAmazonAnswer(call) : call.answer);
        const latencyMs = environment.now() - exchange.startedAtMs;
        firstByteMs = latencyMs;
        exchange.headReceived();
        if (answer.status !== 200) {
          const refusal = await readRefusal(answer, exchange);
          const failure = translation === undefined ? refusal : reworded(refusal, translation);
          return failed(exchange, environment.now(), failure, firstByteMs);
        }
        observeLatency(counters, latencyMs, environment.now());
        counters.credentialError = undefined;
        const answerHeaders: Record<string, string> = {};
        forwardedResponseHeaders(backend, answer, answerHeaders);
        if (request.stream) {
          const stream = await openStream(answer, exchange, formatOfAnswer(request));
          if ("kind" in stream) return failed(exchange, environment.now(), stream, firstByteMs);
          if ("events" in stream) return toldInEvents(stream, request, answerHeaders, firstByteMs);
          open = true;
          const isBytes = request.answers === "bytes";
          return {
            ok: true,
            kind: "stream",
            firstByteMs: environment.now() - exchange.startedAtMs,
            stream,
            reader:
              translation?.stream() ?? (isBytes ? new BytesReader() : new PassReader(formatOf(operation), request)),
            exchange,
            headers: answerHeaders,
            contentType: isBytes ? (answer.header("content-type") ?? UNKNOWN_TYPE) : undefined,
          };
        }
        const reading = readPlain(answer, exchange, formatOfAnswer(request));
        const whole = reading instanceof Promise ? await reading : reading;
        if ("kind" in whole) return failed(exchange, environment.now(), whole, firstByteMs);
        const { body, parsed } = whole;
        if (translation === undefined) {
          const contentType = answer.header("content-type") ?? "application/json";
          const plain = { ok: true, kind: "plain", firstByteMs, body, contentType, headers: answerHeaders } as const;
          const passing = passThrough(formatOf(operation));
          if (parsed === undefined) return { ...plain, usage: usageIn(passing, whole) };
          const edited = request.edits?.whole(body, parsed) ?? body;
          return { ...plain, body: edited, usage: passing.usageOf?.(parsed), itemIds: passing.itemIdsOf?.(parsed) };
        }
        const translated = translatePlain(translation, whole, backend.name);
        if ("kind" in translated) return failed(exchange, environment.now(), translated, firstByteMs);
        const contentType = "application/json";
        return { ok: true, kind: "plain", firstByteMs, ...translated, contentType, headers: answerHeaders };
      } catch (error) {
        if (isUnsendable(error)) throw error; // a mistake of the gateway's own
        if (error instanceof CredentialError) counters.credentialError = error.message;
        return failed(exchange, environment.now(), exchange.failureOf(error), firstByteMs);
      } finally {
        if (!open) exchange.release();
      }
    },
  };
}

/** The answer of a backend that does not stream, for a client that has asked for a stream. */
function toldInEvents(
  { events, answer: { parsed, usage } }: EventsOfWhole,
  { operation, edits }: OutgoingRequest,
  headers: Record<string, string>,
  firstByteMs: number,
): SendOutcome {
  return {
    ok: true,
    kind: "plain",
    firstByteMs,
    body: edits?.push(events) ?? events,
    contentType: EVENT_STREAM,
    headers,
    usage: usageIn(passThrough(formatOf(operation)), { parsed, usage }),
  };
}

function usageIn({ usageOf, usageMember = "usage" }: PassThrough, { parsed, usage }: Omit<PlainAnswer, "body">) {
  return usageOf?.(parsed ?? { [usageMember]: usage });
}

function formatOfAnswer({ operation, translation, edits, answers }: OutgoingRequest): AnswerFormat {
  const name = formatOf(operation);
  const isTranslated = translation !== undefined;
  return {
    name,
    isTranslated,
    answers,
    isRead: isTranslated || edits !== undefined || passThrough(name).itemIdsOf !== undefined,
  };
}

/** An error of the backend's format in the standard words. */
function reworded(failure: UpstreamFailure, { error }: Translation): UpstreamFailure {
  if (failure.kind !== "status") return failure;
  // With a status of its own the error is retried as docs/resilience.md says of that status.
  const { isSpent: _, ...told } = toldFailure(error(failure.status, failure.body));
  return {
    ...told,
    retryAfterMs: failure.retryAfterMs ?? told.retryAfterMs,
    headers: { ...told.headers, ...failure.headers },
  };
}

function translatePlain(
  translation: Translation,
  { body, parsed }: PlainAnswer,
  backendName: string,
): TranslatedAnswer | UpstreamFailure {
  try {
    return translation.plain(body, parsed);
  } catch (error) {
    if (error instanceof AnswerFailed) return toldFailure(error.failure);
    if (!(error instanceof DecodeError)) throw error;
    const message = `Backend '${backendName}' sent an answer that could not be read: ${error.message}.`;
    return { kind: "invalid-response", message };
  }
}

function observeLatency(counters: BackendCounters, latencyMs: number, nowMs: number): void {
  counters.latencyMs = averaged(counters.latencyMs, latencyMs);
  expectLatency(counters, latencyMs, nowMs);
}

function expectLatency(counters: BackendCounters, expectedMs: number, nowMs: number): void {
  counters.expectedMs = averaged(counters.expectedMs, expectedMs);
  counters.latencyAtMs = nowMs;
}

function averaged(average: number | undefined, newest: number): number {
  return average === undefined ? newest : average + (newest - average) * LATENCY_SMOOTHING;
}

function failed(
  { entry, credential }: Exchange,
  nowMs: number,
  failure: UpstreamFailure,
  firstByteMs: number | undefined,
): SendOutcome {
  if (!isClientsMistake(failure)) expectLatency(entry.counters, FAILURE_LATENCY_MS, nowMs);
  // Without a number it would be asked first again and again, whatever it refuses.
  else if (entry.counters.expectedMs === undefined && firstByteMs !== undefined) {
    expectLatency(entry.counters, UNKNOWN_LATENCY_MS, nowMs);
  }
  countFailure(entry, failure);
  if (failure.kind !== "status" || !isCredentialRefusal(failure)) {
    return { ok: false, firstByteMs, failure: withoutSecrets(failure, entry.backend, credential) };
  }
  entry.counters.credentialError = statusText(entry.backend, failure.status);
  return {
    ok: false,
    firstByteMs,
    failure: withoutSecrets(withoutCredential(entry, failure), entry.backend, credential),
  };
}

/** Vendors quote the key that they refuse, which is the operator's and not the client's. */
function withoutCredential({ backend }: BackendEntry, failure: StatusFailure): StatusFailure {
  const { status, body } = failure;
  const message = `Backend '${backend.name}' does not accept the gateway's own credential (HTTP ${status}); the gateway's operator has to mend it.`;
  const type = status === 401 ? "authentication_error" : "permission_error";
  return { ...failure, body: rewordedErrorBody(status, body, { message, type }) };
}

export function countFailure(entry: BackendEntry, failure: UpstreamFailure): void {
  if (isBackendsFault(failure)) entry.counters.failedRequests++;
}

/** The statuses that say what is wrong with this request, and nothing of the backend. */
const MISTAKES: ReadonlySet<number> = new Set([400, 413, 414, 415, 422, 431]);

/** Nothing is learnt of the backend: other requests may be answered as quickly as ever. */
function isClientsMistake(failure: UpstreamFailure): boolean {
  return failure.kind === "aborted" || (failure.kind === "status" && MISTAKES.has(failure.status));
}

/** A client that leaves, reads too slowly or made a mistake is no failure of the backend. */
export function isBackendsFault(failure: UpstreamFailure): boolean {
  if (isCredentialRefusal(failure)) return true;
  if (failure.kind === "told-in-stream") return failure.told === undefined || isBackendsFault(failure.told);
  if (failure.kind === "timeout") return failure.byClient !== true;
  if (failure.kind === "status") return failure.status >= 500 || (failure.status === 429 && failure.isSpent !== true);
  return failure.kind !== "aborted";
}
