// thinkingConfig of a client -> how much a model should think, and whether its thoughts are shown.

import { EFFORTS, type Effort, type ReasoningWish } from "../../generation/request.ts";
import { compact, isObject } from "../../lib/json.ts";
import { numberOf, textOf } from "../reading.ts";
import { inCamelCase } from "./members.ts";

const LEVELS: ReadonlySet<string> = new Set(EFFORTS);

/** Thoughts are shown where the client asks for it. */
export function decodeThinking(thinkingConfig: unknown): ReasoningWish {
  const { includeThoughts, thinkingBudget, thinkingLevel } = isObject(thinkingConfig)
    ? inCamelCase(thinkingConfig)
    : {};
  const level = textOf(thinkingLevel).toLowerCase();
  const budget = numberOf(thinkingBudget);
  return {
    visible: includeThoughts === true,
    ...(LEVELS.has(level) ? { effort: level as Effort } : budget === undefined ? {} : ofBudget(budget)),
  };
}

/** 0: none. -1: the model decides how much. */
function ofBudget(budget: number): ReasoningWish {
  if (budget === 0) return { enabled: false };
  return budget < 0 ? { enabled: true } : compact({ enabled: true, budgetTokens: budget });
}
