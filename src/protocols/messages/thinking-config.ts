// How much a model should think: from the wish of any client to `thinking`, `output_config.effort` and `max_tokens`,
// by the rules of the model.

import type { DropList } from "../../generation/dropped.ts";
import { effortOfBudget, isEffort } from "../../generation/reasoning-effort.ts";
import type { Effort, ReasoningWish } from "../../generation/request.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { objectOf, optionalNumber } from "../reading.ts";
import { isTopTier, type ModelRules, rulesOf } from "./model-rules.ts";

/** Tokens to think with, for models that are given a budget: 1K to 32K. */
const BUDGETS: Record<Exclude<Effort, "none">, number> = {
  minimal: 1_024,
  low: 4_096,
  medium: 10_240,
  auto: 10_240,
  high: 20_480,
  xhigh: 20_480, // high, as for every backend whose newest models do not say otherwise
  max: 32_768,
};

/** The least that the API takes. */
const MIN_BUDGET = 1_024;

const IS_ENABLED: ReadonlyMap<unknown, boolean> = new Map([
  ["disabled", false],
  ["between_tools", false],
  ["adaptive", true],
  ["enabled", true],
]);

const IS_VISIBLE: ReadonlyMap<unknown, boolean> = new Map([
  ["summarized", true],
  ["omitted", false],
]);

export function decodeReasoning(thinking: unknown, outputConfig: unknown): ReasoningWish {
  const { effort } = objectOf(outputConfig);
  const { type, budget_tokens: budget, display } = objectOf(thinking);
  return compact({
    effort: isEffort(effort) ? effort : type === "adaptive" ? "auto" : undefined,
    enabled: IS_ENABLED.get(type),
    budgetTokens: optionalNumber(budget),
    visible: IS_VISIBLE.get(display),
  });
}

export interface ThinkingContext {
  model: string;
  rules: ModelRules;
  /** The client speaks this format: its efforts mean just what they say, and its max_tokens includes the thinking. */
  isOwn: boolean;
  /** What the client allowed for the answer; undefined: nothing said. */
  maxTokens: number | undefined;
  /** Most output tokens of the model. */
  limit: number;
  /** The last turn calls tools and its thinking is lost, which budget thinking does not forgive. */
  lacksThinking: boolean;
  dropped: DropList;
}

export interface ThinkingPlan {
  thinking?: JsonObject;
  effort?: Effort;
  maxTokens: number;
}

export function planThinking(wish: ReasoningWish, context: ThinkingContext): ThinkingPlan {
  const maxTokens = context.maxTokens ?? context.limit;
  if (wish.enabled === false || wish.effort === "none") return { maxTokens, ...planWithout(wish, context) };
  if (wish.enabled !== true && wish.effort === undefined && wish.budgetTokens === undefined) return { maxTokens };
  const { rules, isOwn, dropped } = context;
  const asksForBudget = isOwn && wish.budgetTokens !== undefined && rules.budget;
  if (rules.adaptive && !asksForBudget) return { maxTokens, ...planAdaptive(wish, context) };
  if (rules.budget) return planBudget(wish, context);
  dropped.add("reasoning_effort", "the model does not think");
  return { maxTokens };
}

/** Minimal means low, and xhigh means high or max. */
export function effortLevels(model: string): readonly Effort[] {
  const { budget, adaptive, efforts, disabled } = rulesOf(model);
  if (!budget && !adaptive) return [];
  const levels: Effort[] = ["low", "medium", "high"];
  if (disabled !== "never") levels.unshift("none");
  return adaptive && !efforts.includes("max") ? levels : [...levels, "max"];
}

/** An effort that a client of this format names, where the model has it. */
function ownEffort({ effort }: ReasoningWish, { rules, isOwn }: ThinkingContext): Effort | undefined {
  return isOwn && effort !== undefined && rules.efforts.includes(effort) ? effort : undefined;
}

function planWithout(wish: ReasoningWish, context: ThinkingContext): Omit<ThinkingPlan, "maxTokens"> {
  const { rules, dropped } = context;
  const own = ownEffort(wish, context);
  // Without thinking the highest efforts are refused.
  const isTooHigh = rules.disabled !== "always" && (own === "xhigh" || own === "max");
  const plan = compact({ effort: isTooHigh ? "high" : own });
  if (rules.betweenTools) return { thinking: { type: "between_tools" }, ...plan };
  if (rules.disabled !== "never") {
    return rules.budget || rules.adaptive ? { thinking: { type: "disabled" }, ...plan } : plan;
  }
  dropped.add("reasoning_effort", "the model always thinks; it is asked for the lowest effort");
  return { effort: "low" };
}

function planAdaptive(wish: ReasoningWish, { model, rules, isOwn }: ThinkingContext): Omit<ThinkingPlan, "maxTokens"> {
  const { budgetTokens } = wish;
  const asked = wish.effort ?? (budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens));
  const effort = effortFor(asked, model, rules, isOwn);
  // An effort of this format's own client says nothing about thinking.
  if (isOwn && wish.enabled === undefined) return compact({ effort });
  return { ...compact({ effort }), thinking: { type: "adaptive", ...displayMember(wish.visible, isOwn) } };
}

