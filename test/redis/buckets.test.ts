// The script of the buckets in a real Redis, beside the same arithmetic in memory, and what a lying server may answer.

import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { rateLimitingSection } from "../../src/config/sections/rate-limiting.ts";
import { type BucketMode, runBuckets } from "../../src/rate-limit/bucket-script.ts";
import { createLimiter } from "../../src/rate-limit/limiter.ts";
import { checkBuckets, createSharedLimiter } from "../../src/rate-limit/shared-limiter.ts";
import { type BucketPolicy, bucketPolicy } from "../../src/rate-limit/token-bucket.ts";
import type { Redis, RedisClient } from "../../src/redis/redis.ts";
import { startRedisServer } from "../support/redis-server.ts";
import { waitFor } from "../support/wait-for.ts";

const server = await startRedisServer();
const client = new Bun.RedisClient(server.url, { autoReconnect: false });
afterAll(async () => {
  client.close();
  await server.stop();
});

const policies = fc
  .tuple(fc.integer({ min: 1, max: 1_000_000 }), fc.constantFrom(1_000, 60_000), fc.integer({ min: 1, max: 1_000_000 }))
  .map(([tokens, windowMs, capacity]) => bucketPolicy(tokens, windowMs, capacity));

/** What a bucket holds, by the text that the script keeps. */
async function kept(key: string): Promise<{ parts: number; atUs: number } | undefined> {
  const text = await client.get(key);
  const [, parts, atUs] = /^(\d+) (\d+)$/.exec(text ?? "") ?? [];
  return parts === undefined ? undefined : { parts: Number(parts), atUs: Number(atUs) };
}

/** Of token-bucket.ts, in whole numbers without a bound. */
function earned({ parts, atUs }: { parts: number; atUs: number }, nowUs: number, policy: BucketPolicy): number {
  const sum = BigInt(parts) + BigInt(Math.max(0, nowUs - atUs)) * BigInt(policy.earnedPerUs);
  return sum > BigInt(policy.fullParts) ? policy.fullParts : Number(sum);
}

interface Kept {
  parts: number;
  atUs: number;
}

async function serverTimeUs(): Promise<number> {
  const [seconds, micros] = (await client.send("TIME", [])) as [string, string];
  return Number(seconds) * 1e6 + Number(micros);
}

test("it counts as the buckets in memory do, to the part", async () => {
  const bucket = fc.record({
    policy: policies,
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    ageUs: fc.nat(5_000_000),
  });
  const buckets = fc.array(bucket, { minLength: 1, maxLength: 4 });
  const modes = fc.constantFrom<BucketMode>("take", "look", "put");
  let turn = 0;
  await fc.assert(
    fc.asyncProperty(buckets, modes, async (made, mode) => {
      turn++;
      const beginUs = await serverTimeUs();
      const asked = made.map(({ policy }, index) => ({ key: `b:${turn}:${index}`, policy }));
      const before = made.map(({ policy, share, ageUs }) => ({
        parts: Math.floor(policy.fullParts * share),
        atUs: beginUs - ageUs,
      }));
      for (const [index, { parts, atUs }] of before.entries())
        await client.set(`b:${turn}:${index}`, `${parts} ${atUs}`);
      const reply = await runBuckets(client, mode, asked, String(turn));
      const after = await Promise.all(asked.map(({ key }) => kept(key)));
      const endUs = await serverTimeUs();
      const speaks = asked[reply.index]?.policy as BucketPolicy;
      if (mode === "look" || !reply.allowed) {
        expect(after).toEqual(before);
        expect(reply.allowed).toBe(reply.parts >= speaks.partsPerToken);
        return;
      }
      for (const [index, { policy }] of made.entries()) {
        const now = after[index];
        const change = mode === "take" ? -policy.partsPerToken : policy.partsPerToken;
        if (now === undefined) {
          // It was full again before anybody looked; that ends with a millisecond.
          const least = Math.min(policy.fullParts, earned(before[index] as Kept, beginUs, policy) + change);
          expect((policy.fullParts - least) / policy.earnedPerUs).toBeLessThanOrEqual(endUs - beginUs + 1_000);
          continue;
        }
        const credit = earned(before[index] as Kept, now.atUs, policy);
        expect(now.parts).toBe(Math.min(policy.fullParts, credit + change));
        expect(now.parts).toBeGreaterThanOrEqual(0);
        const leftMs = Number(await client.send("PTTL", [`b:${turn}:${index}`]));
        expect(leftMs).toBeLessThanOrEqual(Math.ceil((policy.fullParts - now.parts) / policy.earnedPerUs / 1000) + 1);
      }
    }),
    { numRuns: 400 },
  );
});

