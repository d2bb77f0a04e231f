// The way of a request through the house, top to bottom: find backends, attempt, retry, hand the answer on.

import type { BackendEntry } from "../backends/board.ts";
import type { Operation } from "../backends/kinds.ts";
import type { Settings } from "../config/sections/registry.ts";
import { abortableDelay } from "../lib/abortable-delay.ts";
import type { Logger } from "../logging/logger.ts";
import type { RequestSummary } from "../protocols/request-summary.ts";
import { noBackendError, selectBackend } from "../routing/router.ts";
import type { SelectionQuery, SelectionStrategy } from "../routing/strategy.ts";
import type { ExchangeTimeouts } from "../upstream/exchange.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import type { AttemptOutcome, Sender } from "../upstream/send.ts";
import type { BackendWatch, RequestContext } from "./context.ts";
import { decideRetry, retrySettingsFor } from "./retry.ts";

export interface ForwardRequest extends RequestSummary {
  operation: Operation;
  /** The client's own bytes, which go to the backend as they are. */
  body: Uint8Array;
}

export type ForwardResult =
  | (Extract<AttemptOutcome, { ok: true }> & { entry: BackendEntry })
  /** `entry` is the backend of the last attempt. */
  | { ok: false; failure: UpstreamFailure; entry: BackendEntry };

export interface Forwarder {
  /** Throws GatewayError when no backend can take the request at all. */
  forward(context: RequestContext, request: ForwardRequest): Promise<ForwardResult>;
}

export interface ForwarderParts {
  watch: BackendWatch;
  strategy: SelectionStrategy;
  sender: Sender;
  log: Logger;
  now(): number;
  random(): number;
}

const NONE_TRIED: ReadonlySet<string> = new Set();

export function createForwarder({ watch, strategy, sender, log, now, random }: ForwarderParts): Forwarder {
  function choose(
    context: RequestContext,
    request: ForwardRequest,
    tried: ReadonlySet<string>,
  ): BackendEntry | undefined {
    const query: SelectionQuery = {
      sessionKey: () => request.affinity ?? context.caller?.keyId ?? context.peerAddress() ?? context.id,
      random,
      nowMs: now(),
    };
    // The board is read anew for every attempt: a backend that has gone down since is not asked again.
    return selectBackend(watch.board.candidates(request.model), request.operation, tried, strategy, query);
  }

  /** The first choice of a request; waits for the first checks and asks for an unknown model before it gives up. */
  async function chooseCold(context: RequestContext, request: ForwardRequest): Promise<BackendEntry> {
    await watch.firstChecks;
    let entry = choose(context, request, NONE_TRIED);
    if (entry === undefined && watch.board.entries.some((candidate) => candidate.available)) {
      await watch.refreshModels();
      entry = choose(context, request, NONE_TRIED);
    }
    if (entry === undefined) throw noBackendError(watch.board, request.model, request.operation);
    return entry;
  }

  return {
    async forward(context, request) {
      const { settings, record } = context;
      const timeouts = exchangeTimeouts(settings, request.model, context.startedAtMs);
      let entry = choose(context, request, NONE_TRIED) ?? (await chooseCold(context, request));
      let tried: Set<string> | undefined;
      let counted = 0;
      for (;;) {
        record.attempts++;
        record.backend = entry.backend.name;
        const outcome = await sender.send(
          entry,
          {
            operation: request.operation,
            model: request.model,
            stream: request.stream,
            body: request.body,
            clientHeaders: context.clientHeaders,
            trace: context.trace,
            signal: context.signal,
            timeouts,
          },
          settings,
        );
        if (outcome.ok) return { ...outcome, entry };

        const { failure } = outcome;
        const { name } = entry.backend;
        record.failure = failureLabel(failure);
        const notConnected = failure.kind === "connect" || (failure.kind === "timeout" && failure.phase === "connect");
        if (notConnected || failure.kind === "reset") watch.suspect(name);

        tried = (tried ?? new Set()).add(name);
        const next = choose(context, request, tried);
        const untriedLeft = next !== undefined && !tried.has(next.backend.name);
        if (!notConnected || !untriedLeft) counted++;
        const retry = retrySettingsFor(entry, settings.retry);
        const decision = decideRetry({ failure, attempts: counted, untriedLeft, retry, random });
        if (next === undefined || !decision.again || now() + decision.waitMs >= timeouts.requestDeadlineMs) {
          return { ok: false, failure, entry };
        }
        log.debug(
          {
            request_id: context.id,
            backend: name,
            failure: record.failure,
            next: next.backend.name,
            wait_ms: decision.waitMs,
          },
          "attempt failed, trying again",
        );
        if (decision.waitMs > 0) {
          await abortableDelay(decision.waitMs, context.signal);
          if (context.signal.aborted) return { ok: false, failure: { kind: "aborted" }, entry };
        }
        // While waiting a backend may have come up or gone down.
        entry = decision.waitMs > 0 ? (choose(context, request, tried) ?? next) : next;
      }
    },
  };
}

function exchangeTimeouts(settings: Settings, model: string, startedAtMs: number): ExchangeTimeouts {
  const { timeouts } = settings;
  const own = Object.hasOwn(timeouts.models, model) ? timeouts.models[model] : undefined;
  return {
    connectMs: timeouts.connect,
    firstByteMs: own?.first_byte ?? timeouts.first_byte,
    betweenChunksMs: own?.between_chunks ?? timeouts.between_chunks,
    requestDeadlineMs: startedAtMs + (own?.request ?? timeouts.request),
  };
}
