// What a client learns of its budgets: the 429, and the headers of its own format.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type AmountName, shownAmount } from "./amounts.ts";
import type { OverBudget } from "./budgets.ts";

const UNITS: Record<Exclude<AmountName, "cost">, string> = {
  tokens: "tokens",
  input_tokens: "input tokens",
  output_tokens: "output tokens",
  requests: "requests",
};

/** The refusal of a budget: insufficient_quota, or that of a rate limit where its window is a minute or less. */
export class BudgetError extends GatewayError {
  readonly refusal: OverBudget;

  /** @param nowMs - since 1970 */
  constructor(refusal: OverBudget, currency: string, nowMs: number) {
    const { rule, subject, amount, spent, limit, freeAtMs, isRate } = refusal;
    const seconds = Math.max(1, Math.ceil((freeAtMs - nowMs) / 1000));
    const resetsAt = new Date(Math.ceil(freeAtMs / 1000) * 1000).toISOString();
    super(isRate ? ERRORS.rateLimited : ERRORS.budgetExceeded, messageOf(refusal, currency, resetsAt), {
      details: {
        budget: rule,
        ...(subject !== "" && { subject }),
        amount,
        spent: shownAmount(amount, spent),
        limit: shownAmount(amount, limit),
        ...(amount === "cost" && { currency }),
        resets_at: resetsAt,
      },
      // SDKs would try a spent budget again within seconds, for nothing.
      headers: { "Retry-After": String(seconds), ...(!isRate && { "x-should-retry": "false" }) },
    });
    this.refusal = refusal;
  }
}

function messageOf({ rule, subject, amount, ...of }: OverBudget, currency: string, resetsAt: string): string {
  const text = (value: number) =>
    amount === "cost" ? `${shownAmount(amount, value)} ${currency}` : `${value} ${UNITS[amount]}`;
  const whose = subject === "" ? "" : ` of '${subject}'`;
  const spent = `The budget '${rule}'${whose} has ${text(of.spent)} spent of ${text(of.limit)}`;
  const again = `It has room again at ${resetsAt}.`;
  if (of.asked === 0 || of.spent >= of.limit) return `${spent}. ${again}`;
  const held = of.held === 0 ? "" : ` and ${text(of.held)} set aside for requests under way`;
  const hint =
    amount === "requests" ? "" : ` This request may cost up to ${text(of.asked)}: a smaller max_tokens asks for less.`;
  return `${spent}${held}.${hint} ${again}`;
}
