// The switch in the middle of a stream: when a backend breaks off, another one of the model goes on exactly where it
// stopped, or one of the model or its fallback chain takes over as well as it can, and the client sees one answer.

import { formatOf } from "../backends/operations.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import type { RouteTarget } from "../model-routes/routes.ts";
import { clientProtocol, streamJoin } from "../protocols/registry.ts";
import { type JoinMode, prefillOf, type SentText } from "../protocols/seam.ts";
import { goingOn, type SentAnswer, sentEvents } from "../protocols/stream-join.ts";
import { failureLabel } from "../upstream/failure.ts";
import { discard, type LiveStream, type Takeover } from "../upstream/relay.ts";
import type { RequestContext } from "./context.ts";
import { canBeContinued } from "./exact-continuation.ts";
import { type FallbackChains, type FallbackResult, triggerOf } from "./fallback.ts";
import type { Forwarder } from "./forward.ts";
import { type ModelRequest, NO_BACKENDS, onlyBackend } from "./model-request.ts";
import { forTarget } from "./routes.ts";

export interface MidStreamParts {
  forwarder: Forwarder;
  chains: FallbackChains;
  log: Logger;
}

/** In what a request for the rest of an answer differs from the first one. */
interface RestRequest {
  /** Members of the body. */
  changes?: JsonObject;
  /** What is asked for instead of the body. */
  neutral?: GenerationRequest;
}

/** What the client has seen of an answer that broke off, and how the rest of it is asked for. */
interface SeenAnswer extends SentText, Pick<SentAnswer, "encoder"> {
  /** With what was sent as the beginning of the model's turn; undefined where the request has no place for it. */
  goOn(request: ModelRequest): RestRequest | undefined;
}

/** How an answer is continued in the format of its reader. */
export interface Joint {
  /** Undefined when nothing can be joined to what was sent. */
  readSent(sent: readonly Uint8Array[]): SeenAnswer | undefined;
  /** With the text as the model's own turn, and the prompt to go on; undefined for a format that knows no turns. */
  askForRest(request: ModelRequest, text: string, prompt: string): RestRequest | undefined;
}

/** For a client that reads a format. */
function jointOf(format: string | undefined): Joint | undefined {
  const join = streamJoin(format);
  return (
    join && {
      readSent(sent) {
        const seen = join.readSent(sentEvents(sent));
        return seen && { ...seen, goOn: ({ body }) => asChanges(seen.askToGoOn(body.value)) };
      },
      askForRest: ({ body }, text, prompt) => asChanges(join.askForRest(body.value, text, prompt)),
    }
  );
}

function asChanges(changes: JsonObject | undefined): RestRequest | undefined {
  return changes && { changes };
}

/** A model that may take over, and what it is asked. */
interface Way extends RestRequest {
  target: RouteTarget;
  mode: JoinMode;
  goesOn: boolean;
}

/** A shared call tells its result to other processes, so that a target may come back as a copy. */
function isSame(target: RouteTarget, other: RouteTarget): boolean {
  return target.model === other.model && target.backend === other.backend && armsOf(target) === armsOf(other);
}

function armsOf({ arms }: RouteTarget): string {
  return arms.map(({ route, arm }) => `${route}\n${arm}`).join("\n");
}

/**
 * Undefined when no backend may take over: neither a chain nor another backend of the model, several choices, or a format
 * whose streams cannot be joined.
 * @param ownJoint - for a reader that has no format; left out: that of the client
 */
