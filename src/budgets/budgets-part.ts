// The budgets that the configuration asks for. What was spent stays, whatever the rules become.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { StoredKeys } from "../access/stored-keys.ts";
import { remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { BudgetChange } from "../stats/happenings.ts";
import { shownAmount } from "./amounts.ts";
import type { Budgets, Threshold } from "./budgets.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createRules, type Rules } from "./rules.ts";
import { createSpendingStore } from "./spending-store.ts";

export interface BudgetEvents {
  /** A budget has refused a request. */
  budgetRefused(rule: string): void;
  budgetCrossed(change: BudgetChange): void;
}

interface BudgetsParts {
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  identify: KeyIdentity;
  storedKeys: StoredKeys;
  /** The absolute path of something that is written. */
  dataPath(path: string): string;
  happened: BudgetEvents;
  /** The budgets of another process, which has the ledger; undefined: it is in this one. */
  elsewhere?: ((rules: Rules) => Budgets) | undefined;
}

export function createBudgetsPart(snapshot: ConfigSnapshot, parts: BudgetsParts) {
  const { clock, log, identify, storedKeys, dataPath, happened, elsewhere } = parts;
  // Another path is used after a restart.
  const path = dataPath(snapshot.settings.budgets.path);
  let ledger: Ledger | undefined;
  const made = remade<Parameters<typeof createRules>[0], Budgets>({
    make(slice) {
      const rules = createRules(slice, identify, storedKeys);
      if (elsewhere !== undefined) return elsewhere(rules);
      if (ledger === undefined)
        ledger = createLedger({ rules, store: createSpendingStore(path, log), clock, log, told });
      else ledger.follow(rules);
      return ledger;
    },
  });
  const told = {
    refused: happened.budgetRefused,
    crossed(threshold: Threshold): void {
      const { rule, subject, share, amount, spent, limit } = threshold;
      const [spentShown, limitShown] = [spent, limit].map((value) => shownAmount(amount, value)) as [number, number];
      const change = { budget: rule, subject, share, amount, spent: spentShown, limit: limitShown };
      log.warn(change, share >= 1 ? "a budget is spent" : `a budget is spent to ${Math.round(share * 100)} %`);
      happened.budgetCrossed(change);
    },
  };

  function follow({ settings }: Pick<ConfigSnapshot, "settings">): void {
    const { budgets, api_keys, organizations } = settings;
    made.of({ budgets, keys: api_keys.keys, organizations });
  }
  follow(snapshot);
  return {
    follow,
    get inUse(): Budgets {
      return made.now as Budgets;
    },
    /** That of this process, which other processes ask for. */
    ledger: () => ledger as Ledger,
    stop: () => ledger?.stop(),
  };
}