test("a refusal takes nothing of any, and the longest wait speaks", async () => {
  const [narrow, wide] = [bucketPolicy(1, 60_000, 1), bucketPolicy(5, 1_000, 5)];
  const asked = [
    { key: "r:wide", policy: wide },
    { key: "r:narrow", policy: narrow },
  ];
  expect(await runBuckets(client, "take", asked, "1")).toMatchObject({ allowed: true, index: 1, parts: 0 });
  const level = await client.get("r:wide");
  for (let count = 0; count < 50; count++) {
    expect(await runBuckets(client, "take", asked, "2")).toMatchObject({ allowed: false, index: 1 });
  }
  expect(await client.get("r:wide")).toBe(level as string);
});

test("what others have written there is a full bucket; a clock that was far ahead stops nobody", async () => {
  const policy = bucketPolicy(1, 60_000, 3);
  const garbage = ["", "x", "1", "1 2 3", "-5 7", "9e99 1", `${"9".repeat(400)} 1`];
  for (const [index, text] of garbage.entries()) {
    await client.set(`g:${index}`, text);
    const { allowed, parts } = await runBuckets(client, "take", [{ key: `g:${index}`, policy }], "t");
    expect([allowed, parts]).toEqual([true, 2 * policy.partsPerToken]);
  }
  await client.send("LPUSH", ["g:list", "1"]);
  expect(await runBuckets(client, "take", [{ key: "g:list", policy }], "t")).toMatchObject({ allowed: true });
  const future = Date.now() * 1_000 + 3_600_000_000;
  await client.set("g:future", `${policy.partsPerToken} ${future}`);
  expect(await runBuckets(client, "take", [{ key: "g:future", policy }], "t")).toMatchObject({
    allowed: true,
    parts: 0,
  });
  expect((await kept("g:future"))?.atUs).toBeLessThan(future - 3_000_000_000);
});

test("only the answer to this very question counts", async () => {
  const policy = bucketPolicy(10, 1_000, 10);
  const { fullParts, partsPerToken } = policy;
  const answers: unknown[] = [
    null,
    "OK",
    [],
    ["1", 1, 1, 0],
    ["turn", 1, 1],
    ["turn", 1, 0, 0],
    ["turn", 1, 2, 0],
    ["turn", 2, 1, 0],
    ["turn", 1, 1, -1],
    ["turn", 1, 1, fullParts + 1],
    ["turn", 1, 1, 0.5],
    ["turn", 1, "1", 0],
    ["turn", 0, 1, partsPerToken],
    ["turn", "0", 1, 0],
  ];
  const told = (answer: unknown) => ({ send: async () => answer }) as unknown as RedisClient;
  for (const answer of answers) {
    const asked = runBuckets(told(answer), "take", [{ key: "k", policy }], "turn");
    expect(await asked.catch(() => "bad")).toBe("bad");
  }
  expect(await runBuckets(told(["turn", 1, 1, 7]), "take", [{ key: "k", policy }], "turn")).toEqual({
    allowed: true,
    index: 0,
    parts: 7,
  });
});

test("a server that has forgotten the script gets it again, and one that may not write is found out", async () => {
  await client.send("SCRIPT", ["FLUSH"]);
  await checkBuckets(client, "c:");
  await client.send("ACL", ["SETUSER", "reader", "on", ">sekret", "~*", "+@read", "+@connection", "+eval", "+evalsha"]);
  const reader = new Bun.RedisClient(server.url.replace("//", "//reader:sekret@"), { autoReconnect: false });
  expect(await checkBuckets(reader, "c:").catch(() => "refused")).toBe("refused");
  reader.close();
});

