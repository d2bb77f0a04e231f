// The gauges of budgets.

import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricReading, MetricsRegistry } from "../metrics/registry.ts";
import type { Account } from "./account.ts";
import { amountOf, shownAmount } from "./amounts.ts";
import type { Ledger } from "./ledger.ts";

/** Budgets that have series; keys may have any number of their own. */
const MAX_BUDGETS = 1_000;

export function addBudgetGauges(registry: MetricsRegistry, ledger: () => Ledger): void {
  /** The fullest account of each rule that has counted something. */
  function fullest(): Account[] {
    const found = new Map<string, Account>();
    for (const account of ledger().accounts()) {
      const { id } = account.rule;
      const before = found.get(id);
      if (before === undefined ? found.size < MAX_BUDGETS : account.share > before.share) found.set(id, account);
    }
    return [...found.values()];
  }
  function each(read: (account: Account, limit: Account["rule"]["limits"][number]) => number): MetricReading[] {
    return fullest().flatMap((account) =>
      account.rule.limits.map((limit) => ({
        labels: [account.rule.id, limit.name],
        value: shownAmount(limit.name, read(account, limit)),
      })),
    );
  }
  registry.read(INSTRUMENTS.budgetSpent, () => each(({ spent }, { name }) => amountOf(spent, name)));
  registry.read(INSTRUMENTS.budgetLimit, () => each((_, { most }) => most));
}
