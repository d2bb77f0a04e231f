// The budgets of this process: an account for each rule and subject, whose spending is written down a moment after it was
// settled. Bounded: accounts that were not used for longest are forgotten, and loaded again when they are asked for.

import type { Quota } from "../generation/quota.ts";
import type { Clock } from "../lib/clock.ts";
import type { Eventually } from "../lib/eventually.ts";
import { RecencyList } from "../lib/recency-list.ts";
import { StorageError } from "../lib/resilient-database.ts";
import type { Logger } from "../logging/logger.ts";
import { Account } from "./account.ts";
import { type AmountName, type Amounts, amountOf, counted } from "./amounts.ts";
import type { BudgetStanding, Budgets, OverBudget, Reservation, Reserved, Threshold } from "./budgets.ts";
import { type Payer, type Rule, type Rules, rememberMatches, type Spender, subjectOf, windowText } from "./rules.ts";
import type { SharedBudgets } from "./shared-budgets.ts";
import type { SpendingStore } from "./spending-store.ts";

interface LedgerParts {
  rules: Rules;
  store: SpendingStore;
  clock: Clock;
  log: Pick<Logger, "warn" | "info">;
  told: {
    /** A rule has refused a request. */
    refused(rule: string): void;
    crossed(threshold: Threshold): void;
  };
  maxAccounts?: number;
  /** Where several gateways have their budgets together. */
  together?:
    | ((told: { crossed(threshold: Threshold): void; copied(account: Account): void; isNew(): void }) => SharedBudgets)
    | undefined;
}

/** A process that is killed loses what was settled within this time. */
const SAVE_AFTER_MS = 100;
const RETRY_AFTER_MS = 1_000;
const TEND_EVERY_MS = 600_000;
const MAX_ACCOUNTS = 20_000;
/** Callers on a model and a backend whose accounts are found at once. */
const MAX_MATCHES = 20_000;
/** Budgets that a caller is shown. */
const MAX_STANDINGS = 100;
/** Subjects of a rule that are listed. */
const MAX_SUBJECTS = 1_000;

/** The counts that clients know. */
const QUOTA_NAMES: ReadonlyMap<AmountName, keyof Quota> = new Map([
  ["requests", "requests"],
  ["tokens", "tokens"],
  ["input_tokens", "inputTokens"],
  ["output_tokens", "outputTokens"],
]);

export type Ledger = ReturnType<typeof createLedger>;

