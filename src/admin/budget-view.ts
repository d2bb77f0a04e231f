// A budget as the admin API shows it: its rule, and what is spent of it.

import type { Account } from "../budgets/account.ts";
import { type Amounts, amountOf, shownAmount } from "../budgets/amounts.ts";
import type { Ledger } from "../budgets/ledger.ts";
import { type Rule, windowText } from "../budgets/rules.ts";
import type { BudgetRecord, BudgetUsage } from "./budget-schemas.ts";

/** Windows of the history that are shown. */
const MOST_WINDOWS = 500;

/** What is spent of a rule that is not in force, under the name of one that is, is spent of that one. */
export function budgetRecord(rule: Rule, ledger: Ledger, nowMs: number): BudgetRecord {
  const running = ledger.rule(rule.id);
  const account = running && fullest(running, ledger);
  // Another gateway may have reset it.
  const { fromMs, endsMs } = (rule.resetAtMs === running?.resetAtMs && account ? account.spans : rule.spans)(nowMs);
  return {
    id: rule.id,
    key: rule.ofKey ?? null,
    match: Object.fromEntries(Object.entries(rule.match).filter(([, names]) => names !== undefined)),
    window: windowText(rule.window),
    per: rule.per ?? null,
    strict: rule.isStrict,
    warn_at: [...rule.thresholds],
    when_exceeded: rule.whenExceeded,
    reset_at: rule.resetAtMs === 0 ? null : new Date(rule.resetAtMs).toISOString(),
    reset_subjects: Object.fromEntries(
      [...rule.subjectResets].map(([subject, atMs]) => [subject, new Date(atMs).toISOString()]),
    ),
    since: new Date(fromMs).toISOString(),
    until: new Date(endsMs).toISOString(),
    subject: subjectText(account?.subject ?? ""),
    limits: rule.limits.map(({ name, most }) => {
      const spent = account === undefined ? 0 : amountOf(account.spent, name);
      const held = account === undefined ? 0 : amountOf(account.held, name);
      const passed = (nowMs - fromMs) / (endsMs - fromMs);
      return {
        amount: name,
        limit: shownAmount(name, most),
        spent: shownAmount(name, spent),
        held: shownAmount(name, held),
        remaining: shownAmount(name, Math.max(0, most - spent)),
        share: most === 0 ? 1 : spent / most,
        forecast: "unit" in rule.window && passed > 0 ? shownAmount(name, Math.round(spent / passed)) : null,
      };
    }),
  };
}

/** Throws a StorageError. */
export function budgetUsage(rule: Rule, ledger: Ledger, currency: string, nowMs: number, sinceMs: number): BudgetUsage {
  return {
    budget: budgetRecord(rule, ledger, nowMs),
    currency,
    subjects: ledger.subjects(rule).map(({ subject, ...spent }) => ({
      subject: subjectText(subject),
      share: shareOf(rule, spent),
      ...spentView(spent),
    })),
    history: ledger.history(rule, sinceMs, MOST_WINDOWS).map(({ fromMs, endsMs, subject, ...spent }) => ({
      since: new Date(fromMs).toISOString(),
      until: new Date(endsMs).toISOString(),
      subject: subjectText(subject),
      ...spentView(spent),
    })),
  };
}

/** Of a rule with per, the one in memory that has spent most. */
function fullest(rule: Rule, ledger: Ledger): Account | undefined {
  if (rule.per === undefined) return ledger.account(rule, "");
  let found: Account | undefined;
  for (const account of ledger.accounts()) {
    if (account.rule === rule && (found === undefined || account.share > found.share)) found = account;
  }
  return found;
}

function shareOf({ limits }: Rule, spent: Amounts): number {
  return Math.max(...limits.map(({ name, most }) => (most === 0 ? 1 : amountOf(spent, name) / most)));
}

function spentView({ cost, input, output, requests }: Amounts) {
  return { cost: shownAmount("cost", cost), input_tokens: input, output_tokens: output, requests };
}

function subjectText(subject: string): string | null {
  return subject === "" ? null : subject;
}
