// The frame around every request: trace id, route, authorization, error answer, access log.

import { type AccessControl, presentedKey, type Scope } from "../access/api-keys.ts";
import type { ClientAddressReader } from "../access/client-address.ts";
import type { WebPageRules } from "../access/web-pages.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import { type LineLevel, type Logger, lineWriter } from "../logging/logger.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { CLIENT_CLOSED_REQUEST, type RequestReporter } from "../pipeline/observe.ts";
import { RateLimitError, writeRateLimitHeaders } from "../rate-limit/decision.ts";
import type { Limiter, LimitQuery } from "../rate-limit/limiter.ts";
import { resolveTrace, writeIds } from "../tracing/trace-context.ts";
import { openToPages, preflightEndpoint } from "./cors.ts";
import type { BodyDrain } from "./drain-body.ts";
import { type ErrorFormat, errorResponse, toGatewayError } from "./error-response.ts";
import { IDLE_TIMEOUT_SECONDS, type Server } from "./listener.ts";
import type { BodyReader } from "./read-body.ts";
import type { TargetHandler } from "./request-target.ts";
import type { RouteTable } from "./route-table.ts";
import { SERVER_TIMING, serverTiming } from "./server-timing.ts";

/** Who may use an endpoint: anyone, callers whose key has a scope, or, for "admin", whom the admin door lets in. */
export type Access = "open" | Scope;

/** Who calls the admin API. */
export interface Administrator {
  /** As the history of changes names them; undefined where nobody has to say who they are. */
  name: string | undefined;
  /** Whether secrets may be shown to them. */
  elevated: boolean;
}

export interface AdminDoor {
  /**
   * Throws 401, 403 or 429. Addresses are undefined for peers on a unix socket; `client` is the one that trusted proxies
   * name.
   */
  admit(request: Request, addresses: { peer: string | undefined; client: string | undefined }): Administrator;
}

/** One request as an endpoint sees it. */
export interface Call {
  request: Request;
  context: RequestContext;
  /** The decoded rest of the path, for routes that end in "/*". */
  parameter: string;
  /** Whom the admin door has let in; undefined for endpoints with any other access. */
  administrator: Administrator | undefined;
  /** Headers that every answer to this request carries. */
  headers: Record<string, string>;
  /** To be called when an answer goes on after its handler returned: the access log line waits for `done`. */
  deferLog(): (broken: BrokenStream | undefined) => void;
}

/** How a stream ended whose status 200 had been sent. */
export interface BrokenStream {
  failure: string;
  /** What the status of a plain answer would have been. */
  status: number;
  error: NonNullable<RequestContext["record"]["error"]>;
}

export interface Endpoint {
  access: Access;
  /** Of its own, where access is "open". */
  credentials?: {
    areWanted(): boolean;
    /** Throws 401. */
    check(headers: Headers): void;
  };
  /** Asked all the time by whoever watches: its lines in the access log have the level debug while all is well. */
  isWatched?: boolean;
  /** How its errors are told, where that is not the standard shape. */
  errorFormat?: ErrorFormat;
  /** A further header for the id of the request, where the clients of its format look for one. */
  idHeader?: string;
  handle(call: Call): Response | Promise<Response>;
}

/** Where an answer tells the id under which the gateway keeps what became of the request. */
export const OWN_ID_HEADER = "X-Signalbox-Request-ID";

export interface HandlerParts {
  routes: RouteTable<Endpoint>;
  access: AccessControl;
  webPages: WebPageRules;
  /** Without one, nobody gets to endpoints with the access "admin". */
  adminDoor: AdminDoor | undefined;
  limiter: Limiter;
  clientAddresses: ClientAddressReader;
  /** Whose memory a request takes until it is over. */
  bodies: Pick<BodyReader, "release">;
  drain: BodyDrain;
  settings: Settings;
  clock: Clock;
  log: Logger;
  newId(): string;
  /** No two requests get the same. */
  newOwnId(): string;
  finished: RequestReporter["finished"];
  /** A limit has refused a request; called once for it. */
  limited?: (scope: string) => void;
}

const MAX_LOGGED_PATH_LENGTH = 200;

