// Limits in Redis: two gateways with one server admit together what one would, and each goes on by itself while it is away.
// The long form has as many rounds as REDIS_ROUNDS says.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { openRedisDoor, type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const ROUNDS = Number(process.env.REDIS_ROUNDS ?? 5);
/** Most time that a round may take. */
const ROUND_MS = 5_000;
const bed = createTestBed();
const backend = bed.backend({ answer: chat("a") });
const other = bed.backend({ answer: chat("b") });
const KEY = "sk-sekret-limited";
/** A request waits for the server once. What waits for it again and again, or until it is back, takes longer, on any machine. */
const LONGEST_MS = 10_000;

const WIDE = { requests_per_second: 100_000, burst_capacity: 100_000 };
const NO_LIMITS = { per_client: WIDE, per_backend: WIDE, per_api_key: WIDE, global: WIDE };
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
/** So few are earned that none is, in a round. */
const burst = (burst_capacity: number) => ({ requests_per_second: 1, burst_capacity });

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedisServer();
});
afterAll(() => redis.stop());
beforeEach(() => redis.send("FLUSHALL"));

function start(url: string, limits: object, more: ConfigDocument = {}): Promise<Gateway> {
  const { rate_limiting, ...rest } = more;
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { base_delay: "1ms" },
      rate_limiting: {
        enabled: true,
        storage: "redis",
        // Those who ask the server itself, not a door before it that troubles them, shall wait for it on a busy machine.
        redis: { url, ...(url === redis.url && { command_timeout_ms: 1_000 }) },
        limits: { ...NO_LIMITS, ...limits },
        ...rate_limiting,
      },
      backends: [
        { name: "a", url: backend.url, models: ["m", "both"] },
        { name: "b", url: other.url, models: ["both"] },
      ],
      ...rest,
    },
  });
}

async function statusOf(gateway: Gateway, model = "m", headers: Record<string, string> = {}): Promise<number> {
  const response = await gateway.chat({ model }, { headers });
  await response.text();
  return response.status;
}

async function admittedBy(
  gateways: readonly Gateway[],
  count: number,
  model = "m",
  headers: Record<string, string> = {},
) {
  const asked = Array.from({ length: count }, (_, index) =>
    statusOf(gateways[index % gateways.length] as Gateway, model, headers),
  );
  const statuses = await Promise.all(asked);
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status === 200).length;
}

async function patch(gateway: Gateway, section: string, change: object): Promise<void> {
  const response = await gateway.fetch(`/admin/config/${section}`, {
    method: "PATCH",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(change),
  });
  expect(response.status).toBe(200);
}