test("a cluster, which runs no script on several keys, is found out", async () => {
  const cluster = await startRedisServer({ cluster: true });
  const node = new Bun.RedisClient(cluster.url, { autoReconnect: false });
  try {
    await node.send("CLUSTER", ["ADDSLOTSRANGE", "0", "16383"]);
    await waitFor("the node is a cluster", async () => (await node.set("x", "1").catch(() => "")) === "OK");
    expect(await checkBuckets(node, "c:").catch((error: Error) => error.message)).toStartWith("CROSSSLOT");
  } finally {
    node.close();
    await cluster.stop();
  }
});

/** Within this time no bucket earns a token. */
const MOMENT_MS = 250;

test("decisions are told as those of the limiter in memory", async () => {
  const rate = (requests_per_second: number, burst_capacity: number) => ({ requests_per_second, burst_capacity });
  const limits = { per_client: rate(2, 3), per_backend: rate(1, 1), per_api_key: rate(1, 2), global: rate(100, 100) };
  const settings = rateLimitingSection.schema.parse({ enabled: true, limits, bypass_keys: ["sekret-bypass"] });
  const parts = {
    settings,
    now: () => performance.now(),
    wallTime: () => Date.now(),
  };
  const redis: Redis = { isThere: true, ask: (command) => command(client), close() {} };
  const queries = [
    { clientAddress: "192.0.2.1", keyId: undefined, key: undefined },
    { clientAddress: "192.0.2.2", keyId: "k", key: undefined },
    { clientAddress: "192.0.2.3", keyId: "own", perMinute: 2, key: undefined },
    { clientAddress: undefined, keyId: "own", perMinute: 2, key: undefined },
    { clientAddress: "192.0.2.1", keyId: undefined, key: "sekret-bypass" },
  ];
  const stranger = { clientAddress: "192.0.2.77", keyId: undefined, key: undefined };

  /** Undefined where the machine was halted meanwhile, so that a token was earned. */
  async function decisions(prefix: string) {
    const startedMs = performance.now();
    const own = createLimiter(parts);
    const memory = createLimiter(parts);
    const shared = createSharedLimiter({ ...parts, redis, prefix, own });
    const told = [];
    for (let turn = 0; turn < 5; turn++) {
      for (const query of queries) told.push([memory.take(query), await shared.take(query)] as const);
    }
    const takes = [];
    for (let take = 0; take < 2; take++) takes.push(await shared.takeBackend("a"), shared.backendHasRoom("a"));
    const refusals = [shared.backendRefusal(["a"]), shared.backendRefusal(["a", "b"])];
    const guesses = [await shared.guessRefusal(stranger)];
    for (let guess = 0; guess < 4; guess++) guesses.push(await shared.takeForGuess(stranger));
    guesses.push(await shared.guessRefusal(stranger));
    expect(own.size).toBe(0);
    return performance.now() - startedMs < MOMENT_MS ? { told, takes, refusals, guesses } : undefined;
  }

  let attempts = 0;
  const { told, takes, refusals, guesses } = await waitFor("a quiet moment", () => decisions(`d${attempts++}:`));
  for (const [expected, decision] of told) {
    const { retryAfterMs = 0, resetAtMs = 0, ...facts } = decision ?? {};
    if (expected === undefined) expect(decision).toBeUndefined();
    else {
      expect(facts).toEqual({ ...expected, retryAfterMs: undefined, resetAtMs: undefined } as typeof facts);
      expect(Math.abs(retryAfterMs - expected.retryAfterMs)).toBeLessThan(MOMENT_MS + 50);
      expect(Math.abs(resetAtMs - expected.resetAtMs)).toBeLessThan(MOMENT_MS + 50);
    }
  }
  expect(takes).toEqual([true, true, false, false]);
  expect(refusals).toEqual([expect.objectContaining({ scope: "backend", allowed: false, limit: 1 }), undefined]);
  const refused = expect.objectContaining({ scope: "client", allowed: false });
  expect(guesses).toEqual([undefined, undefined, undefined, undefined, refused, refused]);
});
