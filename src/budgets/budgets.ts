// What a request is asked about its budgets: before each attempt something is set aside, and afterwards settled. All of these
// are plain data, because another process may have the ledger.

import type { Quota } from "../generation/quota.ts";
import type { Eventually } from "../lib/eventually.ts";
import type { AmountName, Amounts } from "./amounts.ts";
import type { Payer, Spender } from "./rules.ts";

/** Amounts are in the units of Amounts, times in milliseconds since 1970. */
export interface OverBudget {
  rule: string;
  /** The key, user, organization or model whose own budget it is; "" where all share one. */
  subject: string;
  amount: AmountName;
  spent: number;
  /** Set aside for requests under way, and asked for by this one; both 0 where anything that is left would do. */
  held: number;
  asked: number;
  limit: number;
  /** When there is room again. */
  freeAtMs: number;
  isRate: boolean;
  /** Another backend of the model may not be concerned. */
  namesBackend: boolean;
  /** The model that answers in place of the one that was asked. */
  useModel: string | undefined;
  /** What all budgets of the request leave. */
  quota?: Quota | undefined;
}

/** A share of a limit that was crossed. */
export interface Threshold {
  rule: string;
  subject: string;
  share: number;
  amount: AmountName;
  spent: number;
  limit: number;
}

export interface Reservation {
  /** Undefined where no budget counts tokens or requests. */
  readonly quota: Quota | undefined;
  /** Called once: what it cost; NOTHING for an attempt that no vendor bills. */
  settle(spent: Amounts): void;
}

export type Reserved = { refusal: OverBudget } | { refusal: undefined; reservation: Reservation | undefined };

/** What a caller may still spend of one budget. */
export interface BudgetStanding {
  rule: string;
  /** As in OverBudget. */
  subject: string;
  /** As the configuration writes it. */
  window: string;
  /** Undefined: all. */
  models: readonly string[] | undefined;
  endsAtMs: number;
  limits: { amount: AmountName; spent: number; limit: number }[];
}

export interface Budgets {
  /** False: no rule counts anything. */
  readonly isOn: boolean;
  /** True where a rule asks for what a request may cost at most. */
  readonly isBoundWanted: boolean;
  /** True where a rule counts money: then models without a price are worth a warning. */
  readonly countsCost: boolean;
  /** Sets aside what an attempt may cost, of all budgets of the spender or of none. */
  reserve(spender: Spender, bound: Amounts): Eventually<Reserved>;
  /** What its budgets leave to a spender, where nothing is set aside; undefined where none counts tokens or requests. */
  quotaOf(spender: Spender): Eventually<Quota | undefined>;
  /** Every budget of the caller; without those that each model has of its own. */
  standings(caller: Payer): Eventually<BudgetStanding[]>;
}
