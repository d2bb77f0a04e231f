// The switch in the middle of a stream: when a backend breaks off, another one of the model or of its fallback chain
// takes over, and the client sees one answer.

import { formatOf } from "../backends/kinds.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { withMembers } from "../lib/json-members.ts";
import type { Logger } from "../logging/logger.ts";
import { backendProtocol, streamJoin } from "../protocols/registry.ts";
import type { SentAnswer, StreamJoin } from "../protocols/stream-join.ts";
import { failureLabel, toldFailure } from "../upstream/failure.ts";
import { type Continuation, discard, type Takeover } from "../upstream/relay.ts";
import type { RequestContext } from "./context.ts";
import { type FallbackChains, type FallbackResult, triggerOf } from "./fallback.ts";
import type { Forwarder, ForwardRequest } from "./forward.ts";

export interface MidStreamParts {
  forwarder: Forwarder;
  chains: FallbackChains;
  log: Logger;
}

/** Undefined when nobody may take over: no chain, several choices, or a format whose streams cannot be joined. */
export function takeoverFor(
  { forwarder, chains, log }: MidStreamParts,
  context: RequestContext,
  request: ForwardRequest,
  first: FallbackResult,
): Takeover | undefined {
  const chain = chains.chainOf(context, request.model);
  const format = request.client?.name ?? formatOf(request.operation);
  const join = streamJoin(format);
  if (chain.length === 0 || format === undefined || join === undefined || request.choices !== 1) return undefined;
  const { fallback_policy } = context.settings.fallback;
  const { mid_stream_fallback } = context.settings.streaming;
  const models = [request.model, ...chain];
  const failed = new Set<string>();
  let current = { model: first.model, backend: first.entry.backend.name };
  let switches = 0;

  /** The first stream that another backend begins, from the present model onwards along the chain. */
  async function openNext(
    { askForRest }: StreamJoin,
    sent: SentAnswer,
  ): Promise<{ model: string; continuation: Continuation } | undefined> {
    const goesOn = mid_stream_fallback.enabled && sent.text.trim() !== "";
    const rest = models.slice(models.indexOf(current.model));
    const withOthers = rest.filter((model) => forwarder.hasOther(model, request.operation, failed));
    // A backend that failed in this very request is better than an error: it may have come back.
    for (const model of [...withOthers, ...rest.filter((model) => !withOthers.includes(model))]) {
      const changes = goesOn
        ? { model, ...askForRest(request.value, sent.text, mid_stream_fallback.continuation_prompt) }
        : { model };
      const attempt: ForwardRequest = {
        ...request,
        model,
        body: withMembers(request.body, changes),
        value: { ...request.value, ...changes },
        patience: request.patience * fallback_policy.fallback_timeout_multiplier,
        avoid: failed,
        answered: undefined, // it would be told of the second part alone
      };
      const result = await forwarder.forward(context, attempt, true).catch((error: unknown) => {
        if (!(error instanceof GatewayError)) log.error({ request_id: context.id, err: error }, "unexpected error");
        return undefined; // no backend any more
      });
      if (context.signal.aborted) {
        if (result?.kind === "stream") discard(result.live);
        return undefined;
      }
      if (result?.kind !== "stream") continue;
      current = { model, backend: result.entry.backend.name };
      return { model, continuation: { live: result.live, splice: sent.joiner(goesOn ? "continued" : "restarted") } };
    }
    return undefined;
  }

  return {
    get hasHappened() {
      return switches > 0;
    },
    splitAtError(events) {
      const split = join.splitAtError(events);
      if (split === undefined) return undefined;
      const { before, error } = split;
      return { before, failure: toldFailure(backendProtocol(format).decodeError(200, { error })) };
    },
    async continueAfter(failure, sent) {
      failed.add(current.backend);
      if (switches >= fallback_policy.max_fallback_attempts) return undefined;
      if (triggerOf(failure, fallback_policy.trigger_conditions) === undefined) return undefined;
      const seen = join.readSent(sent);
      if (seen === undefined) return undefined;
      const from = current;
      const next = await openNext(join, seen);
      if (next === undefined) return undefined;
      switches++;
      const { record } = context;
      if (next.model !== request.model) record.fallbackModel = next.model;
      const { story } = record;
      const reason = failureLabel(failure);
      story?.add({ kind: "takeover", atMs: story.sinceStartMs, from: from.backend, to: current.backend, reason });
      log.warn(
        {
          request_id: context.id,
          failure: failureLabel(failure),
          from_backend: from.backend,
          from_model: from.model,
          backend: current.backend,
          model: next.model,
        },
        "a stream broke off, another backend took over",
      );
      return next.continuation;
    },
  };
}
