// What each group of models accepts, as data (state of November 2026). Only requests that the gateway writes itself
// follow it, or requests that it sends to another model than the client named.

import type { Effort } from "../../generation/request.ts";

export interface ModelRules {
  /** thinking {type: "enabled", budget_tokens}. */
  budget: boolean;
  /** thinking {type: "adaptive"}. */
  adaptive: boolean;
  /** Values of output_config.effort; empty: the model has none. */
  efforts: readonly Effort[];
  /** temperature, top_p, top_k. */
  sampling: boolean;
  /** thinking {type: "disabled"}: always, only up to effort high, or never. */
  disabled: "always" | "up-to-high" | "never";
  /** thinking {type: "between_tools"}: the least thinking that such a model can do. */
  betweenTools: boolean;
  /** tool_choice any or tool. */
  forcedToolChoice: boolean;
  /** The last message may be the beginning of the answer. */
  prefill: boolean;
  /** output_config.format and strict tools. */
  structuredOutput: boolean;
  /** Messages with the role system in the middle of the conversation. */
  systemTurns: boolean;
  /** Most output tokens. */
  maxOutputTokens: number;
  /** False: the limit is a guess, larger values are passed on. */
  isKnown: boolean;
}

const UP_TO_HIGH: readonly Effort[] = ["low", "medium", "high"];
const UP_TO_MAX: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** Models of other vendors behind this format, and the first Claude models. */
const PLAIN: ModelRules = {
  budget: false,
  adaptive: false,
  efforts: [],
  sampling: true,
  disabled: "always",
  betweenTools: false,
  forcedToolChoice: true,
  prefill: true,
  structuredOutput: false,
  systemTurns: false,
  maxOutputTokens: 4_096,
  isKnown: true,
};
const WITH_BUDGET: ModelRules = { ...PLAIN, budget: true };
const V4_5: ModelRules = { ...WITH_BUDGET, structuredOutput: true, maxOutputTokens: 64_000 };
const V4_6: ModelRules = {
  ...V4_5,
  adaptive: true,
  efforts: ["low", "medium", "high", "max"],
  maxOutputTokens: 128_000,
};
/** Budgets are reported as refused from 4.7 on. */
const V4_7: ModelRules = {
  ...V4_6,
  budget: false,
  efforts: UP_TO_MAX,
  sampling: false,
  prefill: false,
  systemTurns: true,
};
const V5: ModelRules = { ...V4_7, disabled: "up-to-high" };
const ALWAYS_THINKING: ModelRules = { ...V5, disabled: "never" };
const NEVER_FORCED: ModelRules = { ...ALWAYS_THINKING, forcedToolChoice: false };

/** The first row that matches counts. Names are lower case, with dashes for dots. */
const GROUPS: readonly (readonly [names: RegExp, rules: ModelRules])[] = [
  [/claude-sonnet-5-5(?!\d)/, { ...NEVER_FORCED, betweenTools: true }],
  [/claude-opus-5-5(?!\d)/, NEVER_FORCED],
  [/claude-haiku-5-5(?!\d)/, V5],
  [/claude-(?:fable|mythos)-5-[12](?!\d)/, NEVER_FORCED],
  [/claude-(?:fable|mythos)-5(?!\d)/, ALWAYS_THINKING],
  [/claude-opus-5(?!\d)/, V5],
  [/claude-sonnet-5(?!\d)/, V4_7],
  [/claude-opus-4-[78](?!\d)/, V4_7],
  [/claude-(?:opus|sonnet)-4-6(?!\d)/, V4_6],
  [/claude-opus-4-5(?!\d)/, { ...V4_5, efforts: UP_TO_HIGH }],
  [/claude-(?:sonnet|haiku)-4-5(?!\d)/, V4_5],
  [/claude-opus-4-1(?!\d)/, { ...WITH_BUDGET, structuredOutput: true, maxOutputTokens: 32_000 }],
  [/claude-sonnet-4(?:-0|-\d{8}|-latest)?(?:[@:]|$)/, { ...WITH_BUDGET, maxOutputTokens: 64_000 }],
  [/claude-opus-4(?:-0|-\d{8}|-latest)?(?:[@:]|$)/, { ...WITH_BUDGET, maxOutputTokens: 32_000 }],
  [/claude-3-7(?!\d)/, { ...WITH_BUDGET, maxOutputTokens: 64_000 }],
  [/claude-3-5(?!\d)/, { ...PLAIN, maxOutputTokens: 8_192 }],
  [/claude-(?:3|2|v2|instant)(?![\d])/, PLAIN],
];

/** A Claude model that came after this table: as strict as Opus 5. */
const UNKNOWN_CLAUDE: ModelRules = { ...V5, isKnown: false };

/** Other vendors take budgets as the format had them first. */
const UNKNOWN: ModelRules = { ...WITH_BUDGET, isKnown: false };

export function rulesOf(model: string): ModelRules {
  const name = spell(model);
  if (!name.includes("claude")) return UNKNOWN;
  return GROUPS.find(([names]) => names.test(name))?.[1] ?? UNKNOWN_CLAUDE;
}

/** Top of the range: effort xhigh means the most that the model can do; the second tier stays at high. */
export function isTopTier(model: string): boolean {
  return /claude-(?:opus|fable|mythos)/.test(spell(model));
}

function spell(model: string): string {
  return model.toLowerCase().replaceAll(".", "-");
}