/** Newer models leave the thoughts out unless they are asked for. */
function displayMember(visible: boolean | undefined, isOwn: boolean): JsonObject {
  if (visible === false) return { display: "omitted" };
  return visible === true || !isOwn ? { display: "summarized" } : {};
}

function effortFor(wish: Effort | undefined, model: string, rules: ModelRules, isOwn: boolean): Effort | undefined {
  if (wish === undefined || wish === "auto" || wish === "none") return undefined;
  if (isOwn && rules.efforts.includes(wish)) return wish;
  const effort = wish === "minimal" ? "low" : wish === "xhigh" ? (isTopTier(model) ? "max" : "high") : wish;
  return rules.efforts.includes(effort) ? effort : "high";
}

function planBudget(wish: ReasoningWish, context: ThinkingContext): ThinkingPlan {
  const { isOwn, limit, dropped } = context;
  const maxTokens = context.maxTokens ?? limit;
  const plan = { maxTokens, ...compact({ effort: ownEffort(wish, context) }) };
  // Its own clients set a budget or nothing; an effort alone is no wish to think.
  if (isOwn && wish.enabled === undefined && wish.budgetTokens === undefined) return plan;
  if (context.lacksThinking) {
    dropped.add("reasoning_effort", "the thinking before the last tool calls is not known");
    return plan;
  }
  const wished = Math.max(MIN_BUDGET, wish.budgetTokens ?? budgetOf(wish.effort));
  const total = isOwn ? maxTokens : totalTokens(wished, context);
  // When the budget does not fit, the answer keeps all that was allowed for it, or half.
  const isExact = isOwn && wish.budgetTokens !== undefined;
  const share = isExact ? 1 : Math.min(context.maxTokens ?? total, Math.floor(total / 2));
  const budget = Math.min(wished, total - share);
  if (budget < MIN_BUDGET) {
    dropped.add("reasoning_effort", "the limit of output tokens leaves no room to think");
    return plan;
  }
  const thinking: JsonObject = { type: "enabled", budget_tokens: Math.trunc(budget) };
  if (wish.visible === false) thinking.display = "omitted";
  return { ...plan, thinking, maxTokens: total };
}

function budgetOf(effort: Effort | undefined): number {
  return BUDGETS[effort === undefined || effort === "none" ? "medium" : effort];
}

/** Other formats count the answer alone, so the budget comes on top as far as the model allows. */
function totalTokens(budget: number, { maxTokens, limit }: ThinkingContext): number {
  return maxTokens === undefined ? limit : Math.max(maxTokens, Math.min(maxTokens + budget, limit));
}

/**
 * The members of a Messages client's own body that a model refuses, adapted to it; undefined means removed. Empty when
 * the model takes the body as it is.
 */
export function adaptThinking(body: JsonObject, context: Omit<ThinkingContext, "isOwn" | "maxTokens">): JsonObject {
  const { rules, limit } = context;
  const changes: JsonObject = {};
  if (rules.isKnown && typeof body.max_tokens === "number" && body.max_tokens > limit) changes.max_tokens = limit;
  if (!rules.sampling) {
    for (const member of ["temperature", "top_p", "top_k"]) {
      if (body[member] !== undefined) changes[member] = undefined;
    }
  }
  if (acceptsThinking(body, rules)) return changes;
  const maxTokens = typeof body.max_tokens === "number" ? Math.min(body.max_tokens, limit) : undefined;
  const wish = decodeReasoning(body.thinking, body.output_config);
  const plan = planThinking(wish, { ...context, isOwn: true, maxTokens });
  changes.thinking = plan.thinking;
  if (isObject(body.output_config)) changes.output_config = withEffort(body.output_config, plan.effort);
  else if (plan.effort !== undefined) changes.output_config = { effort: plan.effort };
  return changes;
}

function withEffort(outputConfig: JsonObject, effort: Effort | undefined): JsonObject | undefined {
  const { effort: _before, ...rest } = outputConfig;
  const changed = effort === undefined ? rest : { ...rest, effort };
  return Object.keys(changed).length === 0 ? undefined : changed;
}

function acceptsThinking({ thinking, output_config: outputConfig }: JsonObject, rules: ModelRules): boolean {
  const { effort } = objectOf(outputConfig);
  if (typeof effort === "string" && !rules.efforts.some((known) => known === effort)) return false;
  const { type } = objectOf(thinking);
  if (type === "enabled") return rules.budget;
  if (type === "adaptive") return rules.adaptive;
  if (type === "between_tools") return rules.betweenTools && effort !== "xhigh" && effort !== "max";
  if (type !== "disabled" || rules.disabled === "always") return true;
  return rules.disabled === "up-to-high" && effort !== "xhigh" && effort !== "max";
}
