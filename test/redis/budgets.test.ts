// Budgets in Redis: two gateways with one server spend together what one might, and each goes on by itself while it is away.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { startInProcess } from "../support/in-process.ts";
import { chat } from "../support/openai-answers.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const COMMAND_MS = 1_000;
const bed = createTestBed();
const backend = bed.backend();
let redis: RedisServer;
/** What the vendor has billed since the test began. */
let billed = 0;
/** Gateways of earlier tests would put back what a server has lost: every test has keys of its own. */
let tests = 0;

beforeAll(async () => {
  redis = await startRedisServer();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.send("FLUSHALL");
  billed = 0;
  tests++;
  backend.reset();
  backend.answer = (request: RecordedRequest) => {
    const { max_tokens } = request.json<{ max_tokens: number }>();
    billed += max_tokens;
    return chat("x", { usage: { prompt_tokens: 0, completion_tokens: max_tokens, total_tokens: max_tokens } });
  };
});

type Budgets = NonNullable<ConfigDocument["budgets"]>;

function configOf(budgets: Budgets, more: ConfigDocument = {}): ConfigDocument {
  return {
    health_checks: { enabled: false },
    retry: { max_attempts: 1 },
    rate_limiting: {
      storage: "redis",
      redis: { url: redis.url, command_timeout_ms: COMMAND_MS, key_prefix: `test-${tests}:` },
    },
    backends: [
      {
        name: "one",
        url: backend.url,
        models: ["m"],
        model_configs: [{ id: "m", metadata: { pricing: { output_tokens: 1_000 } } }],
      },
    ],
    budgets,
    ...more,
  };
}

const start = (budgets: Budgets, more: ConfigDocument = {}) => bed.gateway({ config: configOf(budgets, more) });

async function statusOf(gateway: Pick<Gateway, "chat">, max_tokens = 1): Promise<number> {
  const response = await gateway.chat({ model: "m", max_tokens });
  await response.text();
  return response.status;
}

interface Limit {
  spent: number;
  held: number;
}

async function limitOf(gateway: Pick<Gateway, "fetch">, id = "all"): Promise<Limit> {
  const response = await gateway.fetch(`/admin/budgets/${id}`);
  const { limits } = (await response.json()) as { limits: Limit[] };
  return limits[0] as Limit;
}

/** Asks both, one after the other, until the statuses are known. */
async function askAll(gateways: readonly Pick<Gateway, "chat">[], count: number, tokens: () => number) {
  const asked = Array.from({ length: count }, (_, index) =>
    statusOf(gateways[index % gateways.length] as Gateway, tokens()),
  );
  const statuses = await Promise.all(asked);
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status === 200).length;
}

describe("two gateways with one server", () => {
  test("let in exactly as many requests as one would", async () => {
    const rules = [{ id: "all", limit: { requests: 40 }, window: "month" }];
    const pair = await Promise.all([start({ rules }), start({ rules })]);
    expect(await askAll(pair, 200, () => 1)).toBe(40);
    for (const gateway of pair) {
      await waitFor("both know", async () => (await limitOf(gateway)).spent === 40);
      expect(await statusOf(gateway)).toBe(429);
      expect((await limitOf(gateway)).held).toBe(0);
    }
  });

  test("a strict budget is not exceeded, and is used up to what fits", async () => {
    const rules = [{ id: "all", limit: { output_tokens: 300 }, window: "month", strict: true }];
    const pair = await Promise.all([start({ rules }), start({ rules })]);
    await askAll(pair, 150, () => 1 + Math.floor(Math.random() * 20));
    expect(billed).toBeLessThanOrEqual(300);
    await waitFor("it is full", async () => (await statusOf(pair[0], 1)) === 429);
    expect(billed).toBe(300);
    for (const gateway of pair) await waitFor("both know", async () => (await limitOf(gateway)).spent === 300);
  });

  test("a budget that is not strict is exceeded by no more than what was in flight", async () => {
    const rules = [{ id: "all", limit: { cost: 100 }, window: "month" }];
    const pair = await Promise.all([start({ rules }), start({ rules })]);
    const CLIENTS = 6;
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        while ((await statusOf(pair[client % 2] as Gateway, 10)) === 200);
      }),
    );
    expect(billed).toBeGreaterThanOrEqual(100);
    expect(billed).toBeLessThan(100 + CLIENTS * 10);
  });
});

test("a thousand requests at once, at four workers and another gateway: exactly as many as the limit", async () => {
  const rules = [{ id: "all", limit: { requests: 300 }, window: "month" }];
  for (let isAnswered = false; !isAnswered; tests++) {
    const config = configOf({ rules });
    const pair = await Promise.all([
      bed.process({ config: { ...config, server: { workers: 4 } } }),
      bed.gateway({ config }),
    ]);
    const admitted = await askAll(pair, 1_000, () => 1);
    // On a machine that is too busy for the time limit of a command, gateways go on by themselves: that is another test.
    isAnswered = !pair.some(({ printed }) => printed.stderr.includes("Redis is away"));
    if (!isAnswered) continue;
    expect(admitted).toBe(300);
    for (const gateway of pair) expect((await limitOf(gateway)).spent).toBe(300);
  }
});

test("all budgets of a request are reserved, or none", async () => {
  const rules = [
    { id: "wide", limit: { requests: 100 }, window: "month" },
    { id: "narrow", limit: { requests: 7 }, window: "day" },
  ];
  const pair = await Promise.all([start({ rules }), start({ rules })]);
  expect(await askAll(pair, 40, () => 1)).toBe(7);
  for (const id of ["wide", "narrow"]) {
    for (const gateway of pair) expect(await limitOf(gateway, id)).toMatchObject({ spent: 7, held: 0 });
  }
});

