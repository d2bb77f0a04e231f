// Who may make a request now: the buckets of clients, keys, backends and of all together (docs/resilience.md).

import type { Eventually } from "../lib/eventually.ts";
import { type Linked, RecencyList } from "../lib/recency-list.ts";
import { type Decision, decisionOf, type LimitScope } from "./decision.ts";
import { createLimitRules, type LimitQuery, type LimitRulesParts, nameOfClient } from "./limit-rules.ts";
import {
  type Bucket,
  type BucketPolicy,
  type BucketReading,
  changePolicy,
  earn,
  fullBucket,
  isFull,
  look,
  putBack,
  take,
  takeAll,
} from "./token-bucket.ts";

export interface Limiter {
  /** False when no request can be refused here; then the client's address is not needed. */
  readonly limitsRequests: boolean;
  /** False when the key that a request was sent with says nothing; `keyId` does. */
  readonly hasBypassKeys: boolean;
  /** False when backends have no limit. */
  readonly limitsBackends: boolean;
  /** One token of the client, its key and all together, or none of any. Undefined when no limit concerns the caller. */
  take(query: LimitQuery): Eventually<Decision | undefined>;
  /** One token of the client alone, for credentials that were wrong; the refusal when it has none. */
  takeForGuess(query: LimitQuery): Eventually<Decision | undefined>;
  /** The same refusal, before credentials are looked at; takes nothing. */
  guessRefusal(query: LimitQuery): Eventually<Decision | undefined>;
  /** Undoes an admitted `take`, for a request that was refused afterwards without any backend being asked. */
  putBack(query: LimitQuery): void;
  /** True if `takeBackend` would succeed now, as far as that is known here; takes nothing. */
  backendHasRoom(name: string): boolean;
  /** True if `takeBackend` returns a promise. */
  readonly takesLater: boolean;
  /** One token of the backend; false when it has none, and then nothing is taken. */
  takeBackend(name: string): Eventually<boolean>;
  /** The refusal when none of these backends has room: that of the one that has room first. */
  backendRefusal(names: readonly string[]): Decision | undefined;
  /** Number of buckets in memory. */
  readonly size: number;
}

export interface LimiterParts extends LimitRulesParts {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wallTime(): number;
  /** Most buckets kept per kind of limit. */
  maxEntries?: number;
  /** Makes it unknown outside which clients share a slot (see createBuckets). */
  seed?: number;
  /** The limiter in whose place this one comes, and which has its buckets from then on: their level stays. */
  previous?: MemoryLimiter | undefined;
}

/** Decides without a promise. */
export interface MemoryLimiter extends Limiter {
  take(query: LimitQuery): Decision | undefined;
  takeForGuess(query: LimitQuery): Decision | undefined;
  guessRefusal(query: LimitQuery): Decision | undefined;
  takeBackend(name: string): boolean;
  /** Taken over by the limiter that replaces this one. */
  readonly buckets: AllBuckets;
}

interface AllBuckets {
  clients: Buckets | undefined;
  keys: Buckets | undefined;
  /** Of callers with a limit of their own. */
  own: Buckets | undefined;
  backends: Buckets | undefined;
  everyone: Bucket | undefined;
}

const MAX_ENTRIES = 50_000;

