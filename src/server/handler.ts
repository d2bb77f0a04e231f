// The frame around every request: trace id, route, authorization, error answer, access log.

import type { WebPageRules } from "../access/web-pages.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { LineLevel, Logger } from "../logging/logger.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { CLIENT_CLOSED_REQUEST, type RequestReporter } from "../pipeline/observe.ts";
import { RateLimitError } from "../rate-limit/decision.ts";
import type { RecordedExchange } from "../recording/recorder.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { resolveTrace, type TraceContext, writeIds } from "../tracing/trace-context.ts";
import { CLIENT_LOOK_MS } from "../upstream/exchange.ts";
import { type AccessLog, createAccessLog } from "./access-log.ts";
import { openToPages, preflightEndpoint } from "./cors.ts";
import type { BodyDrain } from "./drain-body.ts";
import type { Administrator, Answering, BrokenStream, Call, Deed, Endpoint, ErrorWords, Guest } from "./endpoint.ts";
import { createEntrance, type Entrance, type EntranceParts } from "./entrance.ts";
import { errorResponse, toGatewayError } from "./error-response.ts";
import type { LaterRequest } from "./later-request.ts";
import { IDLE_TIMEOUT_SECONDS, type Server } from "./listener.ts";
import { writeQuotaHeaders } from "./quota-headers.ts";
import { type BodyReader, bodyLimits } from "./read-body.ts";
import type { RequestTarget, TargetHandler } from "./request-target.ts";
import type { RouteTable } from "./route-table.ts";
import { SERVER_TIMING, serverTiming } from "./server-timing.ts";

/** Where an answer tells the id under which the gateway keeps what became of the request. */
const OWN_ID_HEADER = "X-Signalbox-Request-ID";

export interface HandlerParts extends EntranceParts {
  routes: RouteTable<Endpoint>;
  webPages: WebPageRules;
  /** Reads bodies, and gives back a body's memory when its request is over. */
  bodies: Pick<BodyReader, "readBytes" | "release">;
  drain: BodyDrain;
  clock: Clock;
  log: Logger;
  newId(): string;
  /** Returns an id that no other request has. */
  newOwnId(): string;
  finished: RequestReporter["finished"];
  /** The shape of errors at a path whose endpoint does not say it, or that has none. */
  errorsAt?(path: string): ErrorWords | undefined;
  /** A request has its answer, whose body may go on; called once for each. */
  answered?: ((call: Call, endpoint: Answering | undefined, response: Response) => void) | undefined;
  /** A limit has refused a request; called once for it. */
  limited?: (scope: string) => void;
}

export type FrameHandler = (...asked: [...Parameters<TargetHandler>, later?: LaterRequest]) => Promise<Response>;

export function createHandler(parts: HandlerParts): FrameHandler {
  const { routes, webPages, drain, settings, clock, newId, newOwnId, errorsAt, limited } = parts;
  const entrance = createEntrance(parts);
  const frame: FrameParts = { ...parts, entrance, accessLog: createAccessLog(settings.logging, parts.log) };

  return async (request, server, target, later) => {
    const trace = resolveTrace(request.headers, settings.tracing, newId);
    const call = new FramedCall(frame, request, server, target, trace, newOwnId());
    const { context, headers } = call;
    if (later !== undefined) call.comesLater(later);
    writeIds(trace, settings.tracing, headers);
    headers[OWN_ID_HEADER] = context.record.id;
    let response: Response;
    /** The origin of a web page that may read the answer. */
    let reader: string | undefined;
    try {
      const page = webPages.judge(request.headers, server, headers);
      reader = page?.reader;
      const endpoint: Answering =
        (page && preflightEndpoint(request, page, routes.at(target))) ?? routes.match(request.method, target);
      call.endpoint = endpoint;
      if (endpoint.idHeader !== undefined) headers[endpoint.idHeader] = trace.id;
      const admission = entrance.admit(endpoint, call, page?.refusal);
      if (admission !== undefined) await admission;
      // A model may think for minutes; the deadlines of the pipeline watch over the request until it is answered.
      server.timeout(request, 0);
      response = await endpoint.handle(call);
    } catch (thrown) {
      const told = call.refused(thrown);
      const error = told instanceof Promise ? await told : told;
      if (error instanceof RateLimitError) limited?.(error.scope);
      const { record } = context;
      writeQuotaHeaders(record, call.endpoint?.operation, clock.wallTime(), headers);
      if (record.isRead) headers[SERVER_TIMING] ??= serverTiming(record, clock.now() - record.startedAtMs);
      const words: ErrorWords | undefined =
        call.endpoint?.errorFormat === undefined ? errorsAt?.(target.path) : call.endpoint;
      if (words?.idHeader !== undefined) headers[words.idHeader] = trace.id;
      const refusal = errorResponse(error, context.id, headers, words?.errorFormat);
      response = drain.behind(request, refusal, call.endpoint?.takesUploads);
    }
    // Pages that may read answers of the admin API are those that come from it, and need no leave.
    if (reader !== undefined && call.endpoint?.access !== "admin") openToPages(reader, response.headers);
    if (context.recording !== undefined) response = call.recorded(response, context.recording);
    call.answered(response.status);
    parts.answered?.(call, call.endpoint, response);
    return response;
  };
}

type FrameParts = Pick<HandlerParts, "settings" | "clock" | "bodies" | "finished"> & {
  entrance: Entrance;
  accessLog: AccessLog;
};

