// One budget: what its rule lets one subject spend, what of it is spent, and what is set aside for requests under way.

import type { Linked } from "../lib/recency-list.ts";
import { type Amounts, add, amountOf, isNothing, NOTHING, subtract } from "./amounts.ts";
import type { OverBudget, Threshold } from "./budgets.ts";
import { type Rule, windowText } from "./rules.ts";
import type { SpentRow } from "./spending-store.ts";
import type { BudgetSpan, SpanAt } from "./windows.ts";

/** What was spent in one span of the window. */
interface SpentSpan {
  readonly fromMs: number;
  readonly endsMs: number;
  /** What the store has. */
  readonly saved: Amounts;
  /** What it has not been given. */
  readonly unsaved: Amounts;
}

export class Account implements Linked<Account> {
  older: Account | undefined;
  newer: Account | undefined;
  readonly subject: string;
  /** False once it made room for others: then the ledger has another one, or none. */
  isKept = true;
  /** False while the store could not tell what was spent before. */
  isLoaded = false;
  #rule: Rule;
  #resetAtMs: number;
  #spans: SpanAt;
  /** The oldest first. */
  #slots: SpentSpan[] = [];
  readonly #spent: Amounts = { ...NOTHING };
  readonly #reserved: Amounts = { ...NOTHING };
  /** The number of thresholds that were told. */
  #told = 0;
  /** The amounts at which the next one is crossed, in the order of the limits. */
  #nextAt: number[] = [];
  #slot: SpentSpan | undefined;
  #span: BudgetSpan | undefined;
  /** Before this time nothing changes by itself. */
  #steadyUntilMs = Number.NEGATIVE_INFINITY;

  constructor(rule: Rule, subject: string) {
    this.#rule = rule;
    this.subject = subject;
    this.#resetAtMs = this.#resetBy(rule);
    this.#spans = this.#spansBy(rule);
  }

