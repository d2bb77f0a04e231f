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

/** A sum never leaves the whole numbers, whatever a backend claims to have counted. */
export function add(to: Amounts, from: Amounts, sign: 1 | -1 = 1): void {
  to.cost = bounded(to.cost + sign * from.cost);
  to.input = bounded(to.input + sign * from.input);
  to.output = bounded(to.output + sign * from.output);
  to.requests = bounded(to.requests + sign * from.requests);
}

function bounded(amount: number): number {
  return Math.min(Math.max(0, amount), Number.MAX_SAFE_INTEGER);
}
