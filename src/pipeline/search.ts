// Answers with web searches in them, for models whose backends cannot search: each turn of the model is a request of its
// own along the fallback chain, its answer read as neutral events, and the whole goes to the client in its format.

import { formatOf, type Operation } from "../backends/operations.ts";
import { clientLeft, GatewayError } from "../errors/gateway-error.ts";
import { Collector } from "../generation/collect.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Failure } from "../generation/result.ts";
import { orAborted } from "../lib/abortable-delay.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { AnswerContext, ClientProtocol, StreamEncoder } from "../protocols/protocol.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { standardError } from "../upstream/error-body.ts";
import { toldFailure, type UpstreamFailure } from "../upstream/failure.ts";
import { planSearch } from "../web-search/conversation.ts";
import { emulateSearch, type SearchLimits } from "../web-search/emulate.ts";
import type { SearchProvider } from "../web-search/provider.ts";
import type { RequestContext } from "./context.ts";
import type { FallbackChains, FallbackResult } from "./fallback.ts";
import type { Generate, Generated, StreamFrame } from "./generate.ts";
import type { ModelRequest } from "./model-request.ts";
import { type NeutralTurn, openTurn } from "./neutral-turn.ts";
import { forTarget } from "./routes.ts";

interface SearchParts {
  provider: SearchProvider;
  limits: SearchLimits;
  chains: FallbackChains;
  /** Whether a backend of the model searches itself when it is asked by this operation. */
  searchesItself(model: string, operation: Operation): boolean;
  clock: Clock;
  log: Logger;
}

type FailedResult = Extract<FallbackResult, { kind: "failed" }>;
type StreamResult = Extract<FallbackResult, { kind: "stream" }>;

/** A generator that makes the searches which the backends of a model cannot make. All else it leaves to the other one. */
export function withWebSearch(generate: Generate, parts: SearchParts): Generate {
  return (context, request, frame) => {
    const { operation, model } = request;
    const { value } = request.body;
    const format = formatOf(operation);
    const client = clientProtocol(format);
    if (format === undefined || !client.offersSearch?.(value) || parts.searchesItself(model, operation)) {
      return generate(context, request, frame);
    }
    const neutral = client.decodeRequest(request.routed?.body.value ?? value);
    if (planSearch(neutral) === undefined) return generate(context, request, frame);
    return answerWithSearches(context, request, frame, parts, client, neutral);
  };
}

async function answerWithSearches(
  context: RequestContext,
  request: ModelRequest,
  frame: StreamFrame,
  { provider, limits, chains, clock, log }: SearchParts,
  client: ClientProtocol,
  neutral: GenerationRequest,
): Promise<Generated> {
  const nonce = crypto.randomUUID().replaceAll("-", "");
  const abort = new AbortController();
  const signal = AbortSignal.any([context.client.signal, abort.signal]);
  const unexpected = (error: unknown) => failureOf(error, log, context.id);
  const searching: RequestContext = {
    ...context,
    vendorTurn: undefined, // its rounds follow one another
    client: { signal },
    clientHeaders: turnHeaders(context.clientHeaders),
  };
  const turns = createTurns(chains, searching, request, client, unexpected);
  const events = emulateSearch({
    request: neutral,
    callModel: turns.call,
    provider,
    limits,
    nonce,
    signal,
    cites: !client.quotesSources,
    searchFailed: (errorCode, reason) =>
      log.warn({ request_id: context.id, provider: provider.name, error_code: errorCode, reason }, "a search failed"),
  });
  const head = await events.next();
  const { first } = turns;
  if (first === undefined || head.done === true) throw clientLeft();
  if (first.kind === "failed") return failedAnswer(first, first.failure, client, context.id);
  if (head.value.type === "failure") return failedAnswer(first, toldFailure(head.value.failure), client, context.id);

  const now = () => Math.floor(clock.wallTime() / 1000);
  const answer: AnswerContext = { model: request.askedModel, createdAt: now(), now, nonce, request: neutral };
  const collector = new Collector();
  const isCollected = !request.stream || request.answered !== undefined;
  const rest = startingWith(head.value, events, (event) => {
    if (event.type === "usage") context.record.usage = event.usage;
    if (isCollected) collector.push(event);
  });
  if (request.stream) {
    const encoder = client.streamEncoder(answer);
    function ended(failure: UpstreamFailure | undefined): void {
      const whole = failure === undefined ? collector.result() : undefined;
      if (whole !== undefined) request.answered?.(whole, answer);
      frame.ended(failure);
    }
    const body = eventStream({ events: rest, encoder, signal, leave: () => abort.abort(), ended, unexpected });
    return { kind: "stream", cache: undefined, result: first as StreamResult, body };
  }
  for await (const _ of rest); // read to its end
  if (signal.aborted) throw clientLeft();
  const whole = collector.result();
  if (whole === undefined) {
    const failure = collector.failure ?? { message: "The answer was not complete.", status: 502 };
    return failedAnswer(first, toldFailure(failure), client, context.id);
  }
  request.answered?.(whole, answer);
  const { entry, headers, model, reasons } = first;
  const body = new TextEncoder().encode(JSON.stringify(client.encodeResponse(whole, answer)));
  const result = { kind: "plain" as const, entry, headers, model, reasons, body, contentType: "application/json" };
  return { kind: "plain", cache: undefined, result };
}

