// The budgets in a worker: the primary has the ledger, and is asked before each attempt that a rule counts.

import type { Amounts } from "../budgets/amounts.ts";
import type { Budgets } from "../budgets/budgets.ts";
import { type Rules, rememberMatches } from "../budgets/rules.ts";
import type { Channel } from "./channel.ts";
import type { PrimaryDesk } from "./messages.ts";

const MAX_MATCHES = 20_000;

/** A primary that does not answer lets requests in: it is being replaced, or the whole gateway is. */
export function createRemoteBudgets(channel: Pick<Channel<PrimaryDesk>, "call" | "tell">) {
  let lastId = 0;
  return (rules: Rules): Budgets => remoteBudgets(rules, channel, () => ++lastId);
}

function remoteBudgets(
  rules: Rules,
  channel: Pick<Channel<PrimaryDesk>, "call" | "tell">,
  newId: () => number,
): Budgets {
  const matches = rememberMatches(
    MAX_MATCHES,
    () => rules.version,
    (spender) => rules.matching(spender).length > 0,
  );
  return {
    isOn: rules.all.length > 0,
    isBoundWanted: rules.hasStrict,
    get countsCost() {
      return rules.countsCost;
    },
    standings: (caller) => channel.call("budgetStandings", [caller]).then((standings) => standings ?? []),
    quotaOf: (spender) => (matches.of(spender) ? channel.call("budgetQuota", [spender]) : undefined),
    reserve(spender, bound) {
      if (!matches.of(spender)) return { refusal: undefined, reservation: undefined };
      const id = newId();
      const settle = (spent: Amounts) => channel.tell("settleSpending", id, spent);
      return channel.call("reserveSpending", [id, spender, bound]).then((answer) => {
        if (answer?.refusal !== undefined) return { refusal: answer.refusal };
        // It may have granted what came too late: then what was set aside is given back with what was spent.
        return { refusal: undefined, reservation: { quota: answer?.quota, settle } };
      });
    },
  };
}
