// The budgets of several gateways on one Redis server: what has to be decided or told is gathered, and one call at a time is made
// of it. So no call of a process can overtake another, and a call carries totals, which may be sent again.

import type { Clock } from "../lib/clock.ts";
import type { Redis, RedisClient } from "../redis/redis.ts";
import type { Account } from "./account.ts";
import { type Amounts, NOTHING } from "./amounts.ts";
import type { Threshold } from "./budgets.ts";
import { type Rule, windowText } from "./rules.ts";
import { type BudgetCall, readSubjects, runShared, type SharedReply } from "./shared-script.ts";

interface SharedBudgetsParts {
  /** Begins the keys of all accounts. */
  prefix(): string;
  /** Undefined: there are no rules. */
  redis(): Redis | undefined;
  /** The id of the data folder. Throws a StorageError. */
  folder(): string;
  clock: Clock;
  told: {
    crossed(threshold: Threshold): void;
    /** What others have spent has to be written down. */
    copied(account: Account): void;
    /** The server may know nothing that was told before: every account that has spent has to be told. */
    isNew(): void;
  };
}

interface Order {
  bound: Amounts;
  accounts: readonly Account[];
  /** Those that may refuse, in the order in which they are asked. */
  refusing: readonly Account[];
  decided(ruling: Ruling | undefined): void;
}

/** By the server: nothing is over, or the limit that is. */
type Ruling = { refusedBy: { account: Account; limit: number } | undefined };

/** What is set aside is given back so long after the last call of a gateway. */
const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
/** In one call; an order may have more. */
const MAX_ACCOUNTS = 200;
const MAX_ORDERS = 256;
/** A budget may be reset, or a window end, between two of them. */
const MAX_TRIES = 4;
/** Clocks that differ by less are taken to agree: a message takes as long. */
const CLOCK_JITTER_MS = 20;

export type SharedBudgets = ReturnType<typeof createSharedBudgets>;

