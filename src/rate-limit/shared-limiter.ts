// The limits of several gateways together: their buckets are in Redis. While that is away, each gateway has its own.

import type { Redis, RedisClient } from "../redis/redis.ts";
import { type BucketMode, runBuckets } from "./bucket-script.ts";
import { type Decision, decisionOf, type LimitScope } from "./decision.ts";
import { createLimitRules, type LimitQuery, type LimitRulesParts, nameOfClient } from "./limit-rules.ts";
import type { Limiter } from "./limiter.ts";
import { type BucketPolicy, bucketPolicy, look } from "./token-bucket.ts";

interface SharedLimiterParts extends LimitRulesParts {
  redis: Redis;
  /** Begins the keys of all buckets. */
  prefix: string;
  /** Decides while the server is away. */
  own: Limiter;
  now(): number;
  wallTime(): number;
}

/** A bucket that concerns a request. */
interface Concern {
  scope: LimitScope;
  /** Part of its key; own-key: the limit that was written for one key. */
  kind: LimitScope | "own-key";
  name: string;
  policy: BucketPolicy;
}

/** A backend that has no token is not asked about again for so long at least. */
const SHORTEST_REFUSAL_MS = 1;

/** Refusals of backends that are remembered; the configuration has seldom as many backends. */
const MAX_REFUSALS = 10_000;

/** The first command of a connection: that the server runs the script, on several keys as a cluster does not, and may write. */
export async function checkBuckets(client: RedisClient, prefix: string): Promise<void> {
  const policy = bucketPolicy(1_000_000, 1000, 1_000_000);
  const buckets = ["check", "check:2"].map((name) => ({ key: prefix + name, policy }));
  await runBuckets(client, "take", buckets, "check");
}

export function createSharedLimiter({ redis, prefix, own, now, wallTime, ...ruled }: SharedLimiterParts): Limiter {
  const rules = createLimitRules(ruled);
  const { limitsRequests, hasBypassKeys, limitsBackends, isExempt } = rules;
  /** Refusals by the server for backends without a token, kept until they have one. */
  const refusals = new Map<string, { decision: Decision; untilMs: number }>();
  let turns = 0;

  function clientConcerns(query: LimitQuery): Concern[] {
    const { client } = rules;
    return client === undefined ? [] : [{ scope: "client", kind: "client", name: nameOfClient(query), policy: client }];
  }

  function concernsOf(query: LimitQuery): Concern[] {
    const concerns = clientConcerns(query);
    const { keyId } = query;
    const ownKey = rules.own(query);
    const policy = ownKey ?? (keyId === undefined ? undefined : rules.key);
    if (keyId !== undefined && policy !== undefined) {
      concerns.push({ scope: "key", kind: ownKey === undefined ? "key" : "own-key", name: keyId, policy });
    }
    if (rules.global !== undefined) {
      concerns.push({ scope: "global", kind: "global", name: "all", policy: rules.global });
    }
    return concerns;
  }

  /** Undefined, now or later, where the server does not decide. */
  function ask(mode: BucketMode, concerns: readonly Concern[]): Promise<Decision | undefined> | undefined {
    const buckets = concerns.map(({ kind, name, policy }) => ({ key: `${prefix}${kind}:${name}`, policy }));
    turns++;
    const turn = String(turns);
    return redis.ask(async (client) => {
      const { allowed, index, parts } = await runBuckets(client, mode, buckets, turn);
      const { scope, policy } = concerns[index] as Concern;
      const reading = look({ policy, parts, atUs: 0 }, 0);
      return decisionOf({ ...reading, allowed }, scope, policy, wallTime());
    });
  }

  /** The server's decision, or the process's own while the server does not answer. */
  function decide<Answer>(
    asked: Promise<Decision | undefined> | undefined,
    read: (decision: Decision) => Answer,
    alone: () => Answer | Promise<Answer>,
  ): Answer | Promise<Answer> {
    if (asked === undefined) return alone();
    return asked.then((decision) => (decision === undefined ? alone() : read(decision)));
  }

  const refusalIn = (decision: Decision) => (decision.allowed ? undefined : decision);

  function refusalOf(name: string): Decision | undefined {
    const known = refusals.get(name);
    const leftMs = known === undefined ? 0 : known.untilMs - now();
    if (known === undefined || leftMs <= 0) return undefined;
    return { ...known.decision, retryAfterMs: leftMs };
  }

  function noteBackend(name: string, decision: Decision): boolean {
    if (decision.allowed) refusals.delete(name);
    else {
      if (refusals.size >= MAX_REFUSALS) refusals.clear();
      refusals.set(name, { decision, untilMs: now() + Math.max(SHORTEST_REFUSAL_MS, decision.retryAfterMs) });
    }
    return decision.allowed;
  }

  return {
    limitsRequests,
    hasBypassKeys,
    limitsBackends,
    takesLater: limitsBackends,

    take(query) {
      if (isExempt(query)) return undefined;
      const concerns = concernsOf(query);
      if (concerns.length === 0) return undefined;
      return decide<Decision | undefined>(
        ask("take", concerns),
        (decision) => decision,
        () => own.take(query),
      );
    },

    takeForGuess(query) {
      const concerns = isExempt(query) ? [] : clientConcerns(query);
      if (concerns.length === 0) return undefined;
      return decide(ask("take", concerns), refusalIn, () => own.takeForGuess(query));
    },

    guessRefusal(query) {
      const concerns = isExempt(query) ? [] : clientConcerns(query);
      if (concerns.length === 0) return undefined;
      return decide(ask("look", concerns), refusalIn, () => own.guessRefusal(query));
    },

    putBack(query) {
      const concerns = isExempt(query) ? [] : concernsOf(query);
      if (concerns.length > 0 && ask("put", concerns) === undefined) own.putBack(query);
    },

    backendHasRoom: (name) => (redis.isThere ? refusalOf(name) === undefined : own.backendHasRoom(name)),

    takeBackend(name) {
      const policy = rules.backend;
      if (policy === undefined) return true;
      return decide(
        ask("take", [{ scope: "backend", kind: "backend", name, policy }]),
        (decision) => noteBackend(name, decision),
        () => own.takeBackend(name),
      );
    },

    backendRefusal(names) {
      if (!redis.isThere) return own.backendRefusal(names);
      let soonest: Decision | undefined;
      for (const name of names) {
        const refusal = refusalOf(name);
        if (refusal === undefined) return undefined;
        if (soonest === undefined || refusal.retryAfterMs < soonest.retryAfterMs) soonest = refusal;
      }
      return soonest;
    },

    get size() {
      return own.size;
    },
  };
}
