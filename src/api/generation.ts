// Chat completions, text completions and embeddings: the endpoints whose bytes are forwarded as they came.

import type { Operation } from "../backends/kinds.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import { writeFallbackHeaders } from "../pipeline/fallback.ts";
import type { Generated, Generator } from "../pipeline/generate.ts";
import type { JsonObject } from "../protocols/fields.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import { errorBody } from "../server/error-response.ts";
import type { Call, Endpoint } from "../server/handler.ts";
import { readJsonBody } from "../server/read-body.ts";
import { forwardableErrorBody } from "../upstream/error-body.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";

export interface GenerationParts {
  generator: Generator;
  deadlines: Deadlines;
  now(): number;
}

export interface GenerationEndpoint {
  operation: Operation;
  maxBodyBytes: number;
  /** Validates the body; throws 400 with the field. */
  read(body: JsonObject): RequestSummary;
}

const NONE_AVOIDED: ReadonlySet<string> = new Set();

export function generationEndpoint(
  { operation, maxBodyBytes, read }: GenerationEndpoint,
  { generator, deadlines, now }: GenerationParts,
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
      const asked = { ...summary, operation, value, body: bytes, patience: 1, avoid: NONE_AVOIDED };
      const ended = Promise.withResolvers<string | undefined>();
      const generated = await generator.generate(context, asked, {
        errorEvent: (failure) => `data: ${errorBody(toError(failure), context.id)}\n\n`,
        ended: (failure) => ended.resolve(failure === undefined ? undefined : failureLabel(failure)),
      });
      // A shared stream may have ended for this client already.
      if (generated.kind === "stream") void ended.promise.then(call.deferLog());
      return answer(call, summary.model, generated);
    },
  };
}

function answer(call: Call, model: string, generated: Generated): Response {
  const { headers } = call;
  if (generated.cache !== undefined) headers["X-Cache"] = generated.cache;
  if (generated.kind === "replayed") {
    headers["Content-Type"] = generated.replay.contentType;
    return new Response(generated.replay.body as Uint8Array<ArrayBuffer>, { headers });
  }
  const { entry } = generated.result;
  headers["X-Signalbox-Backend"] = entry.backend.name;
  writeFallbackHeaders(model, generated.result, headers);
  if (generated.kind === "failed") return failureResponse(call, generated.result.failure);
  Object.assign(headers, generated.result.headers);
  if (generated.kind === "plain") {
    headers["Content-Type"] = generated.result.contentType;
    return new Response(generated.result.body as Uint8Array<ArrayBuffer>, { headers });
  }
  headers["Content-Type"] = "text/event-stream; charset=utf-8";
  headers["Cache-Control"] = "no-cache";
  headers["X-Accel-Buffering"] = "no"; // asks reverse proxies such as nginx not to hold events back
  return new Response(generated.body, { headers });
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
