// Walks the targets of a route and the chain of a model: when the backends of one model cannot answer, the next model does.

import { BudgetError } from "../budgets/refusal.ts";
import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { RouteTarget } from "../model-routes/routes.ts";
import { spellingsOfModel } from "../names.ts";
import type { RequestRecord, RouteArm } from "../stats/request-record.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import type { ForwardResult } from "./attempt.ts";
import type { RequestContext } from "./context.ts";
import type { Forwarder } from "./forward.ts";
import type { ModelRequest } from "./model-request.ts";
import { forTarget } from "./routes.ts";
import type { VendorReader } from "./vendor-answer.ts";

interface FailureReason {
  model: string;
  /** e.g. "error_code_429", "timeout", "connection_error", "circuit_breaker_open", "no_backend_available", "unsupported_size". */
  reason: string;
}

export type FallbackResult = ForwardResult & {
  /** The model that answered. */
  model: string;
  /** What went before; empty when the model that was asked for has answered. */
  reasons: readonly FailureReason[];
  /** One of targetsOf(). */
  target?: RouteTarget;
};

export type FallbackChains = ReturnType<typeof createFallbackChains>;

const NO_MODELS: readonly string[] = [];
const NO_TARGETS: readonly RouteTarget[] = [];
/** A model's name is the client's text. */
const MAX_NAME_LENGTH = 256;
const MAX_RETRY_AFTER_SECONDS = 86_400;
/** The reason of a model that stands in because a budget is spent. */
const OVER_BUDGET = "budget";
const NO_REASONS: readonly FailureReason[] = [];
const NO_ARMS: readonly RouteArm[] = [];