export function createSharedBudgets({ prefix, redis, folder, clock, told }: SharedBudgetsParts) {
  const holder = crypto.randomUUID();
  const untold = new Set<Account>();
  let orders: Order[] = [];
  let number = 0;
  /** When the server began, by its clock: one that has lost its data is a new one. */
  let sinceMs = 0;
  /** What the server's clock is ahead of this one. */
  let aheadMs = 0;
  let folderId: string | undefined;
  let flight: Promise<void> | undefined;
  const renewal = setInterval(renew, RENEW_MS);
  let recent: () => Iterable<Account> = () => [];

  const nowMs = () => clock.wallTime() + aheadMs;
  const holders = () => `${prefix()}budget-holders`;
  const keyOf = ({ rule, subject }: Account) =>
    `${prefix()}budget:{${JSON.stringify([rule.id, windowText(rule.window), subject])}}`;
  const listOf = ({ id, window }: Rule) => `${prefix()}budget-subjects:{${JSON.stringify([id, windowText(window)])}}`;
  const isThere = () => redis()?.isThere === true;

  function run(client: RedisClient, call: Pick<BudgetCall, "accounts" | "orders">): Promise<SharedReply> {
    folderId ??= folder();
    return runShared(client, holders(), {
      ...call,
      holder,
      number: ++number,
      folder: folderId,
      leaseMs: LEASE_MS,
      sinceMs,
    });
  }

  function noteClock(serverMs: number): void {
    const differenceMs = serverMs - nowMs();
    if (Math.abs(differenceMs) > CLOCK_JITTER_MS) aheadMs += differenceMs;
  }

  function begin(): void {
    if (flight !== undefined || (orders.length === 0 && untold.size === 0)) return;
    // What comes in the same turn goes with it.
    flight = Promise.resolve().then(fly);
  }

  async function fly(): Promise<void> {
    let works = true;
    // Where only something has to be told, it is told with a later call.
    while (isThere() && (orders.length > 0 || (untold.size > 0 && works))) works = await callOnce();
    flight = undefined;
    for (const order of orders.splice(0)) order.decided(undefined);
  }

  /** As much as fits into one call. */
  function take(): { batch: Order[]; accounts: Account[] } {
    const accounts = new Set<Account>();
    let count = 0;
    while (count < Math.min(orders.length, MAX_ORDERS) && accounts.size < MAX_ACCOUNTS) {
      for (const account of (orders[count++] as Order).accounts) accounts.add(account);
    }
    const batch = orders.slice(0, count);
    orders = orders.slice(count);
    for (const account of untold) {
      if (accounts.size >= MAX_ACCOUNTS) break;
      accounts.add(account);
    }
    for (const account of accounts) untold.delete(account);
    return { batch, accounts: [...accounts] };
  }

  /** False where the server did not answer as it should. */
  async function callOnce(): Promise<boolean> {
    const { batch, accounts } = take();
    const reply = await ask(batch, accounts);
    if (reply === undefined) {
      for (const account of accounts) tellAgain(account);
      for (const order of batch) order.decided(undefined);
      return false;
    }
    // What was granted is set aside before anything else is sent.
    for (const [place, account] of accounts.entries()) {
      const crossed = account.merge(reply.accounts[place] as never, nowMs(), reply.isYoung);
      if (!account.isKept) continue;
      if (!account.isCopySaved) told.copied(account);
      for (const threshold of crossed) told.crossed(threshold);
    }
    for (const [place, order] of batch.entries()) {
      const refusal = reply.refusals[place];
      if (refusal === undefined) for (const account of order.accounts) account.reserve(order.bound);
      order.decided({
        refusedBy: refusal && { account: accounts[refusal.account] as Account, limit: refusal.limit },
      });
    }
    return true;
  }

  function tellAgain(account: Account): void {
    account.tellAgain();
    untold.add(account);
  }

  /** Undefined where the server does not decide. */
  async function ask(batch: readonly Order[], accounts: readonly Account[]) {
    const places = new Map(accounts.map((account, place) => [account, place]));
    const placeOf = (account: Account) => places.get(account) as number;
    const written = batch.map(({ bound, accounts: concerned, refusing }) => ({
      ...{ bound, accounts: concerned.map(placeOf) },
      refusing: refusing.map((account) => ({
        account: placeOf(account),
        limits: account.rule.limits.map(({ name, most }) => ({ name, most, isExact: account.isExact(name) })),
      })),
    }));
    for (let turn = 0; turn < MAX_TRIES; turn++) {
      const reply = await redis()?.ask((client) => {
        const told = accounts.map((account) => {
          const { isNew, ...state } = account.toShare(sinceMs, nowMs());
          const listed = isNew ? { key: listOf(account.rule), subject: account.subject } : undefined;
          return { ...state, key: keyOf(account), listed };
        });
        return run(client, { accounts: told, orders: written });
      });
      if (reply === undefined) return undefined;
      if (reply.isDone) {
        noteClock(reply.nowMs);
        return reply;
      }
      aheadMs = reply.nowMs - clock.wallTime();
      const isNew = reply.sinceMs !== sinceMs;
      sinceMs = reply.sinceMs;
      if (isNew) told.isNew();
      for (const [place, account] of accounts.entries()) {
        account.tellAgain();
        account.resetTo(reply.resets[place] as number, nowMs());
      }
    }
    return undefined;
  }

  /** The lease; and what others have spent meanwhile, of the accounts that were used last. */
  function renew(): void {
    if (!isThere()) return;
    for (const account of recent()) {
      if (untold.size >= MAX_ACCOUNTS) break;
      untold.add(account);
    }
    begin();
  }

  function decide(order: Omit<Order, "decided">): Promise<Ruling | undefined> {
    for (const account of order.accounts) account.waiting++;
    const { promise, resolve } = Promise.withResolvers<Ruling | undefined>();
    orders.push({
      ...order,
      decided(ruling) {
        for (const account of order.accounts) account.waiting--;
        resolve(ruling);
      },
    });
    begin();
    return promise;
  }

  return {
    nowMs,
    get aheadMs() {
      return aheadMs;
    },
    get isThere() {
      return isThere();
    },
    /** Accounts to bring up to date now and then, the most important first. */
    follow(accounts: () => Iterable<Account>): void {
      recent = accounts;
    },
    /** The first command of each connection: the server runs the script, and may have lost what it was told. */
    async check(client: RedisClient): Promise<void> {
      const reply = await run(client, { accounts: [], orders: [] });
      noteClock(reply.nowMs);
      sinceMs = reply.sinceMs;
      told.isNew();
    },
    /** The server is there again. */
    returned: begin,
    /** Undefined where the server does not decide. What it grants is set aside in the accounts. */
    reserve: decide,
    /** Learns what others have spent and set aside. */
    async refresh(accounts: readonly Account[]): Promise<void> {
      for (let from = 0; from < accounts.length; from += MAX_ACCOUNTS) {
        await decide({ bound: NOTHING, accounts: accounts.slice(from, from + MAX_ACCOUNTS), refusing: [] });
      }
    },
    /** Those that have spent something at any gateway. */
    subjects: async (rule: Rule): Promise<string[]> =>
      (await redis()?.ask((client) => readSubjects(client, listOf(rule), nowMs()))) ?? [],
    /** It has changed. */
    tell(account: Account): void {
      untold.add(account);
      begin();
    },
    /** It is told from the file later, if it has to be. */
    forget: (account: Account) => void untold.delete(account),
    isUntold: (account: Account) => untold.has(account),
    async stop(): Promise<void> {
      clearInterval(renewal);
      await flight;
    },
  };
}
