// The budgets that the configuration asks for. What was spent stays, whatever the rules become.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { StoredKeys } from "../access/stored-keys.ts";
import { remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createRedisServer, type RedisSurroundings } from "../redis/open-redis.ts";
import type { Redis } from "../redis/redis.ts";
import type { BudgetChange } from "../stats/happenings.ts";
import { shownAmount } from "./amounts.ts";
import type { Budgets, Threshold } from "./budgets.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createRules, type Rules } from "./rules.ts";
import type { SharedBudgets } from "./shared-budgets.ts";
import { createSpendingStore } from "./spending-store.ts";

export interface BudgetEvents {
  /** A budget has refused a request. */
  budgetRefused(rule: string): void;
  budgetCrossed(change: BudgetChange): void;
}

interface BudgetsParts extends RedisSurroundings {
  identify: KeyIdentity;
  storedKeys: StoredKeys;
  /** The absolute path of something that is written. */
  dataPath(path: string): string;
  happened: BudgetEvents;
  /** The budgets of another process, which has the ledger; undefined: it is in this one. */
  elsewhere?: ((rules: Rules) => Budgets) | undefined;
  /** How long a request may have waited for the server at this URL already. */
  waitedMs(url: string): number;
}

/** Calls are made one at a time. */
const CONNECTIONS = 1;

export function createBudgetsPart(snapshot: ConfigSnapshot, parts: BudgetsParts) {
  const { clock, log, identify, storedKeys, dataPath, happened, elsewhere, waitedMs } = parts;
  // Another path is used after a restart, and so is another storage.
  const path = dataPath(snapshot.settings.budgets.path);
  const isShared = snapshot.settings.rate_limiting.storage === "redis" && elsewhere === undefined;
  let ledger: Ledger | undefined;
  let shared: SharedBudgets | undefined;
  let opened: { place: Settings["rate_limiting"]["redis"]; redis: Redis } | undefined;
  const server = createRedisServer<Settings["rate_limiting"]["redis"]>(parts, ({ url }) => ({
    use: "budgets",
    poolSize: CONNECTIONS,
    check: (client) => (shared as SharedBudgets).check(client),
    returned: () => shared?.returned(),
    waitedMs: () => waitedMs(url as string),
  }));

  function newLedger(rules: Rules): Ledger {
    const store = createSpendingStore(path, log);
    if (!isShared) return createLedger({ rules, store, clock, log, told });
    const { createSharedBudgets } = require("./shared-budgets.ts") as typeof import("./shared-budgets.ts");
    return createLedger({
      ...{ rules, store, clock, log, told },
      together(told) {
        shared = createSharedBudgets({
          prefix: () => opened?.place.key_prefix ?? "",
          redis: () => opened?.redis,
          folder: () => store.folder(crypto.randomUUID()),
          ...{ clock, told },
        });
        return shared;
      },
    });
  }

  const made = remade<Parameters<typeof createRules>[0], Budgets>({
    make(slice) {
      const rules = createRules(slice, identify, storedKeys);
      if (elsewhere !== undefined) return elsewhere(rules);
      if (ledger === undefined) ledger = newLedger(rules);
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
    const { budgets, api_keys, organizations, rate_limiting } = settings;
    made.of({ budgets, keys: api_keys.keys, organizations });
    if (isShared && (opened !== undefined || ledger?.isOn)) opened = server.of(rate_limiting.redis);
  }
  follow(snapshot);
  return {
    follow,
    get inUse(): Budgets {
      return made.now as Budgets;
    },
    /** That of this process, which other processes ask for. */
    ledger: () => ledger as Ledger,
    server,
    async stop(): Promise<void> {
      await ledger?.stop();
      server.stop();
    },
  };
}