describe("two gateways with one server", () => {
  const SCOPES: [string, object, string, Record<string, string>][] = [
    ["of a client", { per_client: burst(40) }, "m", {}],
    ["of all", { global: burst(40) }, "m", {}],
    ["of a backend", { per_backend: burst(40) }, "m", {}],
    ["of keys", { per_api_key: burst(40) }, "m", bearer(KEY)],
  ];

  test.each(SCOPES)(
    "the limit %s admits a burst once, in every round",
    async (_name, limits, model, headers) => {
      const api_keys = { keys: [{ key: KEY, id: "limited" }] };
      const pair = await Promise.all([start(redis.url, limits, { api_keys }), start(redis.url, limits, { api_keys })]);
      for (let round = 0; round < ROUNDS; round++) {
        await redis.send("FLUSHALL");
        // The server of a gateway that has just refused a backend is not asked about it again until it has a token.
        if (round > 0 && "per_backend" in limits) await Bun.sleep(1_100);
        if ("per_backend" in limits) await redis.send("FLUSHALL");
        const startedAtMs = performance.now();
        const admitted = await admittedBy(pair, 160, model, headers);
        const earned = Math.ceil((performance.now() - startedAtMs) / 1_000);
        expect(admitted).toBeGreaterThanOrEqual(40);
        expect(admitted).toBeLessThanOrEqual(40 + earned);
      }
    },
    ROUND_MS * ROUNDS + 20_000,
  );

  test("the limit of one key; a refusal is told as by one gateway", async () => {
    const api_keys = { keys: [{ key: KEY, id: "limited", rate_limit: 6 }] };
    const pair = await Promise.all([start(redis.url, {}, { api_keys }), start(redis.url, {}, { api_keys })]);
    expect(await admittedBy(pair, 30, "m", bearer(KEY))).toBe(6);
    const response = await pair[1].chat({ model: "m" }, { headers: bearer(KEY) });
    expect(
      Object.fromEntries(["limit", "remaining"].map((name) => [name, response.headers.get(`x-ratelimit-${name}`)])),
    ).toEqual({
      limit: "6",
      remaining: "0",
    });
    expect(Number(response.headers.get("retry-after"))).toBeWithin(1, 11);
    const { type } = await expectError(response, 429);
    expect(type).toBe("rate_limit_exceeded");
    expect(await admittedBy(pair, 10)).toBe(10);
  });

  test("a backend without a token gives way to another, and both together admit what both have", async () => {
    const pair = await Promise.all([
      start(redis.url, { per_backend: burst(20) }),
      start(redis.url, { per_backend: burst(20) }),
    ]);
    const startedAtMs = performance.now();
    const admitted = await admittedBy(pair, 120, "both");
    const earned = 2 * Math.ceil((performance.now() - startedAtMs) / 1_000);
    expect(admitted).toBeWithin(40, 40 + earned + 1);
    const refused = await waitFor("a refusal", async () => {
      const response = await pair[0].chat({ model: "both" });
      return response.status === 429 && response;
    });
    expect(await refused.text()).toContain("the backends of this model");
  });

  test("guesses at keys cost a client at either gateway", async () => {
    const api_keys = { mode: "blocking" as const, keys: [{ key: KEY, id: "limited" }] };
    const limits = { per_client: burst(10) };
    const pair = await Promise.all([start(redis.url, limits, { api_keys }), start(redis.url, limits, { api_keys })]);
    const statuses: number[] = [];
    for (let guess = 0; guess < 14; guess++) {
      statuses.push(await statusOf(pair[guess % 2] as Gateway, "m", bearer(`sk-sekret-guess-${guess}`)));
    }
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
    expect(statuses.filter((status) => status === 429).length).toBeWithin(3, 5);
  });

  test("keys end by themselves, and begin with the prefix", async () => {
    const gateway = await start(redis.url, { per_client: burst(10) });
    await statusOf(gateway);
    const names = (await redis.send("KEYS", "*")) as string[];
    expect(names).toContain("cr:limit:client:127.0.0.1");
    for (const name of names) {
      expect(name).toStartWith("cr:limit:");
      const leftMs = Number(await redis.send("PTTL", name));
      expect(leftMs).not.toBe(-1); // it would stay for ever; -2: it has just ended
      expect(leftMs).toBeLessThan(11_000);
    }
  });
});

describe.each(["memory", "redis"] as const)("a change of the configuration, with %s", (storage) => {
  test("buckets keep their level", async () => {
    const api_keys = { keys: [{ key: KEY, id: "limited", rate_limit: 10 }] };
    const limits = { per_client: burst(30) };
    const gateway = await start(redis.url, limits, { api_keys, rate_limiting: { storage } });
    expect(await admittedBy([gateway], 4, "m", bearer(KEY))).toBe(4);
    await patch(gateway, "rate_limiting", { headers_on_success: true });
    await patch(gateway, "rate_limiting", { limits: { global: { requests_per_second: 500, burst_capacity: 500 } } });
    await patch(gateway, "response_cache", { enabled: true });
    await patch(gateway, "api_keys", {
      keys: [
        { key: KEY, id: "limited", rate_limit: 10 },
        { key: `${KEY}-2`, id: "two" },
      ],
    });
    expect(await admittedBy([gateway], 12, "m", bearer(KEY))).toBe(6);
    const left = Number((await gateway.chat({ model: "m" })).headers.get("x-ratelimit-remaining"));
    expect(left).toBeWithin(17, 30);
    await patch(gateway, "rate_limiting", { limits: { per_client: { requests_per_second: 1, burst_capacity: 5 } } });
    expect(await admittedBy([gateway], 12)).toBeWithin(5, 7);
  });
});