test("what only another gateway has seen is shown, by subject, and to the holder of the key", async () => {
  const rules = [{ id: "each", limit: { requests: 10 }, window: "month", per: "key" as const }];
  const keys = ["a", "b"].map((id) => ({ key: `secret-of-${id}`, id }));
  const [one, two] = await Promise.all([
    start({ rules }, { api_keys: { keys } }),
    start({ rules }, { api_keys: { keys } }),
  ]);
  const bearer = (id: string) => ({ headers: { Authorization: `Bearer secret-of-${id}` } });
  for (const id of ["a", "a", "b"]) await (await one.chat({ model: "m", max_tokens: 1 }, bearer(id))).text();
  const usage = (await (await two.fetch("/admin/budgets/each/usage")).json()) as {
    subjects: { subject: string; requests: number }[];
  };
  expect(usage.subjects.map(({ subject, requests }) => [subject, requests]).toSorted()).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
  const me = (await (await two.fetch("/v1/me", bearer("a"))).json()) as { budgets: { limits: { spent: number }[] }[] };
  expect(me.budgets[0]?.limits[0]?.spent).toBe(2);
});

test("a reset at one gateway is one at the other, and so is its rollback", async () => {
  const rules = [{ id: "all", limit: { requests: 4 }, window: "month" }];
  const [one, two] = await Promise.all([start({ rules }), start({ rules })]);
  expect(await askAll([one, two], 10, () => 1)).toBe(4);
  const response = await one.fetch("/admin/budgets/all/reset", { method: "POST" });
  expect(response.status).toBe(200);
  const { version } = (await response.json()) as { version: number };
  expect((await limitOf(one)).spent).toBe(0);
  expect((await limitOf(two)).spent).toBe(0);
  expect(await statusOf(two)).toBe(200);
  expect((await limitOf(one)).spent).toBe(1);
  const back = await one.post(`/admin/config/rollback/${version - 1}`, {});
  expect(back.status).toBe(200);
  for (const gateway of [one, two]) expect((await limitOf(gateway)).spent).toBe(5);
  expect(await statusOf(two)).toBe(429);
});

test("clocks and time zones that differ: the server's clock counts, and no limit is exceeded", async () => {
  const rules = [
    { id: "day", limit: { requests: 6 }, window: "day" },
    { id: "minute", limit: { requests: 6 }, window: "60s" },
  ];
  const HOURS = 3_600_000;
  const wrong = { ...systemClock, wallTime: () => systemClock.wallTime() + 30 * HOURS };
  const [right, fast, east] = await Promise.all([
    start({ rules }),
    startInProcess({ config: configOf({ rules }) }, wrong),
    start({ rules, time_zone: "Pacific/Kiritimati" }),
  ]);
  try {
    expect(await askAll([right, fast, east], 24, () => 1)).toBe(6);
    for (const gateway of [right, fast, east]) {
      expect((await limitOf(gateway, "minute")).spent).toBe(6);
      const refused = await gateway.chat({ model: "m", max_tokens: 1 });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeWithin(1, 24 * 3_600 + 1);
      await refused.text();
    }
  } finally {
    await fast.stop();
  }
});

test("keys begin with the prefix and end by themselves", async () => {
  const rules = [{ id: "all", limit: { requests: 4 }, window: "60s", per: "model" as const }];
  const gateway = await start({ rules });
  await statusOf(gateway);
  await waitFor("it is settled", async () => (await limitOf(gateway)).spent === 1);
  const names = ((await redis.send("KEYS", `test-${tests}:*`)) as string[]).toSorted();
  expect(names).toEqual(
    ["budget-holders", 'budget-subjects:{["all","1m"]}', 'budget:{["all","1m","m"]}'].map(
      (name) => `test-${tests}:${name}`,
    ),
  );
  for (const name of names) expect(Number(await redis.send("PTTL", name))).toBeWithin(1, 125_000);
});

test("each gateway tells a threshold once", async () => {
  const rules = [{ id: "all", limit: { requests: 10 }, window: "month", warn_at: [0.5] }];
  const pair = await Promise.all([start({ rules }), start({ rules })]);
  expect(await askAll(pair, 20, () => 1)).toBe(10);
  for (const gateway of pair) {
    await limitOf(gateway);
    const told = gateway.printed.stderrLines.filter((line) => line.includes("a budget is spent"));
    expect(told.map((line) => line.includes("50 %"))).toEqual([true, false]);
  }
});

test("a window of a second is shared, and gives back what was spent", async () => {
  const rules = [{ id: "all", limit: { requests: 5 }, window: "1s" }];
  const pair = await Promise.all([start({ rules }), start({ rules })]);
  expect(await askAll(pair, 5, () => 1)).toBe(5);
  for (const gateway of pair) {
    expect(await waitFor("room again", async () => (await statusOf(gateway)) === 200)).toBe(true);
    expect(gateway.printed.stderrLines.filter((line) => line.includes("Redis is away"))).toEqual([]);
  }
});

test("what the server has lost it is told again", async () => {
  const rules = [{ id: "all", limit: { requests: 6 }, window: "month" }];
  const pair = await Promise.all([start({ rules }), start({ rules })]);
  expect(await askAll(pair, 4, () => 1)).toBe(4);
  for (const gateway of pair) await limitOf(gateway);
  await redis.send("FLUSHALL");
  for (const gateway of pair) await limitOf(gateway);
  for (const gateway of pair) expect((await limitOf(gateway)).spent).toBe(4);
  expect(await askAll(pair, 6, () => 1)).toBe(2);
});