export function createLimiter(options: LimiterParts): MemoryLimiter {
  const { now, wallTime, maxEntries = MAX_ENTRIES, seed = 0 } = options;
  const rules = createLimitRules(options);
  const { limitsRequests, hasBypassKeys, limitsBackends, isExempt } = rules;
  const previous: AllBuckets | undefined = options.previous?.buckets;

  function bucketsOf(policy: BucketPolicy | undefined, known: Buckets | undefined): Buckets | undefined {
    if (policy === undefined) return undefined;
    known?.change(policy, now());
    return known ?? createBuckets(policy, maxEntries, seed);
  }
  function bucketOf(policy: BucketPolicy, known: Bucket | undefined): Bucket {
    if (known !== undefined) changePolicy(known, policy, now());
    return known ?? fullBucket(policy, now());
  }
  const clients = bucketsOf(rules.client, previous?.clients);
  const keys = bucketsOf(rules.key, previous?.keys);
  const backends = bucketsOf(rules.backend, previous?.backends);
  const everyone = rules.global && bucketOf(rules.global, previous?.everyone);
  const all: AllBuckets = { clients, keys, own: previous?.own, backends, everyone };

  function ownBucket(query: LimitQuery, nowMs: number): NamedBucket | undefined {
    const policy = rules.own(query);
    if (policy === undefined) return undefined;
    all.own ??= createBuckets(policy, maxEntries, seed);
    return all.own.find(query.keyId as string, nowMs, policy);
  }

  function decide(reading: BucketReading, scope: LimitScope, policy: BucketPolicy, nowMs: number): Decision {
    return decisionOf(reading, scope, policy, wallTime() - nowMs);
  }

  return {
    limitsRequests,
    hasBypassKeys,
    limitsBackends,
    takesLater: false,
    buckets: all,

    take(query: LimitQuery): Decision | undefined {
      if (isExempt(query)) return undefined;
      const nowMs = now();
      const { keyId } = query;
      const involved: Bucket[] = [];
      const scopes: LimitScope[] = [];
      const clientBucket = clients?.find(nameOfClient(query), nowMs);
      if (clientBucket !== undefined) {
        involved.push(clientBucket);
        scopes.push("client");
      }
      const own = ownBucket(query, nowMs);
      const commonBucket = keyId === undefined || own !== undefined ? undefined : keys?.find(keyId, nowMs);
      const keyBucket = own ?? commonBucket;
      if (keyBucket !== undefined) {
        involved.push(keyBucket);
        scopes.push("key");
      }
      if (everyone !== undefined) {
        involved.push(everyone);
        scopes.push("global");
      }
      if (involved.length === 0) return undefined;

      const result = takeAll(involved, nowMs);
      if (result.allowed) {
        // Only now: refused strangers leave their buckets full, and full buckets need no memory.
        if (clientBucket !== undefined) clients?.keep(clientBucket, nowMs);
        if (commonBucket !== undefined) keys?.keep(commonBucket, nowMs);
        if (own !== undefined) all.own?.keep(own, nowMs);
      }
      return decide(result, scopes[result.index] as LimitScope, (involved[result.index] as Bucket).policy, nowMs);
    },

    takeForGuess(query: LimitQuery): Decision | undefined {
      if (clients === undefined || isExempt(query)) return undefined;
      const nowMs = now();
      const bucket = clients.find(nameOfClient(query), nowMs);
      const reading = take(bucket, nowMs);
      if (!reading.allowed) return decide(reading, "client", bucket.policy, nowMs);
      clients.keep(bucket, nowMs);
      return undefined;
    },

    guessRefusal(query: LimitQuery): Decision | undefined {
      if (clients === undefined || isExempt(query)) return undefined;
      const nowMs = now();
      const reading = look(clients.find(nameOfClient(query), nowMs), nowMs);
      return reading.allowed ? undefined : decide(reading, "client", clients.policy, nowMs);
    },

    putBack(query: LimitQuery): void {
      if (isExempt(query)) return;
      const nowMs = now();
      const { keyId } = query;
      const keyBucket = ownBucket(query, nowMs) ?? (keyId === undefined ? undefined : keys?.peek(keyId));
      // A bucket that was forgotten meanwhile was full, or left its debt behind, which stays as it is.
      for (const bucket of [clients?.peek(nameOfClient(query)), keyBucket, everyone]) {
        if (bucket !== undefined) putBack(bucket, nowMs);
      }
    },

    backendHasRoom(name: string): boolean {
      const bucket = backends?.peek(name);
      if (bucket === undefined && backends?.hasDebts !== true) return true;
      const nowMs = now();
      return look(bucket ?? (backends as Buckets).find(name, nowMs), nowMs).allowed;
    },

    takeBackend(name: string): boolean {
      if (backends === undefined) return true;
      const nowMs = now();
      const bucket = backends.find(name, nowMs);
      const { allowed } = take(bucket, nowMs);
      if (allowed) backends.keep(bucket, nowMs);
      return allowed;
    },

    backendRefusal(names: readonly string[]): Decision | undefined {
      if (backends === undefined) return undefined;
      const nowMs = now();
      let soonest: BucketReading | undefined;
      for (const name of names) {
        const found = look(backends.find(name, nowMs), nowMs);
        if (found.allowed) return undefined;
        if (soonest === undefined || found.retryAfterMs < soonest.retryAfterMs) soonest = found;
      }
      return soonest === undefined ? undefined : decide(soonest, "backend", backends.policy, nowMs);
    },

    get size() {
      return (clients?.size ?? 0) + (keys?.size ?? 0) + (all.own?.size ?? 0) + (backends?.size ?? 0);
    },
  };
}