export function createLedger(parts: LedgerParts) {
  const { store, clock, log, told, maxAccounts = MAX_ACCOUNTS } = parts;
  const shared = parts.together?.({
    crossed: (threshold) => told.crossed(threshold),
    copied: (account) => {
      unsaved.add(account);
      saveAfter(SAVE_AFTER_MS);
    },
    isNew: tellAll,
  });
  const wallTime = shared?.nowMs ?? clock.wallTime;
  let rules = parts.rules;
  const accounts = new Map<string, Account>();
  const uses = new RecencyList<Account>();
  const unsaved = new Set<Account>();
  /** The accounts of a spender; one that made room for others has to be found again. */
  const matches = rememberedMatches(() => rules);
  let timer: Timer | undefined;
  let tending: Timer | undefined;
  let trouble: string | undefined;
  let retryAtMs = Number.NEGATIVE_INFINITY;

  function failed(error: unknown): void {
    if (!(error instanceof StorageError)) throw error;
    if (trouble === undefined) log.warn({ reason: error.message }, "what budgets have spent is in memory only for now");
    trouble = error.message;
    retryAtMs = clock.now() + RETRY_AFTER_MS;
  }

  function worked(): void {
    if (trouble !== undefined) log.info("what budgets have spent is written down again");
    trouble = undefined;
  }

  function bringUpToDate(account: Account, nowMs: number): void {
    if (account.isLoaded) account.advance(nowMs);
    else load(account, nowMs);
  }

  function load(account: Account, nowMs: number): void {
    const { rule, subject } = account;
    if (clock.now() < retryAtMs) return;
    try {
      const window = windowText(rule.window);
      const copies = shared === undefined ? [] : store.copies(rule.id, window, subject, nowMs);
      account.load(store.of(rule.id, window, subject, nowMs), copies, nowMs);
      worked();
    } catch (error) {
      failed(error);
    }
  }

  /** What this data folder has spent, to a server that may have lost it. */
  function tellAll(): void {
    const nowMs = wallTime();
    try {
      for (const { rule: id, subject } of store.counting(nowMs, maxAccounts)) {
        const rule = rules.byId(id);
        if (rule === undefined || (subject === "") !== (rule.per === undefined)) continue;
        if (accounts.size < maxAccounts || accounts.has(nameOf(rule, subject))) accountNow(rule, subject, nowMs);
      }
    } catch (error) {
      failed(error);
    }
    for (const account of uses) {
      account.tellAgain();
      shared?.tell(account);
    }
  }

  function forget(account: Account): void {
    accounts.delete(nameOf(account.rule, account.subject));
    uses.remove(account);
    unsaved.delete(account);
    account.isKept = false;
    shared?.forget(account);
    if (shared === undefined || account.isIdle) return;
    account.giveBack();
    shared.tell(account);
  }

  /** What could not be written down goes last, and what is set aside for a request not at all. */
  function makeRoom(): void {
    save();
    for (const mayGo of [(account: Account) => account.isSaved && shared?.isUntold(account) !== true, () => true]) {
      for (const account of uses) {
        if (accounts.size < maxAccounts) return;
        if (account.isIdle && mayGo(account)) forget(account);
      }
    }
  }

  function accountOf(rule: Rule, subject: string): Account {
    const name = nameOf(rule, subject);
    const known = accounts.get(name);
    if (known !== undefined) {
      if (known.rule !== rule) {
        save();
        known.follow(rule);
      }
      return known;
    }
    if (accounts.size >= maxAccounts) makeRoom();
    tending ??= setInterval(tend, TEND_EVERY_MS);
    const account = new Account(rule, subject);
    accounts.set(name, account);
    uses.add(account);
    return account;
  }

  function accountNow(rule: Rule, subject: string, nowMs: number): Account {
    const account = accountOf(rule, subject);
    bringUpToDate(account, nowMs);
    return account;
  }

  /** The accounts of a spender, as they stand now. */
  function accountsOf(spender: Spender, nowMs: number): readonly Account[] {
    const match = matches.of(spender);
    const { accounts: found } = match;
    // While nothing has to make room soon, it does not matter which was used last.
    const isCrowded = accounts.size > maxAccounts / 2;
    for (let place = 0; place < match.rules.length; place++) {
      let account = found[place];
      if (account?.isKept !== true) {
        const rule = match.rules[place] as Rule;
        account = accountOf(rule, subjectOf(rule, spender));
        found[place] = account;
      } else if (isCrowded) uses.use(account);
      bringUpToDate(account, nowMs);
    }
    return found;
  }

  function saveAfter(delayMs: number): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      save();
    }, delayMs);
  }

  /** False where it could not be written, and is tried again. */
  function save(): boolean {
    if (unsaved.size === 0) return true;
    const changes = [...unsaved].flatMap((account) => account.unsaved());
    try {
      const totals = store.add(changes.map(({ row }) => row));
      for (const [index, { saved }] of changes.entries()) saved(totals[index] as Amounts);
      const copied = [...unsaved].filter((account) => !account.isCopySaved);
      if (copied.length > 0) store.copy(copied.flatMap((account) => account.copies()));
      for (const account of copied) account.isCopySaved = true;
      unsaved.clear();
      worked();
      return true;
    } catch (error) {
      failed(error);
      saveAfter(RETRY_AFTER_MS);
      return false;
    }
  }

  function settle(account: Account, bound: Amounts, spent: Amounts, nowMs: number): void {
    // A rule that has gone meanwhile counts no more.
    if (!account.isKept) return;
    const crossed = account.settle(bound, spent, nowMs);
    if (crossed !== undefined) for (const threshold of crossed) told.crossed(threshold);
    shared?.tell(account);
    if (account.isSaved || unsaved.has(account)) return;
    unsaved.add(account);
    saveAfter(SAVE_AFTER_MS);
  }

  function tend(): void {
    try {
      if (store.forgetStep(wallTime())) setImmediate(tend);
    } catch (error) {
      failed(error);
    }
  }

  function reservationOf(concerned: readonly Account[], bound: Amounts, nowMs: number): Reservation {
    return {
      quota: quotaNow(concerned, nowMs),
      settle(told) {
        const settledMs = wallTime();
        const spent = counted(told);
        for (const account of concerned) settle(account, bound, spent, settledMs);
      },
    };
  }

  const quotaNow = (concerned: readonly Account[], nowMs: number) => quotaOf(concerned, nowMs, shared?.aheadMs ?? 0);

  function refused(refusal: OverBudget, concerned: readonly Account[], nowMs: number): Reserved {
    told.refused(refusal.rule);
    if (shared !== undefined) refusal.freeAtMs -= shared.aheadMs;
    return { refusal: { ...refusal, quota: quotaNow(concerned, nowMs) } };
  }

  function granted(concerned: readonly Account[], bound: Amounts, nowMs: number): Reserved {
    return { refusal: undefined, reservation: reservationOf(concerned, bound, nowMs) };
  }

  function reserveAlone(concerned: readonly Account[], spender: Spender, bound: Amounts, nowMs: number): Reserved {
    // What others have set aside is not known while the server is away.
    if (shared !== undefined) for (const account of concerned) account.tellAgain();
    let refusal: OverBudget | undefined;
    for (const account of concerned) {
      if (!mayRefuse(account, spender)) continue;
      const found = account.refusalOf(bound, nowMs);
      // One that another model can answer gives way to one that it cannot.
      if (found !== undefined && (refusal === undefined || refusal.useModel !== undefined)) refusal = found;
    }
    if (refusal !== undefined) return refused(refusal, concerned, nowMs);
    for (const account of concerned) account.reserve(bound);
    return granted(concerned, bound, nowMs);
  }

  async function reserveTogether(
    { reserve }: SharedBudgets,
    found: readonly Account[],
    spender: Spender,
    bound: Amounts,
  ): Promise<Reserved> {
    const concerned = [...found];
    const mayAll = concerned.filter((account) => mayRefuse(account, spender));
    const last = mayAll.filter(({ rule }) => typeof rule.whenExceeded === "object");
    const refusing = [...mayAll.filter((account) => !last.includes(account)), ...last];
    const ruling = await reserve({ bound, accounts: concerned, refusing });
    const nowMs = wallTime();
    if (ruling === undefined) {
      for (const account of concerned) account.advance(nowMs);
      return reserveAlone(concerned, spender, bound, nowMs);
    }
    const { refusedBy } = ruling;
    if (refusedBy === undefined) return granted(concerned, bound, nowMs);
    return refused(refusedBy.account.refusalBy(refusedBy.limit, bound, nowMs), concerned, nowMs);
  }

  /** As the server knows them, of those that others may have changed. */
  async function standingsTogether(caller: Payer, { refresh }: SharedBudgets): Promise<BudgetStanding[]> {
    const nowMs = wallTime();
    await refresh(rulesOf(caller).map((rule) => accountNow(rule, subjectOf(rule, caller), nowMs)));
    return standingsOf(caller);
  }

  const rulesOf = (caller: Payer) =>
    rules
      .concerning(caller)
      .filter(({ per }) => per !== "model")
      .slice(0, MAX_STANDINGS);

  function standingsOf(caller: Payer): BudgetStanding[] {
    const nowMs = wallTime();
    return rulesOf(caller).map((rule) => {
      const { id, window, match, limits } = rule;
      const subject = subjectOf(rule, caller);
      const { spent, spans } = accountNow(rule, subject, nowMs);
      const endsAtMs = spans(nowMs).endsMs - (shared?.aheadMs ?? 0);
      return {
        ...{ rule: id, subject, window: windowText(window), models: match.model, endsAtMs },
        limits: limits.map(({ name, most }) => ({ amount: name, spent: amountOf(spent, name), limit: most })),
      };
    });
  }

  shared?.follow(() => latestOf(uses));

  return {
    get isOn() {
      return rules.all.length > 0;
    },
    get isBoundWanted() {
      return rules.hasStrict;
    },
    get countsCost() {
      return rules.countsCost;
    },
    reserve(spender: Spender, asked: Amounts): Eventually<Reserved> {
      const nowMs = wallTime();
      const concerned = accountsOf(spender, nowMs);
      if (concerned.length === 0) return { refusal: undefined, reservation: undefined };
      const bound = counted(asked);
      if (shared?.isThere) return reserveTogether(shared, concerned, spender, bound);
      return reserveAlone(concerned, spender, bound, nowMs);
    },
    quotaOf(spender: Spender): Quota | undefined {
      const nowMs = wallTime();
      return quotaNow(accountsOf(spender, nowMs), nowMs);
    },
    /** The same without asking a server that others share. */
    knownStandings: standingsOf,
    standings: (caller: Payer): Eventually<BudgetStanding[]> =>
      shared?.isThere ? standingsTogether(caller, shared) : standingsOf(caller),
    /** The rules of another configuration hold; what is set aside and what was spent stays. */
    follow(next: Rules): void {
      save();
      rules = next;
      matches.forget();
      for (const account of [...uses]) {
        const rule = ruleIn(next, account.rule);
        if (rule !== undefined && rule.per === account.rule.per) account.follow(rule);
        else forget(account);
      }
      if (shared !== undefined) tellAll();
    },
    /** Learns what other gateways have spent of these rules; of a rule with per, also by subjects that only they know. */
    async refresh(wanted: readonly Rule[]): Promise<void> {
      if (!shared?.isThere) return;
      const found: Account[] = [];
      for (const rule of wanted) {
        if (found.length >= MAX_SUBJECTS) break;
        const subjects = rule.per === undefined ? [""] : await shared.subjects(rule);
        for (const subject of subjects) found.push(accountNow(rule, subject, wallTime()));
      }
      await shared.refresh(found);
    },
    /** Every rule in force, in the order of the configuration. */
    rules: (): readonly Rule[] => rules.all,
    rule: (id: string): Rule | undefined => rules.byId(id),
    /** What its subjects have spent in the window that goes on, those with most first. Throws a StorageError. */
    subjects(rule: Rule): (Amounts & { subject: string })[] {
      const nowMs = wallTime();
      if (save()) return store.bySubject(rule, windowText(rule.window), nowMs, MAX_SUBJECTS);
      const own = [...uses].filter((account) => account.rule === rule);
      for (const account of own) bringUpToDate(account, nowMs);
      return own.map(({ subject, spent }) => ({ subject, ...spent })).slice(-MAX_SUBJECTS);
    },
    /** What was spent, span by span, the latest first. Throws a StorageError. */
    history: (rule: Rule, sinceMs: number, most: number) =>
      save() ? store.since(rule.id, windowText(rule.window), sinceMs, most) : [],
    /** The state of one subject, without anything being asked for. */
    account: (rule: Rule, subject: string) => accountNow(rule, subject, wallTime()),
    /** Those in memory, as they stand now. */
    accounts(): Iterable<Account> {
      const nowMs = wallTime();
      for (const account of uses) bringUpToDate(account, nowMs);
      return uses;
    },
    /** Why the last write failed; undefined: it did not. */
    get problem() {
      return trouble;
    },
    async stop(): Promise<void> {
      clearInterval(tending);
      clearTimeout(timer);
      save();
      if (shared !== undefined) await shared.stop();
      save();
      clearTimeout(timer);
      store.close();
    },
  } satisfies Budgets & Record<string, unknown>;
}

