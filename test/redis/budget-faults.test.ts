// Budgets in Redis when something ends or halts: gateways that are killed or stopped, and a server that is killed or paused, with
// its data or without. What is spent in the end is what the vendor has billed.

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 2);
/** What was settled within this time before a kill may be lost: SAVE_AFTER_MS of the ledger, and as much for a busy machine. */
const LOST_MS = 200;
const COMMAND_MS = 400;
/** A request waits for the server once, on any machine. */
const LONGEST_MS = 10_000;
const bed = createTestBed();
const backend = bed.backend();

interface Asked {
  chat(body: Record<string, unknown>): Promise<Response>;
  fetch(path: string): Promise<Response>;
}

/** One with its data after a kill, one without. */
let keeping: RedisServer;
let losing: RedisServer;
let billed: { atMs: number; cost: number }[] = [];
let tests = 0;

beforeAll(async () => {
  [keeping, losing] = await Promise.all([startRedisServer({ keepsData: true }), startRedisServer()]);
});
afterAll(() => Promise.all([keeping.stop(), losing.stop()]));
beforeEach(() => {
  tests++;
  billed = [];
  backend.reset();
  backend.answer = (request: RecordedRequest) => {
    const { max_tokens } = request.json<{ max_tokens: number }>();
    billed.push({ atMs: performance.now(), cost: max_tokens });
    return chat("x", { usage: { prompt_tokens: 0, completion_tokens: max_tokens, total_tokens: max_tokens } });
  };
});

type Rule = NonNullable<NonNullable<ConfigDocument["budgets"]>["rules"]>[number];

function configOf({ url }: RedisServer, rule: Partial<Rule>, more: ConfigDocument = {}): ConfigDocument {
  return {
    health_checks: { enabled: false },
    retry: { max_attempts: 1 },
    rate_limiting: {
      storage: "redis",
      redis: { url, command_timeout_ms: COMMAND_MS, key_prefix: `fault-${tests}:` },
    },
    backends: [
      {
        name: "one",
        url: backend.url,
        models: ["m"],
        model_configs: [{ id: "m", metadata: { pricing: { output_tokens: 1_000 } } }],
      },
    ],
    budgets: { rules: [{ id: "all", limit: { cost: 9_000_000 }, window: "month", ...rule }] },
    ...more,
  };
}

const linesOf = ({ printed }: Gateway, text: string) =>
  printed.stderrLines.filter((line) => line.includes(text) && line.includes("budgets")).length;

const total = () => billed.reduce((sum, { cost }) => sum + cost, 0);

async function statusOf(gateway: Asked, max_tokens = 1): Promise<number> {
  const response = await gateway.chat({ model: "m", max_tokens });
  await response.text();
  return response.status;
}

async function spentAt(gateway: Asked): Promise<number> {
  const response = await gateway.fetch("/admin/budgets/all");
  const { limits } = (await response.json()) as { limits: { spent: number }[] };
  return limits[0]?.spent ?? 0;
}

/** Clients that ask one gateway after the other until `stop`. */
function load(gateways: readonly Asked[], clients = 8) {
  let isOver = false;
  const slowest = { ms: 0 };
  const turns: number[] = Array(clients).fill(0);
  const running = Array.from({ length: clients }, async (_, client) => {
    for (let turn = 0; !isOver; turn++) {
      const startedMs = performance.now();
      const asked = statusOf(gateways[(client + turn) % gateways.length] as Asked, 1 + ((turn + client) % 50));
      const status = await asked.catch(() => undefined);
      slowest.ms = Math.max(slowest.ms, performance.now() - startedMs);
      if (status !== undefined) expect(status).toBe(200);
      turns[client] = turn + 1;
    }
  });
  return {
    slowest,
    /** Each client is answered, now. */
    async everyone(): Promise<void> {
      const before = [...turns];
      // The second answer is to a question that was asked since.
      await waitFor("each client is answered", () => turns.every((turn, client) => turn > (before[client] ?? 0) + 1));
    },
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(running);
    },
  };
}

const moreAnswers = (count: number) => {
  const wanted = billed.length + count;
  return waitFor("requests are answered", () => billed.length >= wanted);
};

test.each([
  ["with its data", () => keeping],
  ["without its data", () => losing],
])("a server that is killed and started again, %s: spent is what was billed", async (_name, server) => {
  const redis = server();
  const config = configOf(redis, {});
  const pair = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
  const clients = load(pair);
  for (let round = 0; round < ROUNDS; round++) {
    await moreAnswers(100);
    await redis.kill();
    await moreAnswers(100);
    await redis.start();
    await waitFor("both are back", () => pair.every((gateway) => linesOf(gateway, "Redis is back") === round + 1));
    await moreAnswers(50);
  }
  await clients.stop();
  for (const gateway of pair) {
    await waitFor("all is known", async () => (await spentAt(gateway)) === total());
  }
});

test("a paused server delays no request beyond the time limit of a command", async () => {
  const config = configOf(losing, {});
  const pair = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
  const clients = load(pair);
  await moreAnswers(100);
  losing.pause();
  try {
    await clients.everyone();
  } finally {
    losing.resume();
  }
  await waitFor("it is back", () => pair.every((gateway) => linesOf(gateway, "Redis is back") === 1));
  await moreAnswers(50);
  await clients.stop();
  expect(clients.slowest.ms).toBeGreaterThan(COMMAND_MS / 2);
  expect(clients.slowest.ms).toBeLessThan(LONGEST_MS);
  for (const gateway of pair) {
    await waitFor("all is known", async () => (await spentAt(gateway)) === total());
    expect(linesOf(gateway, "Redis is away")).toBe(1);
  }
});

test("a gateway that is killed under load loses the last moment at most, and nothing counts twice", async () => {
  const config = configOf(losing, {});
  const [first, other] = await Promise.all([bed.process({ config }), bed.gateway({ config })]);
  let lost = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const clients = load([first, other]);
    await moreAnswers(200);
    const killedMs = performance.now();
    await first.stop("SIGKILL");
    await clients.stop();
    lost += billed.filter(({ atMs }) => atMs > killedMs - LOST_MS).reduce((sum, { cost }) => sum + cost, 0);
    await first.restart();
    for (const gateway of [first, other]) {
      await waitFor("all is known", async () => (await spentAt(gateway)) >= total() - lost);
      expect(await spentAt(gateway)).toBeLessThanOrEqual(total());
    }
  }
});

test("a gateway that starts while the server is away knows what was spent before", async () => {
  const config = configOf(losing, { limit: { requests: 10 } });
  const [one, two] = await Promise.all([bed.gateway({ config }), bed.gateway({ config })]);
  for (let turn = 0; turn < 8; turn++) await statusOf(turn % 2 === 0 ? one : two);
  expect(await spentAt(one)).toBe(8);
  await losing.kill();
  try {
    await one.restart();
    expect(await statusOf(one)).toBe(200);
    expect(await statusOf(one)).toBe(200);
    expect(await statusOf(one)).toBe(429);
  } finally {
    await losing.start();
  }
  for (const gateway of [one, two]) await waitFor("both know", async () => (await spentAt(gateway)) === 10);
  expect(await statusOf(two)).toBe(429);
});
