// The endpoints that ask a model for something: read the request, have it generated, answer in the client's format.

import { conventionsOf, type Operation, servedBy } from "../backends/operations.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import type { FormBody } from "../lib/form-body.ts";
import { compact, isObject, type JsonObject, parseObject } from "../lib/json.ts";
import type { RequestBody } from "../lib/request-body.ts";
import { writeFallbackHeaders, writeRouteHeaders } from "../pipeline/fallback.ts";
import type { Generate, Generated, StreamFrame } from "../pipeline/generate.ts";
import { firstRequest, type ModelRequest } from "../pipeline/model-request.ts";
import { CLIENT_CLOSED_REQUEST, type RequestReporter } from "../pipeline/observe.ts";
import type { RequestHooks } from "../pipeline/request-hooks.ts";
import type { ModelNames } from "../pipeline/routes.ts";
import { type Framing, rewritten } from "../protocols/framing.ts";
import type { ClientWords } from "../protocols/protocol.ts";
import { clientWords } from "../protocols/registry.ts";
import { endUserOf, type RequestSummary } from "../protocols/request-summary.ts";
import type { AskedRequest, Recorder } from "../recording/recorder.ts";
import type { Answering, BrokenStream, Call, ErrorWords } from "../server/endpoint.ts";
import { clientError } from "../server/error-response.ts";
import { writeQuotaHeaders } from "../server/quota-headers.ts";
import { type BodyReader, bodyLimits } from "../server/read-body.ts";
import { SERVER_TIMING, serverTiming } from "../server/server-timing.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { forwardableErrorBody, hasStandardError, standardError } from "../upstream/error-body.ts";
import { failureLabel, isOfAccount, type StatusFailure, type UpstreamFailure } from "../upstream/failure.ts";
import { EVENT_STREAM, isBackendsFault } from "../upstream/send.ts";
import { framed } from "./framed.ts";
import { answerOrWait } from "./late-answer.ts";

export interface GenerationParts {
  generate: Generate;
  names: Pick<ModelNames, "requireAllowed" | "resolve" | "subjectOf">;
  bodies: BodyReader;
  now(): number;
  wallTime(): number;
  begun: RequestReporter["begun"];
  /** Undefined: there are none. */
  hooks?: RequestHooks | undefined;
  /** Undefined while nothing is recorded. */
  recorder: Recorder | undefined;
}

/** @param parameters - of the path, which may name the model */
type ReadJson = (body: JsonObject, parameters: Call["parameters"]) => RequestSummary;
/** The same of a form, which may hold files; the model may be one that the form does not name. */
type ReadForm = (form: FormBody) => RequestSummary;

export interface GenerationEndpoint {
  operation: Operation;
  maxBodyBytes: number;
  /** Validates the body; throws 400 with the field. */
  read: ReadJson | { form: ReadForm };
  /** Changes a request before a backend is looked for; most endpoints have no need to. */
  arrange?(call: Call, asked: ModelRequest): ModelRequest | Promise<ModelRequest>;
  /** Answers in the gateway's own words where no backend is needed; undefined: a backend is asked. */
  answerHere?(call: Call, asked: ModelRequest): Response | Promise<Response> | undefined;
  /** Its clients may send their key in the query. */
  takesKeyInQuery?: boolean;
  /** Sees what was generated before it is answered; `ended` resolves when a stream is over, if one was asked for. */
  noted?(call: Call, asked: ModelRequest, generated: Generated, ended: Promise<unknown> | undefined): void;
  /** The form of the stream for clients that do not read Server-Sent Events. */
  framing?(call: Call): Framing | undefined;
  /** For clients whose format differs from that of the operation. */
  wording?: Wording;
}

/** The request is put into the operation's words by `arrange`, and its answer and errors into the client's words here. */
interface Wording {
  /** Whose errors the client reads. */
  words: ClientWords;
  /** A whole answer as the client reads it. */
  answer(told: JsonObject, call: Call, asked: ModelRequest): JsonObject;
}

