// Of all budgets that may count a key, the one with the smallest share left.

import { shownAmount } from "../budgets/amounts.ts";
import type { Ledger } from "../budgets/ledger.ts";
import type { Payer } from "../budgets/rules.ts";
import type { TightestBudget } from "./key-schemas.ts";

export function tightestBudget(ledger: Pick<Ledger, "knownStandings">, caller: Payer): TightestBudget | null {
  let tightest: TightestBudget | null = null;
  for (const { rule, limits } of ledger.knownStandings(caller)) {
    for (const { amount, spent, limit } of limits) {
      const share = limit === 0 ? 1 : spent / limit;
      if (tightest !== null && share <= tightest.share) continue;
      const remaining = shownAmount(amount, Math.max(0, limit - spent));
      tightest = { budget: rule, amount, limit: shownAmount(amount, limit), remaining, share };
    }
  }
  return tightest;
}