/** Those that were used last come first. */
function* latestOf(uses: RecencyList<Account>): Iterable<Account> {
  for (let account = uses.newest; account !== undefined; account = account.older) yield account;
}

/** The model of a budget that is spent is let in: else none would answer. */
function mayRefuse({ rule: { whenExceeded } }: Account, spender: Spender): boolean {
  return spender.isOwed !== true && whenExceeded !== "warn" && !isStandIn(whenExceeded, spender);
}

function rememberedMatches(rules: () => Rules) {
  const find = (spender: Spender) => ({ spender, rules: rules().matching(spender), accounts: [] as Account[] });
  return rememberMatches(MAX_MATCHES, () => rules().version, find);
}

function isStandIn(whenExceeded: Rule["whenExceeded"], { model }: Spender): boolean {
  return typeof whenExceeded === "object" && whenExceeded.use_model === model;
}

/** A key that cannot be looked up now keeps its rule: nothing else has to wait for it. */
function ruleIn(rules: Rules, before: Rule): Rule | undefined {
  try {
    return rules.byId(before.id);
  } catch {
    return before;
  }
}

function nameOf({ id }: Rule, subject: string): string {
  return `${id}\0${subject}`;
}

/** Of each count the account with the least left. */
function quotaOf(concerned: readonly Account[], nowMs: number, aheadMs: number): Quota | undefined {
  let quota: Quota | undefined;
  for (const { rule, spent, held, spans } of concerned) {
    for (const { name, most } of rule.limits) {
      const count = QUOTA_NAMES.get(name);
      if (count === undefined) continue;
      const remaining = Math.max(0, most - amountOf(spent, name) - amountOf(held, name));
      if (remaining >= (quota?.[count]?.remaining ?? Number.POSITIVE_INFINITY)) continue;
      quota ??= {};
      quota[count] = { limit: most, remaining, resetAtMs: spans(nowMs).endsMs - aheadMs };
    }
  }
  return quota;
}
