// One model's request on its way: attempt, retry, hand the answer on.

import type { BackendEntry } from "../backends/board.ts";
import { statusText } from "../backends/control-request.ts";
import { drawsPictures } from "../backends/operations.ts";
import { BudgetError } from "../budgets/refusal.ts";
import type { Settings } from "../config/sections/registry.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";
import type { Logger } from "../logging/logger.ts";
import { spellingsOfModel } from "../names.ts";
import type { Admitted } from "../routing/router.ts";
import type { ExchangeTimeouts } from "../upstream/exchange.ts";
import { failureLabel, isCredentialRefusal, type UpstreamFailure } from "../upstream/failure.ts";
import { type AttemptParts, attempt, type ForwardResult } from "./attempt.ts";
import { type CandidateQuery, type CandidatesParts, createCandidates } from "./candidates.ts";
import type { RequestContext } from "./context.ts";
import type { MediaFit } from "./media-fit.ts";
import type { ModelRequest } from "./model-request.ts";
import { NOBODY_LEFT, OUT_OF_TIME, retrySettingsFor, waitBeforeRetry } from "./retry.ts";

export type Forwarder = ReturnType<typeof createForwarder>;

type ForwarderParts = CandidatesParts & AttemptParts & { media?: MediaFit | undefined; log: Logger };

export function createForwarder(parts: ForwarderParts) {
  const { watch, media, log, now, random, delay = abortableDelay } = parts;
  const candidates = createCandidates(parts);

  /** What is learnt of a backend that failed: the request as it goes on. */
  function learn(context: RequestContext, request: ModelRequest, { entry, failure }: FailedResult): ModelRequest {
    const { name } = entry.backend;
    context.record.lastFailure = failureLabel(failure);
    if (isUnreachable(failure) || failure.kind === "reset") watch.suspect(name);
    if (failure.kind !== "status") return request;
    const { status, lacks } = failure;
    if (lacks !== undefined) media?.refused(entry, request, lacks);
    else if (!isCredentialRefusal(failure)) return request;
    else log.warn({ request_id: context.id, backend: name, status }, `${name}: ${statusText(entry.backend, status)}`);
    return { ...request, refusedBy: new Set(request.refusedBy).add(name) };
  }

  /** Whether one of these is known to take what the model of another backend lacks. */
  function isTakenBy(untried: readonly BackendEntry[], request: ModelRequest, failure: UpstreamFailure): boolean {
    if (failure.kind !== "status" || failure.lacks === undefined) return false;
    return untried.some((entry) => media?.takesAll(entry, request) === true);
  }

  /** Another backend, or the one that has failed; undefined where neither can be asked now. */
  async function nextOrAgain(
    context: RequestContext,
    request: ModelRequest,
    tried: ReadonlySet<string>,
    entry: BackendEntry,
  ): Promise<Admitted | undefined> {
    const next = await candidates.choose(context, request, tried);
    if (next !== undefined || !mayAskAgain(request, entry)) return next;
    const again = await candidates.admit(context, request, entry.backend.name);
    return again && { entry, ...again };
  }

  return {
    /** Whether a backend that is not among the avoided ones could take a request for the model now. */
    hasOther: (asked: CandidateQuery, avoid: ReadonlySet<string>) =>
      candidates.askable(asked).some(({ backend }) => !avoid.has(backend.name)),
    /** Whether several backends serve a model, now or at other times. */
    hasPool: (model: string) => watch.board.serving(model).length > 1,
    /**
     * Throws GatewayError when no backend can take the request at all. In a hurry, because another model can answer, it
     * does not wait for the outcome of a half-open circuit's trials.
     */
    async forward(context: RequestContext, asked: ModelRequest, inHurry = false): Promise<ForwardResult> {
      const { settings, record } = context;
      // The wait in the queue has a limit of its own.
      const timeoutsNow = () => exchangeTimeouts(settings, asked, record.startedAtMs + record.queuedMs);
      let request = asked;
      const chosen = candidates.choose(context, request, request.avoid);
      let admitted = chosen instanceof Promise ? await chosen : chosen;
      admitted ??= await candidates.chooseCold(context, request);
      let tried: Set<string> | undefined;
      let retryAfterMs: number | undefined;
      let counted = 0;
      for (;;) {
        if (admitted === undefined && !inHurry) {
          admitted = await candidates.chooseAmongFailing(
            context,
            request,
            tried ?? request.avoid,
            timeoutsNow().requestDeadlineMs,
          );
        }
        if (admitted === undefined) throw candidates.refusal(context, request);
        const timeouts = timeoutsNow();
        let result: ForwardResult;
        try {
          result = await attempt(parts, context, request, admitted, timeouts);
        } catch (error) {
          // What this backend may cost is spent: another one may be paid by another budget.
          if (!(error instanceof BudgetError) || !error.refusal.namesBackend) throw error;
          const { name } = admitted.entry.backend;
          tried = (tried ?? new Set(request.avoid)).add(name);
          request = { ...request, refusedBy: new Set(request.refusedBy).add(name) };
          admitted = await candidates.choose(context, request, tried);
          if (admitted === undefined) throw error;
          continue;
        }
        if (result.kind !== "failed") return result;

        const { entry, failure } = result;
        const { name } = entry.backend;
        request = learn(context, request, result);
        if (failure.kind === "status" && failure.retryAfterMs !== undefined) {
          retryAfterMs = Math.min(failure.retryAfterMs, retryAfterMs ?? Number.POSITIVE_INFINITY);
        }
        tried = (tried ?? new Set(request.avoid)).add(name);
        let left = candidates.askable(request);
        if (left.length === 0 && !inHurry) left = candidates.heldBack(request, tried);
        const untried = left.filter((other) => !tried?.has(other.backend.name));
        const costsNothing = isUnreachable(failure) || isCredentialRefusal(failure);
        if (!costsNothing || untried.length === 0) counted++;
        const retry = retrySettingsFor(entry, settings.retry);
        const waitMs = waitBeforeRetry({
          failure,
          isTakenElsewhere: isTakenBy(untried, request, failure),
          attempts: counted,
          untriedLeft: untried.length > 0,
          retry,
          random,
        });
        const isLate = typeof waitMs === "number" && now() + waitMs >= timeouts.requestDeadlineMs;
        if (left.length === 0 || typeof waitMs === "string" || isLate) {
          record.lastRule = typeof waitMs === "string" ? waitMs : left.length === 0 ? NOBODY_LEFT : OUT_OF_TIME;
          return { ...result, retryAfterMs };
        }
        log.debug(
          { request_id: context.id, backend: name, failure: record.lastFailure, wait_ms: waitMs },
          "attempt failed, trying again",
        );
        if (waitMs > 0) {
          record.add({ kind: "wait", durationMs: waitMs, reason: "retry" });
          await delay(waitMs, context.client.signal);
        }
        if (context.client.signal.aborted) return { kind: "failed", failure: { kind: "aborted" }, entry };
        // While waiting a backend may have come up or gone down, or have been taken out of service.
        admitted = await nextOrAgain(context, request, tried, entry);
        if (admitted === undefined && !mayAskAgain(request, entry)) {
          record.lastRule = NOBODY_LEFT;
          return { kind: "failed", failure, entry };
        }
      }
    },
  };
}

