// One budget: what its rule lets one subject spend, what of it is spent, and what is set aside for requests under way.

import type { Linked } from "../lib/recency-list.ts";
import { type AmountName, type Amounts, add, amountOf, isNothing, NOTHING, remainder, subtract } from "./amounts.ts";
import type { OverBudget, Threshold } from "./budgets.ts";
import { type Rule, windowText } from "./rules.ts";
import type { ResetMode, SharedState, SpentSlot } from "./shared-script.ts";
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
  /** What other gateways have spent, as far as the server that they share has told. */
  readonly others: Amounts;
  /** What that server has of the first two; undefined: nothing, or it has forgotten. */
  told: Amounts | undefined;
  /** The file has the others as they are. */
  isCopied: boolean;
}

/** The server may have forgotten a span that ends so soon. */
const CLOCK_MARGIN_MS = 1_000;

export class Account implements Linked<Account> {
  older: Account | undefined;
  newer: Account | undefined;
  readonly subject: string;
  /** False once it made room for others: then the ledger has another one, or none. */
  isKept = true;
  /** False while the store could not tell what was spent before. */
  isLoaded = false;
  #rule: Rule;
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
  #spans: SpanAt;
  /** What was spent before does not count: the time in the rule, or that which another gateway has told. */
  #resetAtMs: number;
  #resetMode: ResetMode = "first";
  /** The server that has been told everything, by the time of its beginning. */
  #toldTo: number | undefined;
  readonly #heldByOthers: Amounts = { ...NOTHING };
  /** Requests that wait for a decision of the server. */
  waiting = 0;
  /** False where the file lacks what others have spent. */
  isCopySaved = true;

  constructor(rule: Rule, subject: string) {
    this.#rule = rule;
    this.subject = subject;
    this.#resetAtMs = rule.resetOf(subject);
    this.#spans = this.#resetAtMs === rule.resetAtMs ? rule.spans : rule.spansSince(this.#resetAtMs);
  }

  get rule(): Rule {
    return this.#rule;
  }

  get spent(): Readonly<Amounts> {
    return this.#spent;
  }

  /** By this process. */
  get reserved(): Readonly<Amounts> {
    return this.#reserved;
  }

