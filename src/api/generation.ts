// Chat completions, text completions and embeddings: the endpoints whose bytes are forwarded as they came.

import type { Operation } from "../backends/kinds.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import type { Forwarder, ForwardResult } from "../pipeline/forward.ts";
import type { JsonObject } from "../protocols/fields.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import { errorBody } from "../server/error-response.ts";
import type { Call, Endpoint } from "../server/handler.ts";
import { readJsonBody } from "../server/read-body.ts";
import { forwardableErrorBody } from "../upstream/error-body.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import { relayStream } from "../upstream/relay.ts";
import { countFailure } from "../upstream/send.ts";

export interface GenerationParts {
  forwarder: Forwarder;
  deadlines: Deadlines;
  now(): number;
}

export interface GenerationEndpoint {
  operation: Operation;
  maxBodyBytes: number;
  /** Validates the body; throws 400 with the field. */
  read(body: JsonObject): RequestSummary;
}

export function generationEndpoint(
  { operation, maxBodyBytes, read }: GenerationEndpoint,
  { forwarder, deadlines, now }: GenerationParts,
): Endpoint {
  return {
    access: "write",
    async handle(call) {
      const { context, request } = call;
      const limits = { maxBytes: maxBodyBytes, timeoutMs: context.settings.timeouts.request_body };
      const { bytes, value } = await readJsonBody(request, limits, deadlines, now);
      const summary = read(value);
      context.record.model = summary.model;
      context.record.stream = summary.stream;
      const result = await forwarder.forward(context, { ...summary, operation, body: bytes });
      return answer(call, summary, result);
    },
  };
}

function answer(call: Call, { choices }: RequestSummary, result: ForwardResult): Response {
  const { headers, context } = call;
  headers["X-Signalbox-Backend"] = result.entry.backend.name;
  if (!result.ok) return failureResponse(call, result.failure);
  Object.assign(headers, result.headers);
  if (result.kind === "plain") {
    headers["Content-Type"] = result.contentType;
    return new Response(result.body as Uint8Array<ArrayBuffer>, { headers });
  }
  headers["Content-Type"] = "text/event-stream; charset=utf-8";
  headers["Cache-Control"] = "no-cache";
  headers["X-Accel-Buffering"] = "no"; // asks reverse proxies such as nginx not to hold events back
  const logged = call.deferLog();
  const body = relayStream(result.stream, result.exchange, {
    choices,
    errorEvent: (failure) => `data: ${errorBody(toError(failure), context.id)}\n\n`,
    finished: (failure) => {
      if (failure !== undefined) countFailure(result.entry, failure);
      logged(failure === undefined ? undefined : failureLabel(failure));
    },
  });
  return new Response(body, { headers });
}

/** The answer to a request whose attempts are used up. */
function failureResponse({ headers, context }: Call, failure: UpstreamFailure): Response {
  // The gateway has retried already: the SDKs' own retries would multiply the load on backends in trouble.
  headers["x-should-retry"] = "false";
  if (failure.kind !== "status") throw toError(failure, { "x-should-retry": "false" });
  context.record.failure = failureLabel(failure);
  Object.assign(headers, failure.headers);
  headers["Content-Type"] = "application/json";
  const body = forwardableErrorBody(failure.status, failure.body);
  return new Response(body as Uint8Array<ArrayBuffer> | string, { status: failure.status, headers });
}

const FAILURE_ERRORS: Record<Exclude<UpstreamFailure["kind"], "status">, ErrorDefinition> = {
  connect: ERRORS.backendConnection,
  reset: ERRORS.backendConnection,
  timeout: ERRORS.backendTimeout,
  "invalid-response": ERRORS.invalidBackendResponse,
  "told-in-stream": ERRORS.backendError,
  aborted: ERRORS.requestTimeout,
};

function toError(failure: UpstreamFailure, headers?: Record<string, string>): GatewayError {
  const message = "message" in failure ? failure.message : "The client closed the request.";
  const definition = failure.kind === "status" ? ERRORS.backendError : FAILURE_ERRORS[failure.kind];
  return new GatewayError(definition, message, headers === undefined ? {} : { headers });
}