describe("trouble during load", () => {
  const GENEROUS = { requests_per_second: 50_000, burst_capacity: 50_000 };
  const LIMITS = { per_client: GENEROUS, per_backend: GENEROUS, global: GENEROUS };

  /** Whoever asks is answered, in time. */
  function load(gateway: Gateway) {
    let goesOn = true;
    let longestMs = 0;
    const answered: number[] = Array(8).fill(0);
    async function client(index: number): Promise<void> {
      for (let turn = 1; goesOn; turn++) {
        const startedAtMs = performance.now();
        expect(await statusOf(gateway)).toBe(200);
        longestMs = Math.max(longestMs, performance.now() - startedAtMs);
        answered[index] = turn;
      }
    }
    const clients = Promise.all(answered.map((_, index) => client(index)));
    return {
      /** Each client has its share of them, so that none waits for a server that is away. */
      more: (count: number) => {
        const until = answered.map((turns) => turns + count / answered.length);
        return waitFor(`${count} more answers`, () => answered.every((turns, index) => turns >= (until[index] ?? 0)));
      },
      async end(): Promise<number> {
        goesOn = false;
        await within("the clients end", clients);
        return longestMs;
      },
    };
  }

  async function isUp(gateway: Gateway): Promise<boolean> {
    const metrics = await (await gateway.fetch("/metrics")).text();
    return metrics.includes('signalbox_redis_up{use="rate_limiting"} 1');
  }

  test("killed and paused: nobody fails, each gateway limits by itself, and together again afterwards", async () => {
    const own = await startRedisServer();
    try {
      const gateway = await start(own.url, LIMITS);
      const clients = load(gateway);
      await clients.more(200);
      for (const [stop, go] of [
        [own.kill, own.start],
        [own.pause, own.resume],
      ] as const) {
        await stop();
        await waitFor("it is away", async () => !(await isUp(gateway)));
        await clients.more(300);
        await go();
        await waitFor("it is back", () => isUp(gateway));
        await clients.more(100);
      }
      expect(String(await own.send("INFO", "commandstats"))).toMatch(/cmdstat_evalsha:calls=[1-9]/);
      expect(await clients.end()).toBeLessThan(LONGEST_MS);
    } finally {
      await own.stop();
    }
  });

  test("away, the process's own buckets hold", async () => {
    const own = await startRedisServer();
    try {
      const gateway = await start(own.url, { per_client: burst(10), per_backend: burst(4) });
      expect(await statusOf(gateway)).toBe(200);
      await own.kill();
      await waitFor("it is away", async () => {
        await gateway.chat({ model: "nobody" });
        return !(await isUp(gateway));
      });
      const statuses = [];
      for (let count = 0; count < 8; count++) statuses.push(await statusOf(gateway));
      expect(statuses.filter((status) => status === 200).length).toBeWithin(3, 7);
      expect(statuses).toContain(429);
      expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
      const lines = gateway.printed.stderrLines.filter((line) => line.includes("Redis is away"));
      expect(lines).toHaveLength(1);
    } finally {
      await own.stop();
    }
  });

  test("slow, cut off, and full of garbage", async () => {
    const own = await startRedisServer();
    const door = openRedisDoor(own.port);
    try {
      const gateway = await start(door.url, LIMITS);
      const clients = load(gateway);
      await clients.more(100);
      const shuffled: Uint8Array[] = [];
      const faults: ((bytes: Uint8Array) => Uint8Array | undefined | Promise<Uint8Array>)[] = [
        (bytes) => Bun.sleep(40).then(() => bytes),
        () => new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"),
        (bytes) => bytes.map((byte, index) => (index % 5 === 4 ? byte ^ 3 : byte)),
        // Answers to other questions.
        (bytes) => {
          shuffled.push(bytes.slice());
          return shuffled.length > 3 ? shuffled.shift() : undefined;
        },
        () => undefined,
      ];
      for (const fault of faults) {
        door.distort = fault;
        await clients.more(100);
        door.cut();
        await clients.more(50);
        door.distort = (bytes) => bytes;
        await waitFor("it is back", () => isUp(gateway), { timeoutMs: 25_000 });
        await clients.more(20);
      }
      expect(await clients.end()).toBeLessThan(LONGEST_MS);
    } finally {
      door.stop();
      await own.stop();
    }
  }, 120_000);
});