  #resetBy({ resetAtMs, subjectResets }: Rule): number {
    return subjectResets.get(this.subject) ?? resetAtMs;
  }

  #spansBy({ resetAtMs, spans, spansFrom }: Rule): SpanAt {
    return this.#resetAtMs === resetAtMs ? spans : spansFrom(this.#resetAtMs);
  }

  get rule(): Rule {
    return this.#rule;
  }

  get spent(): Readonly<Amounts> {
    return this.#spent;
  }

  get reserved(): Readonly<Amounts> {
    return this.#reserved;
  }

  /** All of it is in the store. */
  isSaved = true;

  /** Nothing is set aside: every reservation holds one request. */
  get isIdle(): boolean {
    return this.#reserved.requests === 0;
  }

  /** Takes what the store knows in place of what was known, except for what it has not been given. */
  load(rows: readonly SpentRow[], nowMs: number): void {
    const unsaved = this.#slots.filter((slot) => !isNothing(slot.unsaved));
    this.#slots = rows
      .filter(({ fromMs }) => fromMs >= this.#resetAtMs)
      .map(({ fromMs, endsMs, cost, input, output, requests }) => {
        return newSlot(fromMs, endsMs, { cost, input, output, requests });
      });
    for (const own of unsaved) {
      const slot = this.#slots.find(({ fromMs }) => fromMs === own.fromMs);
      if (slot === undefined) this.#slots.push(own);
      else add(slot.unsaved, own.unsaved);
    }
    this.#slots.sort((a, b) => a.fromMs - b.fromMs);
    this.isLoaded = true;
    this.#slot = undefined;
    this.#steadyUntilMs = Number.NEGATIVE_INFINITY;
    this.#sum(nowMs);
    this.advance(nowMs);
    this.#tellFrom(this.#passed());
  }

  /** Another version of its rule holds; what was spent has to be loaded again where the window is another one. */
  follow(rule: Rule): void {
    const before = { window: this.#rule.window, resetAtMs: this.#resetAtMs };
    this.#rule = rule;
    this.#resetAtMs = this.#resetBy(rule);
    this.#spans = this.#spansBy(rule);
    this.#steadyUntilMs = Number.NEGATIVE_INFINITY;
    if (!Bun.deepEquals(before.window, rule.window) || before.resetAtMs !== this.#resetAtMs) this.isLoaded = false;
    else this.#tellFrom(Math.min(this.#told, this.#passed()));
  }

  /** Forgets what does not count any more. */
  advance(nowMs: number): void {
    if (nowMs < this.#steadyUntilMs && nowMs >= (this.#span?.fromMs ?? 0)) return;
    const isOver = ({ endsMs, unsaved }: SpentSpan) => endsMs <= nowMs && isNothing(unsaved);
    if (this.#slots.some(isOver)) this.#slots = this.#slots.filter((slot) => !isOver(slot));
    this.#sum(nowMs);
    this.#span = this.#spans(nowMs);
    this.#slot = undefined;
    const ends = this.#slots.map(({ endsMs }) => endsMs).filter((endsMs) => endsMs > nowMs);
    this.#steadyUntilMs = Math.min(this.#span.untilMs, ...ends);
    this.#tellFrom(Math.min(this.#told, this.#passed()));
  }

  /** Why a request that costs at most `bound` is not let in; undefined: it is. */
  refusalOf(bound: Amounts, nowMs: number): OverBudget | undefined {
    const { limits, isStrict, id, isRate, namesBackend, whenExceeded } = this.#rule;
    for (const { name, most } of limits) {
      const spent = amountOf(this.#spent, name);
      // A request is one request: of that nothing has to be guessed.
      const isExact = isStrict || name === "requests";
      const asked = isExact ? amountOf(bound, name) : 0;
      const held = isExact ? amountOf(this.#reserved, name) : 0;
      if (isExact ? spent + held + asked <= most : spent < most) continue;
      return {
        rule: id,
        subject: this.subject,
        amount: name,
        spent,
        held,
        asked,
        limit: most,
        freeAtMs: this.#freeAt(name, most - asked, nowMs),
        isRate,
        namesBackend,
        useModel: typeof whenExceeded === "object" ? whenExceeded.use_model : undefined,
      };
    }
    return undefined;
  }

  reserve(bound: Amounts): void {
    add(this.#reserved, bound);
  }

  /** A request is over for which `bound` was set aside. Returns the thresholds that it has crossed, if any. */
  settle(bound: Amounts, spent: Amounts, nowMs: number): Threshold[] | undefined {
    subtract(this.#reserved, bound);
    if (isNothing(spent)) return undefined;
    this.advance(nowMs);
    add(this.#current(nowMs).unsaved, spent);
    this.isSaved = false;
    add(this.#spent, spent);
    const { limits } = this.#rule;
    for (let place = 0; place < limits.length; place++) {
      const { name } = limits[place] as Rule["limits"][number];
      if (amountOf(this.#spent, name) >= (this.#nextAt[place] as number)) return this.#crossed();
    }
    return undefined;
  }

  #crossed(): Threshold[] {
    const passed = this.#passed();
    const crossed = this.#rule.thresholds.slice(this.#told, passed).map((share) => this.#threshold(share));
    this.#tellFrom(Math.max(this.#told, passed));
    return crossed;
  }

  #tellFrom(told: number): void {
    const { limits, thresholds } = this.#rule;
    this.#told = told;
    const next = thresholds[told] ?? Number.POSITIVE_INFINITY;
    this.#nextAt = limits.map(({ most }) => (most === 0 ? Number.POSITIVE_INFINITY : most * next));
  }

  /** What the store has to be given. */
  unsaved(): { row: SpentRow; saved(total: Amounts): void }[] {
    const { id: rule, window } = this.#rule;
    return this.#slots
      .filter((slot) => !isNothing(slot.unsaved))
      .map((slot) => ({
        row: {
          rule,
          window: windowText(window),
          subject: this.subject,
          fromMs: slot.fromMs,
          endsMs: slot.endsMs,
          ...slot.unsaved,
        },
        saved: (total) => {
          add(slot.saved, slot.unsaved);
          Object.assign(slot.unsaved, NOTHING);
          this.isSaved = true;
          if (Bun.deepEquals(slot.saved, total)) return;
          // Another process has added to it.
          Object.assign(slot.saved, total);
          this.#steadyUntilMs = Number.NEGATIVE_INFINITY;
        },
      }));
  }

  #current(nowMs: number): SpentSpan {
    const span = this.#span ?? this.#spans(nowMs);
    this.#slot ??= this.#slots.find(({ fromMs }) => fromMs === span.fromMs);
    if (this.#slot === undefined) {
      this.#slot = newSlot(span.fromMs, span.endsMs, { ...NOTHING });
      this.#slots.push(this.#slot);
      this.#steadyUntilMs = Math.min(this.#steadyUntilMs, span.endsMs);
    }
    return this.#slot;
  }

  #sum(nowMs: number): void {
    Object.assign(this.#spent, NOTHING);
    for (const { saved, unsaved, endsMs } of this.#slots) {
      if (endsMs <= nowMs) continue;
      add(this.#spent, saved);
      add(this.#spent, unsaved);
    }
  }

  /** When so much and no more is spent, if nothing is added. */
  #freeAt(name: Rule["limits"][number]["name"], most: number, nowMs: number): number {
    let spent = amountOf(this.#spent, name);
    let freeAtMs = this.#spans(nowMs).untilMs;
    for (const slot of this.#slots.toSorted((a, b) => a.endsMs - b.endsMs)) {
      if (slot.endsMs <= nowMs) continue;
      freeAtMs = slot.endsMs;
      spent -= amountOf(slot.saved, name) + amountOf(slot.unsaved, name);
      if (spent < most || (spent === most && most > 0)) break;
    }
    return freeAtMs;
  }

  /** The largest share of any of its limits that is spent; of a limit of 0, all of it. */
  get share(): number {
    let largest = 0;
    for (const limit of this.#rule.limits) largest = Math.max(largest, this.#shareOf(limit));
    return largest;
  }

  #passed(): number {
    const { share } = this;
    let passed = 0;
    for (const threshold of this.#rule.thresholds) if (share >= threshold) passed++;
    return passed;
  }

  #threshold(share: number): Threshold {
    const { id, limits } = this.#rule;
    const fullest = limits.reduce((one, other) => (this.#shareOf(other) > this.#shareOf(one) ? other : one));
    const { name, most } = fullest;
    return { rule: id, subject: this.subject, share, amount: name, spent: amountOf(this.#spent, name), limit: most };
  }

  #shareOf({ name, most }: Rule["limits"][number]): number {
    return most === 0 ? 1 : amountOf(this.#spent, name) / most;
  }
}

function newSlot(fromMs: number, endsMs: number, saved: Amounts): SpentSpan {
  return { fromMs, endsMs, saved, unsaved: { ...NOTHING } };
}