/** One request, and what the frame learns of it until its answer is over. */
class FramedCall implements Call {
  readonly request: Request;
  readonly server: Server;
  readonly context: RequestContext;
  readonly parameters: Call["parameters"];
  readonly headers: Record<string, string> = {};
  administrator: Administrator | undefined;
  guest: Guest | undefined;
  deed: Deed | undefined;
  endpoint: Answering | undefined;
  later: LaterRequest | undefined;
  readonly #frame: FrameParts;
  #isDeferred = false;
  #isConcluded = false;
  /** Its address, asked for once; of a stream, while its connection is sure to stand. */
  #client: string | undefined;
  /** Why the request failed, in words of the gateway's own. */
  #reason: string | undefined;
  #bug: unknown;

  constructor(
    frame: FrameParts,
    request: Request,
    server: Server,
    { path, parameters }: RequestTarget,
    trace: TraceContext,
    ownId: string,
  ) {
    this.#frame = frame;
    this.request = request;
    this.server = server;
    this.parameters = parameters;
    this.context = {
      id: trace.id,
      method: request.method,
      path,
      trace,
      settings: frame.settings,
      client: request,
      caller: undefined,
      clientHeaders: request.headers,
      peerAddress: () => this.#clientAddress(),
      record: new RequestRecord(ownId, trace.id, frame.clock.now(), frame.clock.now),
      heldBytes: 0,
      recording: undefined,
      spans: undefined,
    };
  }

  comesLater(later: LaterRequest): void {
    this.later = later;
    this.context.queueClass = later.queueClass;
    this.context.vendorTurn = later.vendorTurn;
  }

  readBody(maxBytes: number): Promise<Uint8Array> {
    const { bodies, settings } = this.#frame;
    return bodies.readBytes(this.request, this.context, bodyLimits(settings, maxBytes));
  }

  deferLog(): (broken: BrokenStream | undefined) => void {
    this.#isDeferred = true;
    if (this.#frame.accessLog.takes("warn")) this.#clientAddress();
    return (broken) => {
      if (this.#isConcluded) return;
      this.#isConcluded = true;
      if (broken !== undefined) {
        const { record } = this.context;
        record.lastFailure = broken.failure;
        record.streamFailure = broken.failure;
        record.error = broken.error;
        this.#reason = broken.error.message;
      }
      this.#conclude(broken?.status ?? 200);
    };
  }

  /** The error for the client, for anything that was thrown. */
  refused(thrown: unknown): GatewayError | Promise<GatewayError> {
    const error = toGatewayError(thrown);
    // The admin door counts guesses itself.
    const isGuess = error.status === 401 && this.endpoint?.access !== "admin" && this.later === undefined;
    const limit = isGuess ? this.#frame.entrance.guessed(this) : undefined;
    if (limit instanceof Promise) return limit.then((told) => this.#note(thrown, told ?? error));
    return this.#note(thrown, limit ?? error);
  }

  #note(thrown: unknown, error: GatewayError): GatewayError {
    // A client that leaves while it sends its body makes the read fail; there is nothing to report.
    if (thrown instanceof GatewayError) this.#reason = thrown.message;
    else if (!this.request.signal.aborted) this.#bug = thrown;
    const { record } = this.context;
    record.operation ||= this.endpoint?.operation ?? "";
    if (error.isOutage) record.isOutage = true;
    record.lastFailure ??= error.type;
    record.error ??= { type: error.type, code: error.code, message: error.message };
    return error;
  }

  recorded(response: Response, recording: RecordedExchange): Response {
    return recording.answered(response, this.#isDeferred);
  }

  answered(status: number): void {
    if (!this.#isDeferred) this.#conclude(status);
  }

  /** The answer is over: written down, and counted. */
  #conclude(answeredStatus: number): void {
    const { request, context } = this;
    const { clock, finished, bodies, accessLog } = this.#frame;
    // A client that does not read its answer is not waited for.
    this.server.timeout(request, IDLE_TIMEOUT_SECONDS);
    const durationMs = clock.now() - context.record.startedAtMs;
    // For quick answers the look at the connection would cost more than its result is worth.
    const hasLeft = (durationMs >= CLIENT_LOOK_MS || answeredStatus >= 400) && request.signal.aborted;
    const status = hasLeft ? CLIENT_CLOSED_REQUEST : answeredStatus;
    finished(context, status, durationMs);
    if (context.heldBytes > 0) bodies.release(context);
    const level = levelOf(status, this.endpoint);
    const bug = this.#bug;
    if (bug !== undefined || accessLog.takes(level)) {
      const client = this.#clientAddress();
      accessLog.write(level, context, { status, durationMs, reason: this.#reason, client }, bug);
    }
    // A line that a vendor's batch takes comes through here again, with its answer.
    if (context.vendorTurn?.isHandedOver === true) context.recording?.forget();
    else context.recording?.over(context.record);
    this.later?.over(context.record);
    context.record.settle();
  }

  #clientAddress(): string | undefined {
    this.#client ??= this.#frame.entrance.clientAddress(this.server, this.request);
    return this.#client;
  }
}

/** Failures of the gateway and of its backends are warnings; refusals of what a client asked are not. */
function levelOf(status: number, endpoint: Answering | undefined): LineLevel {
  if (endpoint?.isWatched && status !== 401 && status !== 403) return "debug";
  return status >= 500 ? "warn" : "info";
}
