// What a request may cost, and what it did: money and counts, in whole numbers.

import { NANOS } from "../stats/costs.ts";

/** `cost` is in billionths of the currency. */
export interface Amounts {
  cost: number;
  input: number;
  output: number;
  requests: number;
}

export const NOTHING: Amounts = { cost: 0, input: 0, output: 0, requests: 0 };

/** The amounts that a budget can limit, as the configuration names them. */
export type AmountName = "cost" | "tokens" | "input_tokens" | "output_tokens" | "requests";

export const AMOUNT_NAMES: readonly AmountName[] = ["cost", "tokens", "input_tokens", "output_tokens", "requests"];

export function amountOf({ cost, input, output, requests }: Amounts, name: AmountName): number {
  if (name === "cost") return cost;
  if (name === "requests") return requests;
  if (name === "input_tokens") return input;
  return name === "output_tokens" ? output : input + output;
}

/** As people write it: money in the currency. */
export function shownAmount(name: AmountName, amount: number): number {
  return name === "cost" ? amount / NANOS : amount;
}

export function writtenAmount(name: AmountName, shown: number): number {
  return name === "cost" ? Math.round(shown * NANOS) : shown;
}

export function add(to: Amounts, from: Amounts): void {
  to.cost += from.cost;
  to.input += from.input;
  to.output += from.output;
  to.requests += from.requests;
}

/** Takes back what was added. */
export function subtract(from: Amounts, what: Amounts): void {
  from.cost -= what.cost;
  from.input -= what.input;
  from.output -= what.output;
  from.requests -= what.requests;
}

/** What is left of each amount; of what is less than nothing, nothing. */
export function remainder(of: Readonly<Amounts>, less: Readonly<Amounts>): Amounts {
  return {
    cost: Math.max(0, of.cost - less.cost),
    input: Math.max(0, of.input - less.input),
    output: Math.max(0, of.output - less.output),
    requests: Math.max(0, of.requests - less.requests),
  };
}

/** No request costs so much. What a backend claims, or a client asks for, beyond it would take the sums out of the whole numbers. */
const MOST_TOKENS_OF_ONE = 1_000_000_000_000;
const MOST_COST_OF_ONE = 1_000_000 * NANOS;

/** As it is counted: whole, and not absurd. */
export function counted({ cost, input, output, requests }: Amounts): Amounts {
  return {
    cost: bounded(cost, MOST_COST_OF_ONE),
    input: bounded(input, MOST_TOKENS_OF_ONE),
    output: bounded(output, MOST_TOKENS_OF_ONE),
    requests,
  };
}

function bounded(amount: number, most: number): number {
  return amount >= 0 ? Math.min(Math.round(amount), most) : 0;
}

export function isNothing({ cost, input, output, requests }: Amounts): boolean {
  return cost === 0 && input === 0 && output === 0 && requests === 0;
}
