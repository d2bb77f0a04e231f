// How much a model should think: from the wish of any client to additionalModelRequestFields.

import { effortOfBudget } from "../../generation/reasoning-effort.ts";
import type { Effort, ReasoningWish } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Encoding } from "./encoding.ts";
import { rulesOf } from "./model-rules.ts";

interface EncodedReasoning {
  fields: JsonObject;
  /** The model takes no inference parameters beside this effort. */
  isAlone: boolean;
}

const NOTHING: EncodedReasoning = { fields: {}, isAlone: false };

export function effortLevels(model: string): readonly Effort[] {
  return rulesOf(model).thinking?.efforts ?? [];
}

export function encodeReasoning({ request: { reasoning }, rules, dropped }: Encoding): EncodedReasoning {
  const wished = effortOf(reasoning);
  if (wished === undefined) return NOTHING;
  const { thinking } = rules;
  if (thinking === undefined) {
    if (wished !== "none") dropped.add("reasoning_effort", "the model cannot be told how much to think");
    return NOTHING;
  }
  const effort = fitted(wished, thinking.efforts);
  if (effort !== wished) dropped.add(`reasoning effort ${wished}`, `the model is asked for ${effort}`);
  return { fields: thinking.fields(effort) ?? {}, isAlone: thinking.alone?.includes(effort) === true };
}

/** Undefined: nothing is asked for. */
function effortOf({ effort, enabled, budgetTokens }: ReasoningWish): Effort | undefined {
  if (enabled === false || (budgetTokens === 0 && effort === undefined)) return "none";
  if (effort !== undefined) return effort;
  if (budgetTokens !== undefined && budgetTokens > 0) return effortOfBudget(budgetTokens);
  return enabled === true ? "medium" : undefined;
}

const ORDER: readonly Effort[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** The least effort of the model that is not below the wished one. */
function fitted(wished: Effort, levels: readonly Effort[]): Effort {
  const place = ORDER.indexOf(wished === "auto" ? "medium" : wished);
  const inOrder = ORDER.filter((effort) => levels.includes(effort));
  return inOrder.find((effort) => ORDER.indexOf(effort) >= place) ?? (inOrder.at(-1) as Effort);
}
