// The one currency of prices, costs and budgets: a word for people, nothing is converted.

import type { Settings } from "./registry.ts";

export function currencyOf({ budgets, admin }: Pick<Settings, "budgets" | "admin">): string {
  return budgets.currency ?? admin.stats.currency;
}