export function createHandler(parts: HandlerParts): TargetHandler {
  const {
    routes,
    access,
    webPages,
    adminDoor,
    limiter,
    clientAddresses,
    bodies,
    drain,
    settings,
    clock,
    log,
    newId,
    newOwnId,
    finished,
    limited,
  } = parts;
  const logAccess = lineWriter(log, "request");

  /** Whether the fields of a line are put together at all. */
  function isLogged(level: LineLevel): boolean {
    return (settings.logging.access_log || level === "warn") && log.isLevelEnabled(level);
  }

  function clientAddress(server: Server, request: Request): string | undefined {
    return clientAddresses.read(server.requestIP(request)?.address, request.headers.get("x-forwarded-for"));
  }

  function admit(server: Server, request: Request): Administrator {
    if (adminDoor === undefined) throw new GatewayError(ERRORS.forbidden, "The admin API is closed.");
    const peer = server.requestIP(request)?.address;
    return adminDoor.admit(request, { peer: peer === "" ? undefined : peer, client: clientAddress(server, request) });
  }

  function limitQuery(server: Server, request: Request, keyId: string | undefined): LimitQuery {
    const key = limiter.hasBypassKeys ? presentedKey(request.headers) : undefined;
    return { clientAddress: clientAddress(server, request), keyId, key };
  }

  /** Wrong credentials cost the client a token; the 429 when it has none left. */
  function guessed(server: Server, request: Request): RateLimitError | undefined {
    if (!limiter.limitsRequests) return undefined;
    const refusal = limiter.takeForGuess(limitQuery(server, request, undefined));
    return refusal && new RateLimitError(refusal);
  }

  /** Looks at none while the client has no token: else every guess would be answered. */
  function checkCredentials(server: Server, request: Request, { check }: NonNullable<Endpoint["credentials"]>): void {
    if (limiter.limitsRequests) {
      const refusal = limiter.guessRefusal(limitQuery(server, request, undefined));
      if (refusal !== undefined) throw new RateLimitError(refusal);
    }
    check(request.headers);
  }

  /** Takes a token of every limit that concerns the caller, or throws 429. */
  function checkLimits(
    server: Server,
    request: Request,
    keyId: string | undefined,
    headers: Record<string, string>,
  ): void {
    const decision = limiter.take(limitQuery(server, request, keyId));
    if (decision === undefined) return;
    if (!decision.allowed) throw new RateLimitError(decision);
    if (settings.rate_limiting.headers_on_success) writeRateLimitHeaders(decision, headers);
  }

  return async (request, server, target) => {
    const { path } = target;
    const trace = resolveTrace(request.headers, settings.tracing, newId);
    const headers: Record<string, string> = {};
    writeIds(trace, settings.tracing, headers);
    const ownId = newOwnId();
    headers[OWN_ID_HEADER] = ownId;
    const context: RequestContext = {
      id: trace.id,
      ownId,
      trace,
      startedAtMs: clock.now(),
      settings,
      signal: request.signal,
      caller: undefined,
      clientHeaders: request.headers,
      peerAddress: () => clientAddress(server, request),
      record: {
        method: request.method,
        path,
        model: undefined,
        fallbackModel: undefined,
        stream: false,
        backend: undefined,
        attempts: 0,
        failure: undefined,
      },
    };
    let deferred = false;
    let endpoint: Endpoint | undefined;
    /** Of a stream, asked for while its connection is sure to stand. */
    let client: string | undefined;
    /** Why the request failed, in words of the gateway's own: those of a backend may quote prompts and keys. */
    let reason: string | undefined;
    /** An exception that nobody foresaw. */
    let bug: unknown;
    /** The answer is over: written down, and counted. */
    function conclude(answeredStatus: number): void {
      const status = request.signal.aborted ? CLIENT_CLOSED_REQUEST : answeredStatus;
      const durationMs = clock.now() - context.startedAtMs;
      finished(context, status, durationMs);
      if (context.record.heldBytes !== undefined) bodies.release(context.record);
      const level = levelOf(status, endpoint);
      if (bug === undefined && !isLogged(level)) return;
      const told = { status, durationMs, reason, client: client ?? clientAddress(server, request) };
      const fields = accessFields(context, told);
      if (bug === undefined) logAccess(level, fields);
      else log.error({ ...fields, err: bug }, "unexpected error");
    }

    let response: Response;
    /** The origin of a web page that may read the answer. */
    let reader: string | undefined;
    try {
      const page = webPages.judge(request.headers, server, headers);
      reader = page?.reader;
      if (page !== undefined) endpoint = preflightEndpoint(request, page, routes.at(target));
      endpoint ??= routes.match(request.method, target);
      if (endpoint.idHeader !== undefined) headers[endpoint.idHeader] = trace.id;
      let administrator: Administrator | undefined;
      if (endpoint.access === "admin") administrator = admit(server, request);
      else if (endpoint.access !== "open") {
        if (page?.refusal !== undefined) throw new GatewayError(ERRORS.forbidden, page.refusal);
        context.caller = access.authorize(request.headers, endpoint.access);
        if (limiter.limitsRequests) checkLimits(server, request, context.caller?.keyId, headers);
      } else if (endpoint.credentials?.areWanted()) checkCredentials(server, request, endpoint.credentials);
      // A model may think for minutes; the deadlines of the pipeline watch over the request until it is answered.
      server.timeout(request, 0);
      const call: Call = {
        request,
        context,
        parameter: target.parameter,
        administrator,
        headers,
        deferLog() {
          deferred = true;
          if (isLogged("warn")) client = clientAddress(server, request);
          return (broken) => {
            if (broken !== undefined) {
              context.record.failure = broken.failure;
              context.record.streamFailure = broken.failure;
              context.record.error = broken.error;
              reason = broken.error.message;
            }
            server.timeout(request, IDLE_TIMEOUT_SECONDS);
            conclude(broken?.status ?? 200);
          };
        },
      };
      response = await endpoint.handle(call);
    } catch (thrown) {
      let error = toGatewayError(thrown);
      // The admin door counts guesses itself.
      if (error.status === 401 && endpoint?.access !== "admin") error = guessed(server, request) ?? error;
      // A client that leaves while it sends its body makes the read fail; nobody is there to be told.
      if (thrown instanceof GatewayError) reason = thrown.message;
      else if (!request.signal.aborted) bug = thrown;
      if (error instanceof RateLimitError) limited?.(error.scope);
      if (context.record.operation !== undefined) {
        headers[SERVER_TIMING] ??= serverTiming(context.record, clock.now() - context.startedAtMs);
      }
      context.record.failure ??= error.type;
      context.record.error ??= { type: error.type, code: error.code, message: error.message };
      response = drain.behind(request, errorResponse(error, context.id, headers, endpoint?.errorFormat));
    }
    // Pages that may read answers of the admin API are those that come from it, and need no leave.
    if (reader !== undefined && endpoint?.access !== "admin") openToPages(reader, response.headers);
    if (!deferred) {
      // A client that does not read its answer is not waited for.
      server.timeout(request, IDLE_TIMEOUT_SECONDS);
      conclude(response.status);
    }
    return response;
  };
}