export function createFallbackChains(forwarder: Forwarder, readVendorAnswer?: VendorReader) {
  /** The models that may stand in for a model, in order; empty without a chain. */
  function chainOf({ settings }: RequestContext, model: string): readonly string[] {
    const { enabled, fallback_chains, fallback_policy } = settings.fallback;
    if (!enabled) return NO_MODELS;
    const name = spellingsOfModel(model).find((spelling) => Object.hasOwn(fallback_chains, spelling));
    if (name === undefined) return NO_MODELS;
    return (fallback_chains[name] as string[]).slice(0, fallback_policy.max_fallback_attempts);
  }

  /**
   * The first answer along the chain. A client's own error is answered at once. Throws all_fallbacks_exhausted when a
   * chain exists and none of its models could answer, and a BudgetError where what the request may cost is spent.
   */
  async function walk(context: RequestContext, request: ModelRequest): Promise<FallbackResult> {
    const { vendorTurn } = context;
    if (vendorTurn?.answer !== undefined && !vendorTurn.isUsed && readVendorAnswer !== undefined) {
      return await readVendorAnswer(context, request, vendorTurn);
    }
    const targets = targetsOf(context, request);
    if (targets.length === 1) {
      let result: FallbackResult;
      try {
        result = (await forwarder.forward(context, request)) as FallbackResult;
      } catch (error) {
        return await standInFor(context, request, error);
      }
      if (result.kind === "failed") addRule(context, whyNoChain(context, request.model));
      result.model = request.model;
      result.reasons = NO_REASONS;
      return result;
    }
    const { fallback_policy } = context.settings.fallback;
    const reasons: FailureReason[] = [];
    let retryAfterMs = Number.POSITIVE_INFINITY;
    let overBudget: BudgetError | undefined;
    for (const [index, target] of targets.entries()) {
      const { model } = target;
      const isOriginal = index === 0;
      const hasNext = index < targets.length - 1 && fallback_policy.trigger_conditions.circuit_breaker_open;
      const attempt = isOriginal ? request : asStandIn(context, request, target);
      let reason: string | undefined;
      try {
        const result = await forwarder.forward(context, attempt, hasNext);
        if (result.kind !== "failed") return { ...result, model, reasons, target };
        const { failure } = result;
        const toldMs = result.retryAfterMs ?? (failure.kind === "status" ? failure.retryAfterMs : undefined);
        retryAfterMs = Math.min(retryAfterMs, toldMs ?? retryAfterMs);
        reason = triggerOf(result.failure, fallback_policy.trigger_conditions);
        // What a stand-in refuses may be its own limit, not the client's mistake.
        if (reason === undefined && !isOriginal && result.failure.kind === "status") {
          reason = `error_code_${result.failure.status}`;
        }
        if (reason === undefined) {
          addRule(context, `${failureLabel(failure)} is none of fallback.fallback_policy.trigger_conditions`);
          return { ...result, model, reasons };
        }
      } catch (error) {
        if (error instanceof BudgetError) {
          // What a budget says that counts every target is said at the end.
          if (isOriginal && (request.routed === undefined || error.refusal.useModel !== undefined)) {
            return await standInFor(context, request, error);
          }
          overBudget ??= error;
          reason = OVER_BUDGET;
        } else reason = refusalOf(error, fallback_policy.trigger_conditions);
        // What a stand-in or its format cannot do is no mistake of the client.
        if (!isOriginal && error instanceof GatewayError && error.status === 400) reason ??= refusedFor(error);
        if (reason === undefined) throw error;
        retryAfterMs = Math.min(retryAfterMs, refusedForMs(error));
      }
      reasons.push({ model, reason });
      const { record } = context;
      record.lastRule = undefined; // the next model has tries of its own
      record.fallbackReason ??= reason;
      const to = targets[index + 1]?.model;
      if (to === undefined) continue;
      record.add({ kind: "fallback", from: model, to, reason });
      if (reason !== OVER_BUDGET) record.failArms(target.arms);
    }
    if (overBudget !== undefined && reasons.every(({ reason }) => reason === OVER_BUDGET)) throw overBudget;
    context.record.lastRule = "every model of the fallback chain was asked";
    const further = targets.slice(1).map(({ model }) => model);
    throw exhausted(request.routed === undefined ? request.model : request.askedModel, further, reasons, retryAfterMs);
  }

  /** The models that may answer a request, in order: the one that is asked, further targets of its route, and its chain. */
  function targetsOf(context: RequestContext, { model, routed }: ModelRequest): readonly RouteTarget[] {
    const chain = chainOf(context, model);
    const first = routed?.target ?? { model, arms: NO_ARMS };
    const others = routed?.others ?? NO_TARGETS;
    if (chain.length === 0 && others.length === 0) return [first];
    return [first, ...others, ...chain.map((name): RouteTarget => ({ model: name, arms: NO_ARMS }))];
  }

  /** For a target that is asked because others failed. */
  function asStandIn({ record, settings }: RequestContext, request: ModelRequest, target: RouteTarget): ModelRequest {
    record.standIn(target.model);
    if (request.routed !== undefined) record.askArms(target.arms);
    const { fallback_timeout_multiplier: factor } = settings.fallback.fallback_policy;
    return { ...forTarget(request, target), patience: request.patience * factor };
  }

  /** The answer of the model that a budget names for the time when it is spent. Throws every other refusal. */
  async function standInFor(context: RequestContext, request: ModelRequest, refused: unknown): Promise<FallbackResult> {
    const model = refused instanceof BudgetError ? refused.refusal.useModel : undefined;
    if (model === undefined) throw refused;
    const { record } = context;
    record.standIn(model);
    record.fallbackReason = OVER_BUDGET;
    record.add({ kind: "fallback", from: request.model, to: model, reason: OVER_BUDGET });
    const reasons = [{ model: request.model, reason: OVER_BUDGET }];
    const target: RouteTarget = { model, arms: NO_ARMS };
    if (request.routed !== undefined) record.askArms(NO_ARMS);
    try {
      const result = await forwarder.forward(context, forTarget(request, target));
      const cannot = result.kind === "failed" && result.failure.kind === "status" && result.failure.status === 400;
      if (!cannot) return { ...result, model, reasons };
    } catch (error) {
      if (!(error instanceof GatewayError) || (error.status !== 400 && error.status !== 429)) throw error;
    }
    // What it cannot do is no mistake of the client, and its own budget may be spent as well.
    throw refused;
  }

  return {
    chainOf,
    targetsOf,
    forward: walk,
  };
}

/** Why a model has no chain that could be walked. */
function whyNoChain({ settings }: RequestContext, model: string): string {
  const { enabled, fallback_chains } = settings.fallback;
  const hasChain = spellingsOfModel(model).some((spelling) => Object.hasOwn(fallback_chains, spelling));
  return hasChain && !enabled
    ? "fallback.enabled is false"
    : `there is no fallback chain for ${model.slice(0, MAX_NAME_LENGTH)}`;
}

/** Beside the rule by which no other backend of the model was asked. */
function addRule({ record }: RequestContext, rule: string): void {
  record.lastRule = record.lastRule === undefined ? rule : `${record.lastRule}; ${rule}`;
}

/** No backend serves the model, or none of those that do can be asked for this. */
const UNAVAILABLE: readonly ErrorDefinition[] = [
  ERRORS.modelNotFound,
  ERRORS.noBackends,
  ERRORS.allBackendsUnhealthy,
  ERRORS.unsupportedOperation,
  // A file that only another vendor may hold.
  ERRORS.fileNotFound,
];