export function takeoverFor(
  { forwarder, chains, log }: MidStreamParts,
  context: RequestContext,
  request: ModelRequest,
  first: FallbackResult,
  ownJoint?: Joint,
): Takeover | undefined {
  const { fallback_policy } = context.settings.fallback;
  const { mid_stream_fallback } = context.settings.streaming;
  const targets = chains.targetsOf(context, request);
  const hasOthers = targets.length > 1;
  const hasPool = mid_stream_fallback.exact_continuation && forwarder.hasPool(first.model);
  const { asking } = request;
  const format = asking.client?.name ?? formatOf(request.operation);
  const joint = ownJoint ?? jointOf(format);
  if ((!hasOthers && !hasPool) || format === undefined || joint === undefined || request.choices !== 1) {
    return undefined;
  }
  const client = asking.client ?? clientProtocol(format);
  const failed = new Set<string>();
  const begun = first.target ?? targets.find(({ model }) => model === first.model) ?? (targets[0] as RouteTarget);
  let current = { target: begun, backend: first.entry.backend.name };
  let switches = 0;

  const requestFor = (target: RouteTarget) =>
    isSame(target, targets[0] as RouteTarget) ? request : forTarget(request, target);

  /** Another backend of the present model, which goes on without a seam. */
  function exactWay(sent: SeenAnswer): Way | undefined {
    if (!hasPool) return undefined;
    const { target } = current;
    if (prefillOf(sent.text) === "") {
      // No text was sent: a new answer repeats nothing. A chain asks for a new answer anyway.
      return hasOthers ? undefined : { target, mode: "exact", goesOn: false };
    }
    if (!mayGoOn()) return undefined;
    const rest = sent.goOn(requestFor(target));
    return rest && { ...rest, target, mode: "exact", goesOn: true };
  }

  function mayGoOn(): boolean {
    try {
      return canBeContinued(asking.neutral ?? client.decodeRequest(request.body.value));
    } catch {
      return false; // a body that only its backend understands
    }
  }

  /** The model itself, or one that stands in for it. */
  function wayOfChain(target: RouteTarget, { askForRest }: Joint, { text }: SeenAnswer): Way {
    const { enabled, continuation_prompt } = mid_stream_fallback;
    const rest = enabled && text.trim() !== "" ? askForRest(requestFor(target), text, continuation_prompt) : undefined;
    return { ...rest, target, mode: rest === undefined ? "restarted" : "continued", goesOn: false };
  }

  /** From the present model onwards along the chain. */
  function waysOn(joint: Joint, sent: SeenAnswer): Way[] {
    const { operation } = request;
    const isOpen = ({ target: { model, backend }, ...way }: Way, avoid: ReadonlySet<string>) =>
      forwarder.hasOther({ ...way, model, operation, onlyAt: onlyBackend(backend) }, avoid);
    const exact = exactWay(sent);
    const rest = hasOthers ? targets.slice(targets.findIndex((target) => isSame(target, current.target))) : [];
    const ways = rest.map((target) => wayOfChain(target, joint, sent));
    if (exact !== undefined && isOpen(exact, NO_BACKENDS)) ways.unshift(exact);
    const withOthers = ways.filter((way) => isOpen(way, failed));
    // A backend that failed in this very request is better than an error: it may have come back.
    return [...withOthers, ...ways.filter((way) => !withOthers.includes(way))];
  }

  /** The first stream that another backend begins. */
  async function openNext(joint: Joint, sent: SeenAnswer): Promise<LiveStream | undefined> {
    for (const { target, changes, neutral, mode, goesOn } of waysOn(joint, sent)) {
      const rest = goingOn(client, sent, mode);
      const asked = requestFor(target);
      const own = neutral ?? asked.asking.neutral;
      const attempt: ModelRequest = {
        ...asked,
        goesOn,
        takesOver: true,
        body: changes === undefined ? asked.body : asked.body.with(changes),
        patience: request.patience * fallback_policy.fallback_timeout_multiplier,
        avoid: failed,
        answered: undefined, // it would be called with the second part alone
        asking: rest === undefined ? asked.asking : { kind: "rest", neutral: own, client: rest },
      };
      const result = await forwarder.forward(context, attempt, true).catch((error: unknown) => {
        if (!(error instanceof GatewayError)) log.error({ request_id: context.id, err: error }, "unexpected error");
        return undefined; // no backend any more
      });
      if (context.client.signal.aborted) {
        if (result?.kind === "stream") discard(result.live);
        return undefined;
      }
      if (result?.kind !== "stream") continue;
      current = { target, backend: result.entry.backend.name };
      return result.live;
    }
    return undefined;
  }

  return {
    get hasHappened() {
      return switches > 0;
    },
    async continueAfter(failure, sent) {
      const { record } = context;
      function noSuccessor(rule: string): undefined {
        record.lastRule = rule;
      }
      failed.add(current.backend);
      const { max_fallback_attempts: most, trigger_conditions } = fallback_policy;
      if (switches >= most) return noSuccessor(`fallback.fallback_policy.max_fallback_attempts is ${most}`);
      if (triggerOf(failure, trigger_conditions) === undefined) {
        return noSuccessor(`${failureLabel(failure)} is none of fallback.fallback_policy.trigger_conditions`);
      }
      const seen = joint.readSent(sent);
      if (seen === undefined) return noSuccessor("nothing can be joined to the part that the client had");
      const from = current;
      const next = await openNext(joint, seen);
      if (next === undefined)
        return noSuccessor("no other backend and no model of the chain could go on with the stream");
      switches++;
      const { model } = current.target;
      if (model !== request.model) record.standIn(model);
      if (request.routed !== undefined && !isSame(from.target, current.target)) {
        record.failArms(from.target.arms);
        record.askArms(current.target.arms);
      }
      const reason = failureLabel(failure);
      record.add({ kind: "takeover", from: from.backend, to: current.backend, reason });
      log.warn(
        {
          request_id: context.id,
          failure: reason,
          from_backend: from.backend,
          from_model: from.target.model,
          backend: current.backend,
          model,
        },
        "a stream broke off, another backend took over",
      );
      return next;
    },
  };
}
