// One model's request on its way: find a backend, attempt, retry, hand the answer on.

import type { Backend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { statusText } from "../backends/exchange.ts";
import type { Operation } from "../backends/kinds.ts";
import type { Settings } from "../config/sections/registry.ts";
import { clientLeft } from "../errors/gateway-error.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import { abortableDelay, orAborted } from "../lib/abortable-delay.ts";
import type { RequestBody } from "../lib/request-body.ts";
import type { Logger } from "../logging/logger.ts";
import type { PassedAnswer } from "../protocols/chat/passed-answer.ts";
import type { AnswerContext, ClientProtocol } from "../protocols/protocol.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import type { Translation } from "../protocols/translate.ts";
import { RateLimitError } from "../rate-limit/decision.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { Circuits, Permit } from "../routing/circuits.ts";
import { noBackendError } from "../routing/no-backend.ts";
import { type Admitted, createRouter, hasOperation } from "../routing/router.ts";
import type { SelectionQuery, SelectionStrategy } from "../routing/strategy.ts";
import type { AttemptStep } from "../stats/request-log.ts";
import type { ExchangeTimeouts } from "../upstream/exchange.ts";
import { failureLabel, isCredentialRefusal, type UpstreamFailure } from "../upstream/failure.ts";
import type { LiveStream } from "../upstream/relay.ts";
import { type AttemptOutcome, countFailure, type Sender } from "../upstream/send.ts";
import type { BackendWatch, RequestContext } from "./context.ts";
import { goesOnExactly } from "./exact-continuation.ts";
import type { RequestReporter } from "./observe.ts";
import { decideRetry, retrySettingsFor } from "./retry.ts";

export interface ForwardRequest extends RequestSummary {
  /** What the client asked for, in the format it speaks. */
  operation: Operation;
  /** In the client's format. */
  body: RequestBody;
  /** The model's name as the client wrote it; `model` is the one that is asked now. */
  askedModel: string;
  /** The format of the answer, where it is not the one of the operation. */
  client?: ClientProtocol;
  /** What a backend is asked for instead of the body; goes with `client`. */
  neutral?: GenerationRequest;
  /** The backend that holds what the request refers to; asked first while it is available. */
  prefer?: string | undefined;
  /** Told of a complete answer that was translated. */
  answered?: ((result: GenerationResult, context: AnswerContext) => void) | undefined;
  /**
   * The last turn is the beginning of the answer: only backends are asked that go on exactly behind it
   * (exact-continuation.ts).
   */
  goesOn?: boolean;
  /** Factor of all timeouts; 1 for the model that was asked for. */
  patience: number;
  /** Backends that are asked only when no other is left, because this request has failed there already. */
  avoid: ReadonlySet<string>;
  /** As in RoutedRequest. */
  refusedBy?: ReadonlySet<string>;
}

/** A request as one backend gets it. */
export interface Prepared {
  operation: Operation;
  body: Uint8Array;
  /** Where the operation's usual path is not the right one. */
  path?: string;
  headers?: Readonly<Record<string, string>>;
  translation?: Translation;
  /** The gateway asked for the counts of the stream, not the client. */
  hidesUsage?: boolean;
  /** What is changed in an answer that passes. */
  passed?: PassedAnswer | undefined;
}

/** Puts a request into the format of a backend. */
export interface Bridge {
  /** Throws GatewayError 400 for what the backend's format cannot say. */
  prepare(context: RequestContext, request: ForwardRequest, backend: Backend): Prepared | Promise<Prepared>;
}

/** `entry` is the backend of the last attempt. */
export type ForwardResult = { entry: BackendEntry } & (
  | {
      kind: "plain";
      body: Uint8Array;
      contentType: string;
      headers: Record<string, string>;
      itemIds?: readonly string[] | undefined;
    }
  | { kind: "stream"; live: LiveStream; headers: Record<string, string> }
  /** `retryAfterMs` is the soonest that any attempt was told. */
  | { kind: "failed"; failure: UpstreamFailure; retryAfterMs?: number | undefined }
);

export interface Forwarder {
  /** Whether a backend that is not among the avoided ones could take a request for the model now. */
  hasOther(request: Pick<ForwardRequest, "model" | "operation" | "goesOn">, avoid: ReadonlySet<string>): boolean;
  /** Whether several backends serve a model, now or at other times. */
  hasPool(model: string): boolean;
  /**
   * Throws GatewayError when no backend can take the request at all. In a hurry, because another model can answer, it
   * does not wait for the outcome of a half-open circuit's trials.
   */
  forward(context: RequestContext, request: ForwardRequest, inHurry?: boolean): Promise<ForwardResult>;
}

/** How long a request waits for requests that try its backend after failures, and how many may wait in all. */
export const MAX_TRIAL_WAIT_MS = 5_000;
export const MAX_TRIAL_WAITERS = 256;

/** The part of the rate limiter that concerns backends. */
export type BackendLimits = Pick<Limiter, "backendHasRoom" | "takeBackend" | "backendRefusal">;

export interface ForwarderParts {
  watch: BackendWatch;
  strategy: SelectionStrategy;
  circuits: Circuits;
  limits: BackendLimits;
  sender: Sender;
  bridge: Bridge;
  log: Logger;
  /** Whoever counts attempts. */
  attempted?: RequestReporter["attempted"];
  now(): number;
  random(): number;
  /** Waits, or returns at once when the signal aborts. */
  delay?(durationMs: number, signal: AbortSignal): Promise<void>;
}

/** An attempt that was begun: what there is to say of it when it is over. */
interface Attempt {
  entry: BackendEntry;
  startedAtMs: number;
  step: AttemptStep | undefined;
}

export function createForwarder(parts: ForwarderParts): Forwarder {
  const {
    watch,
    strategy,
    circuits,
    limits,
    sender,
    bridge,
    log,
    attempted,
    now,
    random,
    delay = abortableDelay,
  } = parts;

  const router = createRouter({ strategy, circuits, limits });
  let trialWaiters = 0;

  /** The right to send one request to a backend: a permit of its circuit, and a token of its limit. */
  function admit(backendName: string): Permit | undefined {
    const permit = circuits.acquire(backendName);
    if (permit === undefined || limits.takeBackend(backendName)) return permit;
    permit.settle("neutral");
    return undefined;
  }

  function choose(context: RequestContext, request: ForwardRequest, tried: ReadonlySet<string>): Admitted | undefined {
    const query: SelectionQuery = {
      sessionKey: () => sessionKey(context, request),
      random,
      nowMs: now(),
      isRetry: tried.size > 0,
    };
    return router.choose(candidatesFor(request), request, tried, query, admit, context.record.story !== undefined);
  }

  /** The board is read anew for every attempt: a backend that has gone down since is not asked again. */
  function candidatesFor({
    model,
    operation,
    goesOn,
  }: Pick<ForwardRequest, "model" | "operation" | "goesOn">): readonly BackendEntry[] {
    const candidates = watch.board.candidates(model);
    return goesOn ? candidates.filter(({ backend }) => goesOnExactly(backend, operation, model)) : candidates;
  }

  function refusal({ caller }: RequestContext, request: ForwardRequest): Error {
    const willing = watch.board
      .candidates(request.model)
      .filter((entry) => hasOperation(entry, request.operation) && circuits.allows(entry.backend.name));
    const full = limits.backendRefusal(willing.map(({ backend }) => backend.name));
    if (willing.length > 0 && full !== undefined) return new RateLimitError(full);
    const { board } = watch;
    const absenceOf = (name: string) => watch.absenceOf(name);
    const { model, operation } = request;
    return noBackendError({ board, circuits, absenceOf, model, operation, allowsModel: caller?.allowsModel });
  }

  /** The first choice when the model has no candidate: waits for the first checks, and asks for a model that seems unknown. */
  async function chooseCold(context: RequestContext, request: ForwardRequest): Promise<Admitted | undefined> {
    await orAborted(watch.firstChecks, context.signal);
    if (context.signal.aborted) throw clientLeft();
    const admitted = choose(context, request, request.avoid);
    if (admitted !== undefined || !watch.board.entries.some((entry) => entry.available)) return admitted;
    await orAborted(watch.refreshModels(), context.signal);
    if (context.signal.aborted) throw clientLeft();
    return choose(context, request, request.avoid);
  }

  /**
   * A choice when nobody may be asked, but some backend is being tried after failures: the outcome is near, and may
   * spare the client a refusal. Undefined when there is nothing to wait for, or none of it helped.
   */
  async function chooseAfterTrial(
    context: RequestContext,
    request: ForwardRequest,
    tried: ReadonlySet<string>,
    deadlineMs: number,
  ): Promise<Admitted | undefined> {
    if (trialWaiters >= MAX_TRIAL_WAITERS) return undefined;
    const untilMs = Math.min(now() + MAX_TRIAL_WAIT_MS, deadlineMs);
    trialWaiters++;
    try {
      for (;;) {
        const ends = trialEnds(request);
        const leftMs = untilMs - now();
        if (ends.length === 0 || leftMs <= 0) return undefined;
        const ended = new AbortController();
        void Promise.race(ends).then(() => ended.abort());
        await delay(leftMs, AbortSignal.any([context.signal, ended.signal]));
        if (context.signal.aborted) throw clientLeft();
        // Everyone who waits is woken; whoever finds no place waits on.
        const admitted = choose(context, request, tried);
        if (admitted !== undefined) return admitted;
      }
    } finally {
      trialWaiters--;
    }
  }

  function askableBackends(request: ForwardRequest): BackendEntry[] {
    const { operation, refusedBy } = request;
    return candidatesFor(request).filter(
      (entry) => !refusedBy?.has(entry.backend.name) && router.mayAsk(entry, operation),
    );
  }

  /** None when a circuit would let the request through: then a rate limit refuses it, and says until when. */
  function trialEnds({ model, operation }: ForwardRequest): Promise<void>[] {
    const names = watch.board
      .candidates(model)
      .filter((entry) => hasOperation(entry, operation))
      .map(({ backend }) => backend.name);
    if (names.some((name) => circuits.allows(name))) return [];
    return names.map((name) => circuits.trialEnd(name)).filter((end) => end !== undefined);
  }

  async function attempt(
    context: RequestContext,
    request: ForwardRequest,
    { entry, permit, told, scoreMeans }: Admitted,
    timeouts: ExchangeTimeouts,
  ): Promise<{ outcome: AttemptOutcome; begun: Attempt }> {
    const { record, clientHeaders, trace, signal, settings } = context;
    record.attempts++;
    record.backend = entry.backend.name;
    const step = record.story?.attempt(
      entry.backend.name,
      request.model,
      scoreMeans === undefined ? undefined : settings.routing.selection_strategy,
      told,
      scoreMeans,
    );
    const begun: Attempt = { entry, startedAtMs: now(), step };
    try {
      const { model, stream, choices } = request;
      const preparing = bridge.prepare(context, request, entry.backend);
      const prepared = preparing instanceof Promise ? await preparing : preparing;
      const outgoing = { ...prepared, model, stream, choices, clientHeaders, trace, signal, timeouts };
      const outcome = await sender.send(entry, outgoing, settings);
      if (outcome.ok && outcome.kind === "plain" && outcome.usage !== undefined) record.usage = outcome.usage;
      if (step !== undefined) step.firstByteMs = outcome.firstByteMs;
      if (!outcome.ok) attemptEnded(context, begun, outcome.failure);
      else if (outcome.kind === "plain") attemptEnded(context, begun, undefined);
      if (!outcome.ok) permit.settle(circuits.outcomeOf(entry.backend.name, outcome.failure));
      // A trial that streams has shown what it was to show; others need its place before it ends.
      else if (outcome.kind === "plain" || permit.isProbe) permit.settle("success");
      return { outcome, begun };
    } catch (error) {
      if (step !== undefined) {
        step.durationMs = now() - begun.startedAtMs;
        step.failure = "not_sent"; // the backend's format cannot say what is asked
      }
      permit.settle("neutral");
      throw error;
    }
  }

  /** An answer is over, or an attempt without one. `firstTokenMs` is known of streams. */
  function attemptEnded(
    { record }: RequestContext,
    { entry, startedAtMs, step }: Attempt,
    failure: UpstreamFailure | undefined,
    firstTokenMs?: number,
  ): void {
    const durationMs = now() - startedAtMs;
    record.backendMs = (record.backendMs ?? 0) + durationMs;
    attempted?.(entry.backend.name, failure, durationMs, firstTokenMs);
    if (step === undefined) return;
    step.durationMs = durationMs;
    step.status = failure === undefined ? 200 : failure.kind === "status" ? failure.status : step.status;
    step.failure = failure === undefined ? undefined : failureLabel(failure);
  }

  function toResult(
    context: RequestContext,
    outcome: Extract<AttemptOutcome, { ok: true }>,
    begun: Attempt,
    permit: Permit,
  ): ForwardResult {
    const { record } = context;
    const { headers, firstByteMs } = outcome;
    const { entry, step } = begun;
    if (outcome.kind === "plain") {
      const { body, contentType, itemIds } = outcome;
      return { kind: "plain", entry, body, contentType, headers, itemIds };
    }
    const { stream, exchange, reader } = outcome;
    if (step !== undefined) step.status = 200;
    function finished(failure: UpstreamFailure | undefined): void {
      const { usage } = reader;
      if (usage !== undefined) record.usage = usage;
      permit.settle(circuits.outcomeOf(entry.backend.name, failure));
      attemptEnded(context, begun, failure, firstByteMs);
      if (failure === undefined) return;
      countFailure(entry, failure);
      if (failure.kind === "reset") watch.suspect(entry.backend.name);
    }
    return { kind: "stream", entry, headers, live: { stream, exchange, reader, finished } };
  }

  return {
    hasOther(request, avoid) {
      const isOther = (entry: BackendEntry) =>
        !avoid.has(entry.backend.name) && router.mayAsk(entry, request.operation);
      return candidatesFor(request).some(isOther);
    },
    hasPool: (model) => watch.board.serving(model).length > 1,
    async forward(context, asked, inHurry = false) {
      let request = asked;
      const { settings, record } = context;
      const timeouts = exchangeTimeouts(settings, request, context.startedAtMs);
      const { requestDeadlineMs } = timeouts;
      let admitted = choose(context, request, request.avoid);
      if (admitted === undefined && watch.board.candidates(request.model).length === 0) {
        admitted = await chooseCold(context, request);
      }
      let tried: Set<string> | undefined;
      let retryAfterMs: number | undefined;
      let counted = 0;
      for (;;) {
        if (admitted === undefined && !inHurry) {
          admitted = await chooseAfterTrial(context, request, tried ?? request.avoid, requestDeadlineMs);
        }
        if (admitted === undefined) throw refusal(context, request);
        const { entry, permit } = admitted;
        const { outcome, begun } = await attempt(context, request, admitted, timeouts);
        if (outcome.ok) return toResult(context, outcome, begun, permit);

        const { failure } = outcome;
        const { name } = entry.backend;
        record.failure = failureLabel(failure);
        if (failure.kind === "status" && failure.retryAfterMs !== undefined) {
          retryAfterMs = Math.min(failure.retryAfterMs, retryAfterMs ?? Number.POSITIVE_INFINITY);
        }
        const notConnected = failure.kind === "connect" || (failure.kind === "timeout" && failure.phase === "connect");
        if (notConnected || failure.kind === "reset") watch.suspect(name);
        if (failure.kind === "status" && isCredentialRefusal(failure)) {
          const { status } = failure;
          log.warn({ request_id: context.id, backend: name, status }, `${name}: ${statusText(entry.backend, status)}`);
          request = { ...request, refusedBy: new Set(request.refusedBy).add(name) };
        }

        tried = (tried ?? new Set(request.avoid)).add(name);
        const left = askableBackends(request);
        const untriedLeft = left.some((other) => !tried?.has(other.backend.name));
        const costsNothing = notConnected || isCredentialRefusal(failure);
        if (!costsNothing || !untriedLeft) counted++;
        const retry = retrySettingsFor(entry, settings.retry);
        const decision = decideRetry({ failure, attempts: counted, untriedLeft, retry, random });
        if (left.length === 0 || !decision.again || now() + decision.waitMs >= requestDeadlineMs) {
          return { kind: "failed", failure, retryAfterMs, entry };
        }
        const { waitMs } = decision;
        log.debug(
          { request_id: context.id, backend: name, failure: record.failure, wait_ms: waitMs },
          "attempt failed, trying again",
        );
        if (waitMs > 0) {
          const { story } = record;
          story?.add({ kind: "wait", atMs: story.sinceStartMs, durationMs: waitMs, reason: "retry" });
          await delay(waitMs, context.signal);
          if (context.signal.aborted) return { kind: "failed", failure: { kind: "aborted" }, entry };
        }
        // While waiting a backend may have come up or gone down, or have been taken out of service.
        admitted = choose(context, request, tried);
        if (admitted === undefined) {
          if (entry.counters.onIdle !== undefined || request.refusedBy?.has(name))
            return { kind: "failed", failure, entry };
          const again = admit(name);
          if (again !== undefined) admitted = { entry, permit: again };
        }
      }
    },
  };
}

/** What keeps a conversation on one backend: the configured header, the client's own fields, else who the client is. */
function sessionKey(context: RequestContext, request: ForwardRequest): string {
  const { header } = context.settings.routing.session_affinity;
  return (
    context.clientHeaders.get(header) ??
    request.affinity(request.body.value) ??
    context.caller?.keyId ??
    context.peerAddress() ??
    context.id
  );
}

function exchangeTimeouts(
  { timeouts }: Settings,
  { model, patience }: ForwardRequest,
  startedAtMs: number,
): ExchangeTimeouts {
  const own = Object.hasOwn(timeouts.models, model) ? timeouts.models[model] : undefined;
  return {
    connectMs: timeouts.connect,
    firstByteMs: (own?.first_byte ?? timeouts.first_byte) * patience,
    betweenChunksMs: (own?.between_chunks ?? timeouts.between_chunks) * patience,
    requestDeadlineMs: startedAtMs + (own?.request ?? timeouts.request) * patience,
  };
}