interface NamedBucket extends Bucket, Linked<NamedBucket> {
  readonly name: string;
  isKept: boolean;
}

type Buckets = ReturnType<typeof createBuckets>;

/** How many of the least recently used buckets are looked at for full ones before one that is not full must go. */
const LOOKED_AT = 16;
const SLOTS = 16_384;

/**
 * Buckets by name, bounded in number. Full ones are forgotten first, as that changes nothing. When none of the oldest
 * is full, the least recently used one goes, but not its debt: what it was short of stays in one of a fixed number of
 * slots, chosen by its name, and a new name in that slot starts with no more credit than the slot has. So an
 * attacker who sends from ever new addresses wins no fresh allowance for an old one. The price is paid only during
 * such an attack: a stranger may start with an emptier bucket, which fills at the usual rate.
 */
function createBuckets(firstPolicy: BucketPolicy, maxEntries: number, seed: number) {
  let policy = firstPolicy;
  const buckets = new Map<string, NamedBucket>();
  const uses = new RecencyList<NamedBucket>();
  let debts: (Bucket | undefined)[] | undefined;

  function slotOf(name: string): number {
    return Bun.hash.xxHash32(name, seed) % SLOTS;
  }

  function forget(bucket: NamedBucket): void {
    buckets.delete(bucket.name);
    uses.remove(bucket);
    bucket.isKept = false;
  }

  function makeRoom(nowMs: number): void {
    let looked = 0;
    for (const bucket of uses) {
      // A little is tidied with every new bucket, so that the memory follows the number of active clients.
      if (looked >= (buckets.size < maxEntries ? 2 : LOOKED_AT)) break;
      looked++;
      if (isFull(bucket, nowMs)) forget(bucket);
    }
    const { oldest } = uses;
    if (oldest === undefined || buckets.size < maxEntries) return;
    forget(oldest);
    const { name, parts, atUs, policy: own } = oldest;
    debts ??= new Array(SLOTS).fill(undefined);
    const slot = slotOf(name);
    const debt = debts[slot];
    if (debt !== undefined) earn(debt, nowMs);
    if (debt === undefined || parts < debt.parts) debts[slot] = { policy: own, parts, atUs };
  }

  function newBucket(name: string, nowMs: number, own: BucketPolicy): NamedBucket {
    const debt = debts?.[slotOf(name)];
    if (debt !== undefined) earn(debt, nowMs);
    const { parts, atUs } = debt ?? fullBucket(own, nowMs);
    return {
      ...{ name, policy: own, parts: Math.min(parts, own.fullParts), atUs },
      ...{ isKept: false, older: undefined, newer: undefined },
    };
  }

  return {
    get policy(): BucketPolicy {
      return policy;
    },
    /** Each client keeps its credit; a client with full credit has the full new one. */
    change(next: BucketPolicy, nowMs: number): void {
      if (Bun.deepEquals(policy, next)) return;
      for (const bucket of uses) {
        if (isFull(bucket, nowMs)) forget(bucket);
        else changePolicy(bucket, next, nowMs);
      }
      for (const debt of debts ?? []) if (debt !== undefined) changePolicy(debt, next, nowMs);
      policy = next;
    },
    get size(): number {
      return buckets.size;
    },
    /** True if a bucket that was not full has been forgotten. */
    get hasDebts(): boolean {
      return debts !== undefined;
    },
    peek: (name: string): Bucket | undefined => buckets.get(name),
    /**
     * The bucket of a name, which becomes the most recently used; a new one is kept only when `keep` is called.
     * @param own - its policy, of the same window
     */
    find(name: string, nowMs: number, own = policy): NamedBucket {
      const known = buckets.get(name);
      if (known === undefined) return newBucket(name, nowMs, own);
      uses.use(known);
      if (known.policy !== own) changePolicy(known, own, nowMs);
      return known;
    },
    /** The bucket that was found last under its name. */
    keep(bucket: NamedBucket, nowMs: number): void {
      if (bucket.isKept) return;
      makeRoom(nowMs);
      bucket.isKept = true;
      buckets.set(bucket.name, bucket);
      uses.add(bucket);
    },
  };
}