/** It was not taken out of service, and has not refused the gateway's credential. */
function mayAskAgain({ refusedBy }: ModelRequest, { backend, counters }: BackendEntry): boolean {
  return counters.onIdle === undefined && !refusedBy?.has(backend.name);
}

type FailedResult = Extract<ForwardResult, { kind: "failed" }>;

/** The request cannot have reached the model. */
function isUnreachable(failure: UpstreamFailure): boolean {
  return failure.kind === "connect" || (failure.kind === "timeout" && failure.phase === "connect");
}

function exchangeTimeouts(
  { timeouts }: Settings,
  { operation, model, patience }: ModelRequest,
  startedAtMs: number,
): ExchangeTimeouts {
  const isPicture = drawsPictures(operation);
  const name = isPicture ? spellingsOfModel(model).find((spelling) => Object.hasOwn(timeouts.models, spelling)) : model;
  const own = name !== undefined && Object.hasOwn(timeouts.models, name) ? timeouts.models[name] : undefined;
  const ofPictures = isPicture ? timeouts.image_generation : undefined;
  return {
    connectMs: timeouts.connect,
    firstByteMs: (own?.first_byte ?? ofPictures ?? timeouts.first_byte) * patience,
    betweenChunksMs: (own?.between_chunks ?? ofPictures ?? timeouts.between_chunks) * patience,
    requestDeadlineMs: startedAtMs + (own?.request ?? ofPictures ?? timeouts.request) * patience,
    ...(ofPictures !== undefined && { standIn: own === undefined ? "image_generation" : "models" }),
  };
}