type TriggerConditions = RequestContext["settings"]["fallback"]["fallback_policy"]["trigger_conditions"];

/** Why a failure leads to the next model, or undefined when the policy says that it does not. */
export function triggerOf(failure: UpstreamFailure, conditions: TriggerConditions): string | undefined {
  switch (failure.kind) {
    case "status":
      return conditions.error_codes.includes(failure.status) ? `error_code_${failure.status}` : undefined;
    case "timeout":
      // When the time for the whole request is used up, there is none left for another model.
      return conditions.timeout && failure.phase !== "request" ? "timeout" : undefined;
    case "connect":
    case "reset":
      return conditions.connection_error ? "connection_error" : undefined;
    case "invalid-response":
    case "told-in-stream":
      return conditions.error_codes.includes(502) ? "error_code_502" : undefined;
    case "aborted":
      return undefined;
  }
}

/** The same for a request that no backend could take at all. */
function refusalOf(error: unknown, conditions: TriggerConditions): string | undefined {
  if (!(error instanceof GatewayError)) return undefined;
  if (error.type === ERRORS.circuitOpen.type)
    return conditions.circuit_breaker_open ? "circuit_breaker_open" : undefined;
  if (error.type === ERRORS.rateLimited.type)
    return conditions.error_codes.includes(429) ? "error_code_429" : undefined;
  // By type and code: the type of one of them is that of every mistake of a client.
  const isUnavailable = UNAVAILABLE.some(({ type, code }) => error.type === type && error.code === code);
  return conditions.connection_error && isUnavailable ? "no_backend_available" : undefined;
}

/** Which field a stand-in cannot serve, where one is to blame. */
function refusedFor({ param }: GatewayError): string {
  return param !== undefined && /^\w{1,40}$/.test(param) ? `unsupported_${param}` : "error_code_400";
}

/** How long a refusal holds; Infinity when it does not say. */
function refusedForMs(error: unknown): number {
  const seconds = error instanceof GatewayError ? error.headers?.["Retry-After"] : undefined;
  return seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1000;
}

/** `retryAfterMs`: the soonest time at which one of the models may be back; Infinity when no backend has named one. */
function exhausted(
  model: string,
  chain: readonly string[],
  reasons: readonly FailureReason[],
  retryAfterMs: number,
): GatewayError {
  const story = reasons.map((entry) => `${entry.model}: ${entry.reason}`).join(", ");
  return new GatewayError(
    ERRORS.allFallbacksExhausted,
    `The model '${model}' and all models of its fallback chain failed (${story}).`,
    {
      details: { original_model: model, attempted_fallbacks: chain, failure_reasons: reasons },
      headers: {
        "x-should-retry": "false", // the chain has been walked; an SDK need not do it again
        ...(Number.isFinite(retryAfterMs) && { "Retry-After": retryAfterSeconds(retryAfterMs) }),
      },
    },
  );
}

/** At least a second; what a backend has told is not trusted beyond a day. */
function retryAfterSeconds(durationMs: number): string {
  return String(Math.min(Math.max(1, Math.ceil(durationMs / 1000)), MAX_RETRY_AFTER_SECONDS));
}

/** The headers that tell the client of a fallback; nothing when there was none. */
export function writeFallbackHeaders(
  original: string,
  result: Pick<FallbackResult, "model" | "reasons">,
  into: Record<string, string>,
): void {
  const [first] = result.reasons;
  if (first === undefined) return;
  into["X-Fallback-Used"] = "true";
  into["X-Original-Model"] = headerText(original);
  into["X-Fallback-Model"] = headerText(result.model);
  into["X-Fallback-Reason"] = first.reason;
  into["X-Fallback-Attempts"] = String(result.reasons.length);
}

/** The headers that tell the client which target of which route is asked; nothing where it has asked for a model itself. */
export function writeRouteHeaders(
  { routed }: Pick<ModelRequest, "routed">,
  { arms = NO_ARMS }: RequestRecord,
  into: Record<string, string>,
): void {
  if (routed === undefined) return;
  into["X-Signalbox-Route"] = headerText(routed.route.settings.name);
  if (arms.length > 0) into["X-Signalbox-Arm"] = headerText(arms.map(({ arm }) => arm).join(" > "));
  else delete into["X-Signalbox-Arm"]; // a model of the fallback chain has answered
}

/** Model names are the client's text: what a header cannot hold is percent-encoded. */
function headerText(text: string): string {
  return text.toWellFormed().replaceAll(/[^\x20-\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character));
}
