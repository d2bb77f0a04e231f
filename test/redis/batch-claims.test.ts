// The scripts by which gateways share batches, against a real server: whatever several gateways do in whatever order, a line has one
// result, is counted once, and nothing is written under a claim that is over.

import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import {
  BEAT,
  BEGIN,
  CANCEL,
  CLAIM,
  COMPLETE,
  INSERT,
  OWN,
  PAGE,
  RELEASE,
  RENEW,
  SETTLE,
  SWEEP,
  UPDATE,
} from "../../src/batches/shared/scripts.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { waitFor } from "../support/wait-for.ts";

const SEGMENTS = 3;
const LINES = 2;
const LONG_MS = 60_000;

let redis: RedisServer;
let client: Bun.RedisClient;
let count = 0;

beforeAll(async () => {
  redis = await startRedisServer();
  client = new Bun.RedisClient(redis.url);
});
afterAll(async () => {
  client.close();
  await redis.stop();
});

type Script = typeof CLAIM;

/** Keys of its own, and a batch of three segments with two lines each. */
async function setUp() {
  const prefix = `claims-${count++}:`;
  const run = (script: Script, ...values: (string | number)[]) => script(client, [prefix], values.map(String));
  await client.send("SET", [`${prefix}life`, "1"]);
  const insert = (id: string, status = "in_progress", max = 1_000, owner = "key:a") =>
    run(INSERT, id, owner, "files", JSON.stringify({ id }), status, max, SEGMENTS);
  expect(await insert("b")).toBe(1);
  return {
    ...{ prefix, run, insert },
    claim: (token: string, leaseMs = LONG_MS) =>
      run(CLAIM, "b", token, leaseMs) as Promise<[outcome: string, segment: string, fields: string[]]>,
    settle: (segment: string | number, token: string, position: number, outcome = "completed", cost = 0) =>
      run(SETTLE, "b", segment, token, position, `r ${position} by ${token}`, outcome, 1, 0, 2, 0, cost),
    /** Its claim is over. */
    expire: (segment: string) => client.send("ZADD", [`${prefix}claims:b`, "XX", "1", segment]),
    counts: async () => {
      const names = ["completed", "failed", "input", "output", "cost"];
      return ((await client.send("HMGET", [`${prefix}row:b`, ...names])) as (string | null)[]).map(Number);
    },
  };
}

const step = fc.record({
  gateway: fc.nat(2),
  what: fc.constantFrom("claim", "begin", "settle", "complete", "release", "renew", "halt"),
  line: fc.nat(LINES - 1),
});

test("several gateways in any order: one result for each line, counted once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const { prefix, run, claim, settle, expire, counts } = await setUp();
      /** What each gateway believes to have. */
      const believed = new Map<number, { segment: string; token: string }>();
      /** What is true. */
      const owner = new Map<string, string>();
      const results = new Map<string, string>();
      const done = new Set<string>();
      let tokens = 0;
      for (const { gateway, what, line } of steps) {
        if (what === "claim") {
          const token = `${gateway}-${tokens++}`;
          const [outcome, segment] = await claim(token);
          expect(outcome === "done").toBe(done.size === SEGMENTS);
          if (outcome !== "claimed") continue;
          expect([done.has(segment), owner.has(segment)]).toEqual([false, false]);
          owner.set(segment, token);
          believed.set(gateway, { segment, token });
          continue;
        }
        const mine = believed.get(gateway);
        if (mine === undefined) continue;
        const { segment, token } = mine;
        const isOwner = owner.get(segment) === token;
        const name = `${segment}:${line}`;
        if (what === "halt") {
          if (!isOwner) continue;
          await expire(segment);
          owner.delete(segment);
          // Until another gateway takes the segment, the token is still in force.
          const successor = `other-${tokens++}`;
          const [outcome, taken] = await claim(successor);
          expect([outcome, taken]).toEqual(["claimed", segment]);
          owner.set(segment, successor);
        } else if (what === "begin") {
          expect(await run(BEGIN, "b", segment, token, line)).toBe(isOwner ? 1 : 0);
        } else if (what === "settle") {
          const answer = await settle(segment, token, line);
          expect(answer === null).toBe(!isOwner);
          if (isOwner && !results.has(name)) results.set(name, token);
        } else if (what === "complete") {
          const isWhole = [...Array(LINES).keys()].every((index) => results.has(`${segment}:${index}`));
          if (!isWhole) continue;
          expect(await run(COMPLETE, "b", segment, token, token)).toBe(isOwner ? 1 : 0);
          if (!isOwner) continue;
          done.add(segment);
          owner.delete(segment);
          believed.delete(gateway);
        } else if (what === "release") {
          expect(await run(RELEASE, "b", segment, token)).toBe(isOwner ? 1 : 0);
          if (isOwner) owner.delete(segment);
        } else {
          expect(await run(RENEW, "b", LONG_MS, segment, token)).toEqual(isOwner ? [] : [segment]);
        }
      }
      expect(await counts()).toEqual([results.size, 0, results.size, 2 * results.size, 0]);
      for (const [name, token] of results) {
        const [segment, line] = name.split(":") as [string, string];
        if (done.has(segment)) continue;
        const kept = await client.send("HGET", [`${prefix}segment:b:${segment}`, `r${line}`]);
        expect(kept).toBe(`r ${line} by ${token}`);
      }
    }),
    { numRuns: 60 },
  );
});