/** How endpoints for clients of a format tell of errors, where the format has a way of its own. */
export function errorsOf({ ownErrors, errorBody }: ClientWords): ErrorWords {
  if (ownErrors === undefined) return {};
  const { schema, idHeader } = ownErrors;
  return { errorFormat: errorBody, errorSchema: schema, ...compact({ idHeader }) };
}

export function generationEndpoint(endpoint: GenerationEndpoint, parts: GenerationParts): Answering {
  const { operation, maxBodyBytes, read, arrange, answerHere, noted, framing, takesKeyInQuery, wording } = endpoint;
  const { generate, names, bodies, now, wallTime, begun, hooks, recorder } = parts;
  const client = wording?.words ?? clientWords(conventionsOf(operation));
  return {
    access: "write",
    operation,
    ...(takesKeyInQuery !== undefined && { takesKeyInQuery }),
    ...errorsOf(client),
    async handle(call) {
      const { context, request } = call;
      const { record } = context;
      const limits = bodyLimits(context.settings, maxBodyBytes);
      const isForm = typeof read !== "function";
      const body = await (isForm
        ? bodies.readForm(request, context, limits)
        : bodies.readJson(request, context, limits));
      noteAsked(record, body.value, call.parameters.model, context.settings.telemetry.record_user);
      const summary = isForm ? read.form(body as FormBody) : read(body.value, call.parameters);
      record.operation = operation;
      record.model = cut(summary.model);
      record.stream = summary.stream;
      record.isRead = true;
      let asked = firstRequest(summary, operation, body);
      if (arrange !== undefined) {
        const arranged = arrange(call, asked);
        asked = arranged instanceof Promise ? await arranged : arranged;
        record.model = cut(asked.model);
      }
      names.requireAllowed(context.caller, asked.model);
      begun(context);
      if (hooks !== undefined) {
        const hooked = await hooks.request(context, asked, (value) =>
          typeof read === "function" && wording === undefined ? read(value, call.parameters) : undefined,
        );
        if (hooked.kind === "answer")
          return answered(call, asked, hooked.answer, {
            body,
            frame: NO_STREAM,
            writer: asked.stream ? framing?.(call) : undefined,
          });
        if (hooked.asked.model !== asked.model) names.requireAllowed(context.caller, hooked.asked.model);
        asked = hooked.asked;
      }
      const resolved = names.resolve(context, asked);
      asked = resolved instanceof Promise ? await resolved : resolved;
      record.model = cut(asked.model);
      if (recorder !== undefined) context.recording = recorder.begin(() => recordedAs(call, body, asked));
      if (asked.foreignFile !== undefined) record.add({ kind: "file", field: asked.foreignFile });
      const own = answerHere?.(call, asked);
      if (own !== undefined) {
        if (asked.routed !== undefined) record.askArms([]); // its target has done nothing
        return own;
      }
      const frame = asked.stream ? clientStream(client, context.id, asked.answers) : NO_STREAM;
      const writer = asked.stream ? framing?.(call) : undefined;
      writeRouteHeaders(asked, record, call.headers);
      const answering = () =>
        generate(context, asked, frame).then((generated) => answered(call, asked, generated, { body, frame, writer }));
      const mayWait = asked.stream && writer === undefined && asked.answers !== "bytes";
      return mayWait && context.settings.admission.enabled ? answerOrWait(call, client, answering) : answering();
    },
  };

  function recordedAs({ context }: Call, body: RequestBody, asked: ModelRequest): AskedRequest {
    const { record, caller, clientHeaders, path } = context;
    return { record, caller, clientHeaders, path, body, subject: () => names.subjectOf(context, asked) };
  }

  /** @param body - as the client sent it */
  function answered(
    call: Call,
    asked: ModelRequest,
    generated: Generated,
    { body, frame, writer }: { body: RequestBody; frame: ClientStream; writer: Framing | undefined },
  ): Response {
    const { context } = call;
    const { record } = context;
    const nowMs = now();
    const elapsedMs = nowMs - record.startedAtMs;
    if (generated.kind !== "failed") record.firstByteMs = elapsedMs;
    const runningMs = generated.kind === "stream" ? nowMs - generated.result.live.exchange.startedAtMs : 0;
    call.headers[SERVER_TIMING] = serverTiming(record, elapsedMs, runningMs);
    writeQuotaHeaders(record, operation, wallTime(), call.headers);
    if (generated.cache !== undefined) record.cache = generated.cache;
    // A shared stream may have ended for this client already.
    if (generated.kind === "stream") void frame.over?.then(call.deferLog());
    noted?.(call, asked, generated, frame.over);
    if (generated.kind === "stream" && asked.body.letValueGo()) {
      bodies.release(context, body.bytes().length + (asked.injectedBytes ?? 0));
    }
    if (wording !== undefined) reword(wording, call, asked, generated);
    return answer(call, asked, client, generated, writer);
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const MAX_MODEL_LENGTH = 256;

/** Notes the user and the model, even where the body is refused later. */
function noteAsked(record: RequestRecord, value: unknown, named: string | undefined, recordsUser: boolean): void {
  if (recordsUser) record.endUser = endUserOf(value);
  const model = named ?? (isObject(value) ? value.model : undefined);
  if (typeof model === "string") record.model = cut(model);
}

function cut(model: string): string {
  return model.length > MAX_MODEL_LENGTH ? model.slice(0, MAX_MODEL_LENGTH) : model;
}

/** The stream to one client. */
interface ClientStream extends StreamFrame {
  /** Undefined where none was asked for. */
  over: Promise<BrokenStream | undefined> | undefined;
}

function clientStream(client: ClientWords, requestId: string, answers: ModelRequest["answers"]): ClientStream {
  const { promise, resolve } = Promise.withResolvers<BrokenStream | undefined>();
  return {
    refused(error, sent) {
      const { type, code, message, status } = error;
      resolve({ failure: type, status, error: { type, code, message } });
      return answers === "bytes" ? undefined : client.errorEvent(clientError(error, requestId), sent);
    },
    over: promise,
    errorEvent: (failure, sent) =>
      answers === "bytes" ? undefined : client.errorEvent(clientError(toError(failure), requestId), sent),
    ended: (failure) => resolve(failure && brokenBy(failure)),
  };
}

/** For a whole answer, which is never a stream. */
const NO_STREAM: ClientStream = { over: undefined, errorEvent: () => "", ended() {}, refused: () => undefined };

function brokenBy(failure: UpstreamFailure): BrokenStream {
  const { type, code, message, status } = toError(failure);
  const told = failure.kind === "aborted" ? CLIENT_CLOSED_REQUEST : status;
  return { failure: failureLabel(failure), status: told, error: { type, code, message } };
}

/** @param framing - of the stream that was asked for; undefined: it consists of events, or none was asked for */
function answer(
  call: Call,
  asked: ModelRequest,
  client: ClientWords,
  generated: Generated,
  framing: Framing | undefined,
): Response {
  const { headers } = call;
  if (generated.cache !== undefined) headers["X-Cache"] = generated.cache;
  if (generated.kind === "replayed") {
    const { contentType, body } = generated.replay;
    headers["Content-Type"] = framing?.contentType ?? contentType;
    const replayed = framing === undefined ? body : rewritten(body, framing);
    return new Response(replayed as Uint8Array<ArrayBuffer>, { headers });
  }
  const { entry } = generated.result;
  headers["X-Signalbox-Backend"] = entry.backend.name;
  // Another target than the one that was named before.
  if (call.context.record.fallbackReason !== undefined) writeRouteHeaders(asked, call.context.record, headers);
  writeFallbackHeaders(asked.model, generated.result, headers);
  if (generated.kind === "failed") {
    const isNative = servedBy(entry.backend.paths, asked.operation) === asked.operation;
    return failureResponse(call, client, isNative, generated.result.failure);
  }
  Object.assign(headers, generated.result.headers);
  if (generated.kind === "plain") {
    headers["Content-Type"] = generated.result.contentType;
    const { dropped } = call.context.record;
    if (dropped !== undefined && dropped.length > 0) headers["X-Signalbox-Dropped"] = droppedHeader(dropped);
    // The whole answer of a backend that does not stream, told in events.
    const isFramed = framing !== undefined && generated.result.contentType === EVENT_STREAM;
    if (isFramed) headers["Content-Type"] = framing.contentType;
    const told = isFramed ? rewritten(generated.result.body, framing) : generated.result.body;
    return new Response(told as Uint8Array<ArrayBuffer>, { headers });
  }
  headers["Content-Type"] = framing?.contentType ?? generated.result.contentType ?? EVENT_STREAM;
  headers["Cache-Control"] = "no-cache";
  headers["X-Accel-Buffering"] = "no"; // asks reverse proxies such as nginx not to hold events back
  return new Response(framing === undefined ? generated.body : framed(generated.body, framing), { headers });
}

/** Puts a whole answer into the client's words; others were never in the words of the operation. */
function reword({ answer }: Wording, call: Call, asked: ModelRequest, generated: Generated): void {
  if (generated.kind !== "plain") return;
  const told = parseObject(decoder.decode(generated.result.body));
  if (told === undefined)
    throw new GatewayError(ERRORS.invalidBackendResponse, "The backend's answer is no JSON object.");
  generated.result = { ...generated.result, body: encoder.encode(JSON.stringify(answer(told, call, asked))) };
  const { record } = call.context;
  if (asked.lost !== undefined && asked.lost.length > 0) record.dropped = [...(record.dropped ?? []), ...asked.lost];
}

/** Most characters of the header that names what was dropped. */
const MAX_DROPPED_LENGTH = 512;

/** Names alone; those that a header cannot hold, as a client may have called its fields, are shown without what is odd. */
function droppedHeader(dropped: readonly string[]): string {
  const names: string[] = [];
  let length = 0;
  for (const name of new Set(dropped)) {
    const shown = name.replaceAll(/[^\w .:/()[\]-]/g, "?");
    length += shown.length + 2;
    if (length > MAX_DROPPED_LENGTH) return [...names, "..."].join(", ");
    names.push(shown);
  }
  return names.join(", ");
}

/** The answer to a request whose attempts are used up. */
function failureResponse(
  { headers, context }: Call,
  client: ClientWords,
  isNative: boolean,
  failure: UpstreamFailure,
): Response {
  // The gateway has retried already: the SDKs' own retries would multiply the load on backends in trouble.
  headers["x-should-retry"] = "false";
  if (failure.kind !== "status") throw toError(failure, { "x-should-retry": "false" });
  context.record.lastFailure = failureLabel(failure);
  if (isBackendsFault(failure) || isOfAccount(failure.status)) context.record.isOutage = true;
  const { type, code, message } = standardError(failure.status, failure.body);
  context.record.error = { type, code, message };
  Object.assign(headers, failure.headers);
  headers["Content-Type"] = "application/json";
  const body = errorBodyFor(client, isNative, failure, context.id);
  return new Response(body as Uint8Array<ArrayBuffer> | string, { status: failure.status, headers });
}

/** A backend's own error goes on as it came where it has the client's format. */
function errorBodyFor(
  client: ClientWords,
  isNative: boolean,
  { status, body }: StatusFailure,
  requestId: string,
): Uint8Array | string {
  if (client.ownErrors === undefined) return forwardableErrorBody(status, body);
  if (isNative && hasStandardError(body, client.ownErrors)) return body;
  const { message, type, code, param } = standardError(status, body);
  return JSON.stringify(
    client.errorBody({ status, message, type, code, ...(typeof param === "string" ? { param } : {}), requestId }),
  );
}

const FAILURE_ERRORS: Record<Exclude<UpstreamFailure["kind"], "status" | "aborted">, ErrorDefinition> = {
  connect: ERRORS.backendConnection,
  reset: ERRORS.backendConnection,
  timeout: ERRORS.backendTimeout,
  "invalid-response": ERRORS.invalidBackendResponse,
  "told-in-stream": ERRORS.backendError,
};

function toError(failure: UpstreamFailure, headers?: Record<string, string>): GatewayError {
  if (failure.kind === "aborted") return clientLeft();
  const message = "message" in failure ? failure.message : "The backend ended the stream with an error.";
  const definition = failure.kind === "status" ? ERRORS.backendError : FAILURE_ERRORS[failure.kind];
  return new GatewayError(definition, message, headers === undefined ? {} : { headers });
}
