// How much a model should think: from the wish of any client to generationConfig.thinkingConfig. A family takes a budget
// of tokens or a level, never both.

import type { DropList } from "../../generation/dropped.ts";
import { effortOfBudget } from "../../generation/reasoning-effort.ts";
import type { Effort, ReasoningWish } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import { baseName } from "./model-rules.ts";

type ThinkingLevel = "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";

type ThinkingFamily =
  | {
      kind: "budget";
      /** Least and most tokens. */
      minimum: number;
      maximum: number;
      /** Whether a budget of 0 is taken. */
      canBeOff: boolean;
      /** The family does not think unless it is asked to, and refuses to show thoughts then. */
      isOffByDefault?: boolean;
    }
  | { kind: "level"; levels: readonly ThinkingLevel[] };

const FLASH_2: ThinkingFamily = { kind: "budget", minimum: 512, maximum: 24_576, canBeOff: true };
const PRO_2: ThinkingFamily = { kind: "budget", minimum: 128, maximum: 32_768, canBeOff: false };
const FOUR_LEVELS: ThinkingFamily = { kind: "level", levels: ["MINIMAL", "LOW", "MEDIUM", "HIGH"] };
const THREE_LEVELS: ThinkingFamily = { kind: "level", levels: ["LOW", "MEDIUM", "HIGH"] };

/** First match counts; undefined: the family does not think. */
const FAMILIES: readonly (readonly [RegExp, ThinkingFamily | undefined])[] = [
  [/^gemini-.*(?:tts|audio|live)/, undefined],
  [/^gemini-2\.5-flash-image/, undefined],
  [/^gemini-2\.5-flash-lite/, { ...FLASH_2, isOffByDefault: true }],
  [/^gemini-2\.5-flash/, FLASH_2],
  [/^gemini-robotics-er-1\.5/, FLASH_2],
  [/^gemini-2\.5/, PRO_2],
  [/^gemini-(?:[3-9]|\d\d).*pro-image/, PRO_2],
  [/^gemini-(?:[3-9]|\d\d).*flash.*image/, { kind: "level", levels: ["MINIMAL", "HIGH"] }],
  [/^gemini-3-pro/, { kind: "level", levels: ["LOW", "HIGH"] }],
  [/^gemini-(?:[3-9]|\d\d).*flash/, FOUR_LEVELS],
  [/^gemini-flash(?:-lite)?-latest/, FOUR_LEVELS],
  [/^gemini-(?:[3-9]|\d\d|pro-latest)/, THREE_LEVELS],
];

function thinkingFamily(model: string): ThinkingFamily | undefined {
  const name = baseName(model);
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
}

export function effortLevels(model: string): readonly Effort[] {
  const family = thinkingFamily(model);
  if (family === undefined) return [];
  if (family.kind === "level") return family.levels.map((level) => level.toLowerCase() as Effort);
  return family.canBeOff ? ["none", "low", "medium", "high"] : ["low", "medium", "high"];
}

type Amount = Exclude<Effort, "none">;

/** In tokens; each is fitted to the family. */
const BUDGETS: Record<Amount, number> = {
  minimal: 0,
  low: 1_024,
  medium: 8_192,
  auto: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};

const LEVELS: Record<Amount, ThinkingLevel> = {
  minimal: "MINIMAL",
  low: "LOW",
  medium: "MEDIUM",
  auto: "MEDIUM",
  high: "HIGH",
  xhigh: "HIGH",
  max: "HIGH",
};

const ORDER: readonly ThinkingLevel[] = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];

/** The model decides by itself. */
const DYNAMIC = -1;

/** thinkingConfig; undefined: nothing is to be said about thinking. */
export function encodeThinking(wish: ReasoningWish, model: string, dropped: DropList): JsonObject | undefined {
  const family = thinkingFamily(model);
  if (family === undefined) {
    if (isAskedFor(wish)) dropped.add("reasoning_effort", "the model is not known to think");
    return undefined;
  }
  if (isOff(wish)) return withoutThinking(family, dropped);
  const includeThoughts = wish.visible !== false;
  const amount = family.kind === "budget" ? budgetFor(wish, family) : levelFor(wish, family.levels);
  if (amount !== undefined) return { includeThoughts, ...amount };
  // Nothing is asked for: the thoughts that come anyway are shown.
  return family.kind === "budget" && family.isOffByDefault === true ? undefined : { includeThoughts };
}

function isOff({ effort, enabled, budgetTokens }: ReasoningWish): boolean {
  return enabled === false || effort === "none" || (budgetTokens === 0 && effort === undefined);
}

function isAskedFor(wish: ReasoningWish): boolean {
  return !isOff(wish) && (wish.enabled === true || wish.effort !== undefined || wish.budgetTokens !== undefined);
}

/** The least that the family can think. */
function withoutThinking(family: ThinkingFamily, dropped: DropList): JsonObject {
  if (family.kind === "budget" && family.canBeOff) return { thinkingBudget: 0 };
  dropped.add("reasoning_effort", "the model always thinks; it is asked for the least");
  return family.kind === "budget" ? { thinkingBudget: family.minimum } : { thinkingLevel: family.levels[0] };
}

function budgetFor(
  { effort, enabled, budgetTokens }: ReasoningWish,
  { minimum, maximum }: Extract<ThinkingFamily, { kind: "budget" }>,
): JsonObject | undefined {
  const wished = budgetTokens ?? (effort === undefined || effort === "none" ? undefined : BUDGETS[effort]);
  if (wished === undefined) return enabled === true ? { thinkingBudget: DYNAMIC } : undefined;
  if (wished < 0) return { thinkingBudget: DYNAMIC };
  return { thinkingBudget: Math.trunc(Math.min(maximum, Math.max(minimum, wished))) };
}

/** Without an effort or a budget the model's own level holds. */
function levelFor(wish: ReasoningWish, levels: readonly ThinkingLevel[]): JsonObject | undefined {
  const amount = amountOf(wish);
  if (amount === undefined) return undefined;
  const wished = LEVELS[amount];
  const atLeast = levels.find((level) => ORDER.indexOf(level) >= ORDER.indexOf(wished));
  return { thinkingLevel: atLeast ?? levels.at(-1) };
}

function amountOf({ effort, budgetTokens }: ReasoningWish): Amount | undefined {
  if (effort !== undefined && effort !== "none") return effort;
  return budgetTokens === undefined || budgetTokens < 0 ? undefined : effortOfBudget(budgetTokens);
}