test("the next gateway learns which lines were begun, and which have a result", async () => {
  const { run, claim, settle, expire } = await setUp();
  const [, segment] = await claim("one");
  await run(BEGIN, "b", segment, "one", 0);
  await run(BEGIN, "b", segment, "one", 1);
  await settle(segment, "one", 0, "failed", 7);
  await expire(segment);
  const [outcome, again, fields] = await claim("two");
  expect([outcome, again, fields.toSorted()]).toEqual(["claimed", segment, ["b0", "b1", "r0"]]);
  expect(await settle(segment, "one", 1)).toBeNull();
  expect(await settle(segment, "two", 1)).toEqual(["1", "1", "2", "0", "4", "0", "7"]);
});

test("no claim is taken over right after a time without gateways", async () => {
  const { run, claim, expire } = await setUp();
  const [, segment] = await claim("one");
  await expire(segment);
  await run(BEAT, 1_000, 10);
  const next = await claim("two");
  expect(next[1]).not.toBe(segment);
  await waitFor("a lease has passed", async () => {
    await run(BEAT, 1_000, 10);
    return (await claim("three", 300))[1] === segment;
  });
});

test("a step has one gateway at a time, and its updates stop with its lease", async () => {
  const { prefix, run, insert, claim } = await setUp();
  await insert("v", "validating");
  expect(await run(OWN, "v", "one", LONG_MS, "intake")).toBe("mine");
  expect(await run(OWN, "v", "one", LONG_MS, "intake")).toBe("mine");
  expect(await run(OWN, "v", "two", LONG_MS, "intake")).toBe("busy");
  const update = (id: string, token: string, status: string, from: string, ended: string | number = "") =>
    run(UPDATE, id, token, JSON.stringify({ id, status }), status, from, 2, 1, ended);
  expect(await update("v", "two", "in_progress", "validating")).toBe(0);
  await client.send("HSET", [`${prefix}row:v`, "lease_until", "1"]);
  expect(await run(OWN, "v", "two", LONG_MS, "intake")).toBe("mine");
  expect(await update("v", "one", "in_progress", "validating")).toBe(0);
  expect(await update("v", "two", "in_progress", "validating")).toBe(1);
  expect(await update("v", "two", "in_progress", "validating")).toBe(1);
  expect(await run(OWN, "v", "one", LONG_MS, "intake")).toBe("past");
  expect(await run(OWN, "unknown", "one", LONG_MS, "finish")).toBe("gone");

  // Results are written when no gateway has a segment; then no claim counts any more.
  const [, segment] = await claim("worker");
  await client.send("HDEL", [`${prefix}row:b`, "lease"]);
  expect(await run(OWN, "b", "one", LONG_MS, "finish")).toBe("busy");
  expect((await claim("late"))[0]).toBe("none");
  expect(await run(BEGIN, "b", segment, "worker", 0)).toBe(-1);
  expect(await run(BEGIN, "b", segment, "another", 0)).toBe(0);
  expect(await run(CANCEL, "b", "1", "{}")).toBe(2);
  await run(RELEASE, "b", segment, "worker");
  expect(await run(OWN, "b", "one", LONG_MS, "finish")).toBe("mine");
  expect(await update("b", "one", "completed", "", 100)).toBe(1);
  expect(await run(OWN, "b", "two", LONG_MS, "finish")).toBe("past");
  expect(await run(SWEEP, 100, 10)).toEqual([]);
  expect(await run(SWEEP, 101, 10)).toEqual(["b"]);
  expect(await client.send("KEYS", [`${prefix}*:b*`])).toEqual([]);
});

test("a cancellation and the end of the intake do not overwrite each other", async () => {
  const { run, insert } = await setUp();
  await insert("v", "validating");
  await run(OWN, "v", "one", LONG_MS, "intake");
  expect(await run(CANCEL, "v", "0", "{}")).toBe(0);
  expect(await run(CANCEL, "v", "1", '{"id":"v","status":"cancelling"}')).toBe(1);
  expect(await run(UPDATE, "v", "one", "{}", "in_progress", "validating", 2, 0, "")).toBe(0);
  expect(await run(OWN, "v", "one", LONG_MS, "intake")).toBe("past");
});

test("an owner has so many open batches at most, and pages go both ways", async () => {
  const { run, insert } = await setUp();
  expect(await insert("c", "in_progress", 2)).toBe(1);
  expect(await insert("c", "in_progress", 2)).toBe(1);
  expect(await insert("d", "in_progress", 2)).toBe(0);
  expect(await insert("e", "in_progress", 2, "key:b")).toBe(1);
  for (const id of ["f", "g"]) await insert(id);
  const page = async (place: string, from: string, direction: string, limit = 10) => {
    const [order, rows] = (await run(PAGE, place, from, direction, limit)) as [string, [string][]];
    return [order, rows.map(([id]) => id).join("")];
  };
  expect(await page("of:key:a:files", "", "older")).toEqual(["older", "gfcb"]);
  expect(await page("of:key:a:files", "f", "older")).toEqual(["older", "cb"]);
  expect(await page("of:key:a:files", "b", "newer", 2)).toEqual(["newer", "cf"]);
  expect(await page("of:key:a:files", "unknown", "newer", 2)).toEqual(["older", "gf"]);
  expect(await page("all", "g", "older", 2)).toEqual(["older", "fe"]);
  await client.send("DEL", [`claims-${count - 1}:life`]);
  expect(await insert("h")).toBe(-1);
});