/** Failures of the gateway and of its backends are warnings; refusals of what a client asked are not. */
function levelOf(status: number, endpoint: Endpoint | undefined): LineLevel {
  if (endpoint?.isWatched && status !== 401 && status !== 403) return "debug";
  return status >= 500 ? "warn" : "info";
}

interface AccessFacts {
  status: number;
  durationMs: number;
  reason: string | undefined;
  client: string | undefined;
}

/** What is undefined is left out of the line. */
function accessFields(
  { id, ownId, caller, record }: RequestContext,
  { status, durationMs, reason, client }: AccessFacts,
): object {
  const { method, path, stream, attempts, backendMs, firstByteMs, usage } = record;
  return {
    method,
    path: path.length > MAX_LOGGED_PATH_LENGTH ? path.slice(0, MAX_LOGGED_PATH_LENGTH) : path,
    status,
    duration_ms: rounded(durationMs),
    gateway_ms: backendMs === undefined ? undefined : rounded(Math.max(0, durationMs - backendMs)),
    first_token_ms: stream && firstByteMs !== undefined ? rounded(firstByteMs) : undefined,
    model: record.model,
    fallback_model: record.fallbackModel,
    stream: stream || undefined,
    backend: record.backend,
    attempts: attempts > 1 ? attempts : undefined,
    prompt_tokens: usage?.input.total,
    completion_tokens: usage?.output.total,
    failure: record.failure,
    reason: status >= 500 ? reason : undefined,
    client,
    key: caller?.keyId,
    request_id: id,
    id: ownId,
  };
}

function rounded(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}