/** The turns of one answer, each a request of its own. */
function createTurns(
  chains: FallbackChains,
  context: RequestContext,
  request: ModelRequest,
  client: ClientProtocol,
  unexpected: (error: unknown) => Failure,
) {
  const turns = {
    /** What the first came to; it decides about status and headers. */
    first: undefined as FallbackResult | undefined,
    async *call(neutral: GenerationRequest): AsyncGenerator<GenerationEvent, void> {
      const { first } = turns;
      let turn: NeutralTurn;
      try {
        turn = await openTurn(chains, context, first === undefined ? request : again(request, first), neutral, client);
      } catch (error) {
        if (first === undefined) throw error;
        yield { type: "failure", failure: unexpected(error) };
        return;
      }
      turns.first ??= turn.result;
      yield* turn.events;
    },
  };
  return turns;
}

/** The model that has begun the answer goes on, on the backend that has the conversation in its memory. */
function again(request: ModelRequest, { model, reasons, target: told, entry }: FallbackResult): ModelRequest {
  const { routed } = request;
  const target = told ?? (reasons.length === 0 && routed !== undefined ? routed.target : { model, arms: [] });
  return {
    ...(reasons.length === 0 ? request : forTarget(request, target)),
    prefer: entry.backend.name,
    routed: routed && { ...routed, target, others: [] },
  };
}

/** The turns are different requests: under one key a backend would answer the second with the first one's answer. */
function turnHeaders(clientHeaders: Headers): Headers {
  const headers = new Headers(clientHeaders);
  headers.delete("idempotency-key");
  return headers;
}

/** Errors of backends are in the standard shape by now, whatever the backend speaks: the client gets its own. */
function failedAnswer(
  { entry, model, reasons }: FallbackResult,
  failure: UpstreamFailure,
  client: ClientProtocol,
  requestId: string,
): Generated {
  const result: FailedResult = { kind: "failed", entry, model, reasons, failure };
  if (failure.kind === "status" && client.ownErrors !== undefined) {
    const { status } = failure;
    const { message, type, code } = standardError(status, failure.body);
    const body = JSON.stringify(client.errorBody({ status, message, type, code, requestId }));
    result.failure = { ...failure, body: new TextEncoder().encode(body) };
  }
  return { kind: "failed", cache: undefined, result };
}

function failureOf(error: unknown, log: Logger, requestId: string): Failure {
  if (error instanceof GatewayError) {
    return { message: error.message, status: error.status, type: error.type, code: String(error.code) };
  }
  log.error({ request_id: requestId, err: error }, "unexpected error");
  return { message: "An unexpected error happened inside the gateway; its log has the details.", status: 500 };
}

async function* startingWith(
  head: GenerationEvent,
  rest: AsyncGenerator<GenerationEvent, void>,
  saw: (event: GenerationEvent) => void,
): AsyncGenerator<GenerationEvent, void> {
  try {
    saw(head);
    yield head;
    for await (const event of rest) {
      saw(event);
      yield event;
    }
  } finally {
    await rest.return(); // also when only the head was read
  }
}

interface EventStreamParts {
  events: AsyncGenerator<GenerationEvent, void>;
  encoder: StreamEncoder;
  signal: AbortSignal;
  /** Ends everything that is under way for this answer. */
  leave(): void;
  ended: StreamFrame["ended"];
  unexpected(error: unknown): Failure;
}

const textEncoder = new TextEncoder();

function eventStream({ events, encoder, signal, leave, ended, unexpected }: EventStreamParts): ReadableStream {
  let hasEnded = false;
  let hasLeft = false;
  function end(failure: UpstreamFailure | undefined): void {
    if (hasEnded) return;
    hasEnded = true;
    ended(failure);
  }
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(client) {
      async function send(text: string): Promise<void> {
        if (text === "" || hasLeft) return;
        const written: unknown = client.write(textEncoder.encode(text));
        client.flush();
        if (written instanceof Promise) await orAborted(written, signal);
      }
      let failure: Failure | undefined;
      let isComplete = false;
      try {
        for await (const event of events) {
          if (event.type === "failure") failure = event.failure;
          else if (event.type === "finish") isComplete = true;
          await send(encoder.push(event));
        }
        if (isComplete && failure === undefined) await send(encoder.end());
      } catch (error) {
        failure = unexpected(error);
        await send(encoder.push({ type: "failure", failure }));
      }
      if (failure !== undefined) end(toldFailure(failure));
      else end(isComplete ? undefined : { kind: "aborted" });
      if (!hasLeft) client.close();
    },
    cancel() {
      hasLeft = true;
      leave();
      void events.return();
      end({ kind: "aborted" });
    },
  };
  return new ReadableStream(source);
}
