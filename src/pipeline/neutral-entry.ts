// The front door for callers that do not speak HTTP: a neutral request in, neutral events out, on the way of every other
// request, with its limits, its story and its place in the statistics.

import type { AccessControl } from "../access/api-keys.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { asEvents } from "../generation/as-events.ts";
import { Collector } from "../generation/collect.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Failure } from "../generation/result.ts";
import { NEUTRAL, withReply } from "../hooks/neutral-forms.ts";
import type { Clock } from "../lib/clock.ts";
import { JsonBody } from "../lib/request-body.ts";
import type { ClientProtocol } from "../protocols/protocol.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { RateLimitError } from "../rate-limit/decision.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { resolveTrace } from "../tracing/trace-context.ts";
import { isOfAccount } from "../upstream/failure.ts";
import type { RequestContext } from "./context.ts";
import type { MidStreamParts } from "./mid-stream.ts";
import { firstRequest, type ModelRequest } from "./model-request.ts";
import { openTurn } from "./neutral-turn.ts";
import { CLIENT_CLOSED_REQUEST, type RequestReporter } from "./observe.ts";
import { type RequestHooks, throughStages } from "./request-hooks.ts";
import type { ModelNames } from "./routes.ts";

interface NeutralCall {
  /** Aborts when the answer is no longer wanted. */
  signal: AbortSignal;
  /** The key whose limits and models count; undefined: the gateway's own call, which nothing limits. */
  apiKey?: string | undefined;
}

export interface NeutralEntry {
  /**
   * Trouble with backends is a failure event. Throws GatewayError for what is refused before any was asked. A reader
   * that stops frees the backend.
   */
  generate(request: GenerationRequest, call: NeutralCall): AsyncGenerator<GenerationEvent, void>;
}

interface NeutralEntryParts {
  /** Who answers, and who takes over. */
  pipeline: MidStreamParts;
  access: Pick<AccessControl, "authorize">;
  limiter: Limiter;
  reporter: Pick<RequestReporter, "begun" | "finished">;
  /** A limit has refused a request. */
  limited?: ((scope: string) => void) | undefined;
  aliases(asked: ModelRequest): ModelRequest;
  names: Pick<ModelNames, "requireAllowed" | "resolve">;
  /** Undefined: there are none. */
  hooks?: Pick<RequestHooks, "neutral"> | undefined;
  settings: Settings;
  clock: Clock;
  newOwnId(): string;
}

export function createNeutralEntry(parts: NeutralEntryParts): NeutralEntry {
  const { pipeline, access, limiter, reporter, limited, aliases, names, hooks, settings, clock, newOwnId } = parts;

  function newContext(signal: AbortSignal, { operation, model }: ModelRequest): RequestContext {
    const clientHeaders = new Headers();
    const trace = resolveTrace(clientHeaders, settings.tracing, () => crypto.randomUUID());
    const record = new RequestRecord(newOwnId(), trace.id, clock.now(), clock.now);
    record.operation = operation;
    record.model = model;
    record.stream = true;
    record.isRead = true;
    return {
      id: trace.id,
      method: "",
      path: "",
      trace,
      settings,
      client: { signal },
      caller: undefined,
      clientHeaders,
      peerAddress: () => undefined,
      record,
      heldBytes: 0,
      spans: undefined,
    };
  }

  /** What is done with it before a backend is looked for. Throws 401, 403 and 429. */
  async function admit(context: RequestContext, asked: ModelRequest, apiKey: string | undefined): Promise<void> {
    if (apiKey !== undefined) {
      await access.authorize(new Headers({ Authorization: `Bearer ${apiKey}` }), "write", context);
    }
    const { caller } = context;
    names.requireAllowed(caller, asked.model);
    const { keyId, requestsPerMinute: perMinute } = caller ?? {};
    const decision = await (caller && limiter.take({ clientAddress: undefined, keyId, perMinute, key: undefined }));
    if (decision === undefined || decision.allowed) return;
    limited?.(decision.scope);
    throw new RateLimitError(decision);
  }

  /** Of a backend, or of a hook that has given the answer. */
  async function* answerEvents(
    context: RequestContext,
    asked: ModelRequest,
    hooked: Awaited<ReturnType<RequestHooks["neutral"]>>,
    client: ClientProtocol,
  ): AsyncGenerator<GenerationEvent, void> {
    if ("answer" in hooked) {
      yield* asEvents(hooked.answer);
      return;
    }
    const open = async (neutral: GenerationRequest) => {
      const request = await names.resolve(context, asNeutral(hooked.asked ?? asked, neutral, client));
      context.record.model = request.model;
      const { events } = await openTurn(pipeline.chains, context, request, neutral, client, pipeline);
      return events;
    };
    const { neutral } = hooked;
    const events = await open(neutral);
    if (context.hooks === undefined) {
      yield* events;
      return;
    }
    yield* throughStages(context.hooks, events, async (said, message) => {
      const again = withReply(NEUTRAL, { ...neutral }, said, message) as unknown as GenerationRequest;
      const collector = new Collector();
      for await (const event of await open(again)) collector.push(event);
      return collector.result();
    });
  }

  return {
    async *generate(neutral, call) {
      const stop = new AbortController();
      const signal = AbortSignal.any([call.signal, stop.signal]);
      const asked = aliases(modelRequest(neutral));
      const context = newContext(signal, asked);
      const { record, settings } = context;
      if (settings.telemetry.record_user) record.endUser = neutral.user;
      let status = CLIENT_CLOSED_REQUEST;
      try {
        await admit(context, asked, call.apiKey);
        reporter.begun(context);
        const client = clientProtocol(neutral.origin.protocol);
        const hooked = hooks === undefined ? { neutral } : await hooks.neutral(context, asked, neutral);
        if ("asked" in hooked && hooked.asked !== undefined) names.requireAllowed(context.caller, hooked.asked.model);
        for await (const event of answerEvents(context, asked, hooked, client)) {
          if (signal.aborted) break;
          if (event.type === "failure") {
            status = noteFailure(record, event.failure);
            if (isOfAccount(status)) record.isOutage = true;
          } else record.firstByteMs ??= clock.now() - record.startedAtMs;
          if (event.type === "finish") status = 200;
          yield event;
        }
      } catch (error) {
        if (!signal.aborted) status = noteFailure(record, error instanceof GatewayError ? error : BUG);
        if (error instanceof GatewayError && error.isOutage) record.isOutage = true;
        throw error;
      } finally {
        stop.abort();
        reporter.finished(context, status, clock.now() - record.startedAtMs);
        record.settle();
      }
    },
  };
}

function modelRequest({ model, origin, promptCacheKey, user }: GenerationRequest): ModelRequest {
  const summary = { model, stream: true, choices: 1, affinity: () => promptCacheKey ?? user };
  return firstRequest(summary, origin.protocol, JsonBody.written({ model }));
}

function asNeutral(asked: ModelRequest, neutral: GenerationRequest, client: ClientProtocol): ModelRequest {
  return { ...asked, asking: { kind: "neutral", neutral, client } };
}

const BUG = { message: "unexpected error", status: 500, type: ERRORS.internal.type };

/** Returns the status that a client of HTTP would get. */
function noteFailure(record: RequestRecord, { status, type = "backend_error", code, message }: FailureWords): number {
  record.error = { type, code: code ?? null, message };
  record.lastFailure ??= type;
  if (record.firstByteMs !== undefined) record.streamFailure = record.lastFailure;
  return status;
}

/** A failure, or a refusal. */
type FailureWords = Pick<Failure, "message" | "status" | "type"> & { code?: string | number };