  /** By all gateways. */
  get held(): Readonly<Amounts> {
    if (isNothing(this.#heldByOthers)) return this.#reserved;
    const held = { ...this.#reserved };
    add(held, this.#heldByOthers);
    return held;
  }

  get spans(): SpanAt {
    return this.#spans;
  }

  /** All of it is in the store. */
  isSaved = true;

  /** Nothing is set aside: every reservation holds one request. */
  get isIdle(): boolean {
    return this.#reserved.requests === 0 && this.waiting === 0;
  }

  /** Takes what the store knows in place of what was known, except for what it has not been given. */
  load(rows: readonly SpentRow[], copies: readonly SpentRow[], nowMs: number): void {
    const before = this.#slots;
    this.#slots = rows.map(({ fromMs, endsMs, cost, input, output, requests }) => {
      return newSlot(fromMs, endsMs, { cost, input, output, requests });
    });
    this.#toldTo = undefined;
    for (const { fromMs, endsMs, cost, input, output, requests } of copies) {
      Object.assign(this.#slotOf(fromMs, endsMs).others, { cost, input, output, requests });
    }
    for (const { fromMs, endsMs, unsaved, others, told } of before) {
      if (isNothing(unsaved) && isNothing(others) && told === undefined) continue;
      const slot = this.#slotOf(fromMs, endsMs);
      add(slot.unsaved, unsaved);
      slot.told = told;
      if (!isNothing(others)) Object.assign(slot.others, others);
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
    const before = this.#rule;
    this.#rule = rule;
    const resetAtMs = rule.resetOf(this.subject);
    const isReset = before.resetOf(this.subject) !== resetAtMs;
    if (isReset) this.#resetMode = "change";
    this.#beginAt(this.#resetMode === "follow" ? this.#resetAtMs : resetAtMs);
    if (!Bun.deepEquals(before.window, rule.window) || isReset) this.isLoaded = false;
    else this.#tellFrom(Math.min(this.#told, this.#passed()));
  }

  #beginAt(resetAtMs: number): void {
    const { spans, spansSince } = this.#rule;
    this.#resetAtMs = resetAtMs;
    this.#spans = resetAtMs === this.#rule.resetAtMs ? spans : spansSince(resetAtMs);
    this.#span = undefined;
    this.#slot = undefined;
    this.#steadyUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Another gateway has reset the budget, or taken its reset back. */
  resetTo(resetAtMs: number, nowMs: number): void {
    if (resetAtMs === this.#resetAtMs) return;
    this.#beginAt(resetAtMs);
    this.isLoaded = false;
    this.advance(nowMs);
  }

  /** What the server is to know. `server`: the time of its beginning. */
  toShare(server: number, nowMs: number) {
    const { fromMs, untilMs } = this.#spans(nowMs);
    const tellsAll = this.#toldTo !== server;
    this.#toldTo = server;
    const spent: SpentSlot[] = [];
    let isNew = tellsAll;
    for (const slot of this.#slots) {
      if (slot.endsMs <= nowMs) continue;
      const own = ownOf(slot);
      if (isNothing(own) || (!tellsAll && slot.told !== undefined && Bun.deepEquals(own, slot.told))) continue;
      isNew ||= slot.told === undefined;
      slot.told = own;
      spent.push({ fromMs: slot.fromMs, endsMs: slot.endsMs, ...own });
    }
    return {
      ...{ fromMs, untilMs, resetAtMs: this.#resetAtMs, resetMode: this.#resetMode, spent },
      ...{ held: { ...this.#reserved }, known: { ...this.#spent } },
      /** The server may not know its name. */
      isNew: isNew && this.subject !== "",
    };
  }

  /** The server may not know of what it was told. */
  tellAgain(): void {
    this.#toldTo = undefined;
    Object.assign(this.#heldByOthers, NOTHING);
  }

  /**
   * What all gateways have spent together, as a server says that may be too young to have heard of all of them. Returns the
   * thresholds that were crossed.
   */
  merge({ heldByOthers, spent }: SharedState, nowMs: number, isYoung: boolean): Threshold[] {
    this.#resetMode = "follow";
    Object.assign(this.#heldByOthers, heldByOthers);
    const known = new Map(spent.map((slot) => [slot.fromMs, slot]));
    for (const { fromMs, endsMs } of spent) this.#slotOf(fromMs, endsMs);
    for (const slot of this.#slots) {
      const total = known.get(slot.fromMs);
      // What is over is kept as it was last known.
      if (total === undefined && slot.endsMs <= nowMs + CLOCK_MARGIN_MS) continue;
      const others = remainder(total ?? NOTHING, slot.told ?? NOTHING);
      if (isYoung) add(others, remainder(slot.others, others));
      if (Bun.deepEquals(others, slot.others)) continue;
      Object.assign(slot.others, others);
      slot.isCopied = false;
      this.isCopySaved = false;
    }
    this.#steadyUntilMs = Number.NEGATIVE_INFINITY;
    this.#sum(nowMs);
    const crossed = this.#passed() > this.#told ? this.#crossed() : [];
    this.advance(nowMs);
    return crossed;
  }

  /** A copy of what others have spent, for the file. */
  copies(): SpentRow[] {
    const { id: rule, window } = this.#rule;
    return this.#slots
      .filter(({ isCopied }) => !isCopied)
      .map((slot) => {
        const { fromMs, endsMs, others } = slot;
        slot.isCopied = true;
        return { rule, window: windowText(window), subject: this.subject, fromMs, endsMs, ...others };
      });
  }

  #slotOf(fromMs: number, endsMs: number): SpentSpan {
    let slot = this.#slots.find((known) => known.fromMs === fromMs);
    if (slot === undefined) {
      slot = newSlot(fromMs, endsMs, { ...NOTHING });
      this.#slots.push(slot);
    }
    return slot;
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
    const { limits } = this.#rule;
    for (let place = 0; place < limits.length; place++) {
      const { name, most } = limits[place] as Rule["limits"][number];
      const spent = amountOf(this.#spent, name);
      const isOver = this.isExact(name)
        ? spent + amountOf(this.held, name) + amountOf(bound, name) > most
        : spent >= most;
      if (isOver) return this.refusalBy(place, bound, nowMs);
    }
    return undefined;
  }

  /** True where what is set aside counts. A request is one request: of that nothing has to be guessed. */
  isExact(name: AmountName): boolean {
    return this.#rule.isStrict || name === "requests";
  }

  /** The refusal by one of its limits. */
  refusalBy(place: number, bound: Amounts, nowMs: number): OverBudget {
    const { limits, id, isRate, namesBackend, whenExceeded } = this.#rule;
    const { name, most } = limits[place] as Rule["limits"][number];
    const isExact = this.isExact(name);
    const asked = isExact ? amountOf(bound, name) : 0;
    return {
      rule: id,
      subject: this.subject,
      amount: name,
      spent: amountOf(this.#spent, name),
      held: isExact ? amountOf(this.held, name) : 0,
      asked,
      limit: most,
      freeAtMs: this.#freeAt(name, most - asked, nowMs),
      isRate,
      namesBackend,
      useModel: typeof whenExceeded === "object" ? whenExceeded.use_model : undefined,
    };
  }

  reserve(bound: Amounts): void {
    add(this.#reserved, bound);
  }

  /** What is set aside does not count any more. */
  giveBack(): void {
    Object.assign(this.#reserved, NOTHING);
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
    for (const { fromMs, saved, unsaved, others, endsMs } of this.#slots) {
      if (endsMs <= nowMs || fromMs < this.#resetAtMs) continue;
      add(this.#spent, saved);
      add(this.#spent, unsaved);
      add(this.#spent, others);
    }
  }

  /** When so much and no more is spent, if nothing is added. */
  #freeAt(name: Rule["limits"][number]["name"], most: number, nowMs: number): number {
    let spent = amountOf(this.#spent, name);
    let freeAtMs = this.#spans(nowMs).untilMs;
    for (const slot of this.#slots.toSorted((a, b) => a.endsMs - b.endsMs)) {
      if (slot.endsMs <= nowMs || slot.fromMs < this.#resetAtMs) continue;
      freeAtMs = slot.endsMs;
      spent -= amountOf(ownOf(slot), name) + amountOf(slot.others, name);
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
  return { fromMs, endsMs, saved, unsaved: { ...NOTHING }, others: { ...NOTHING }, told: undefined, isCopied: true };
}

function ownOf({ saved, unsaved }: SpentSpan): Amounts {
  const own = { ...saved };
  add(own, unsaved);
  return own;
}
