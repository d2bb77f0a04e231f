// What gateways have set aside in Redis: it comes back when one is killed, and what one that was halted spends later still counts.

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import { chat } from "../support/openai-answers.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

/** LEASE_MS of the shared budgets. */
const LEASE_MS = 10_000;
const bed = createTestBed();
const backend = bed.backend();
let redis: RedisServer;
/** Requests that have come to the backend. */
let begun = 0;
/** Answers wait for it. */
let gate: Promise<void> | undefined;

beforeAll(async () => {
  redis = await startRedisServer();
  backend.answer = async (request: RecordedRequest) => {
    const { max_tokens } = request.json<{ max_tokens: number }>();
    begun++;
    await gate;
    return chat("x", { usage: { prompt_tokens: 0, completion_tokens: max_tokens, total_tokens: max_tokens } });
  };
});
afterAll(() => redis.stop());

type Rule = NonNullable<NonNullable<ConfigDocument["budgets"]>["rules"]>[number];

function configOf(rule: Pick<Rule, "limit" | "strict">): ConfigDocument {
  return {
    health_checks: { enabled: false },
    retry: { max_attempts: 1 },
    rate_limiting: { storage: "redis", redis: { url: redis.url, command_timeout_ms: 1_000 } },
    backends: [{ name: "one", url: backend.url, models: ["m"] }],
    budgets: { rules: [{ id: "all", window: "month", ...rule }] },
  };
}

interface Asked {
  chat(body: Record<string, unknown>): Promise<Response>;
  fetch(path: string): Promise<Response>;
}

async function statusOf(gateway: Asked, max_tokens: number): Promise<number> {
  const response = await gateway.chat({ model: "m", max_tokens });
  await response.text();
  return response.status;
}

async function spentAt(gateway: Asked): Promise<number | undefined> {
  const response = await gateway.fetch("/admin/budgets/all");
  const { limits } = (await response.json()) as { limits: { spent: number }[] };
  return limits[0]?.spent;
}

test("what a killed gateway had set aside comes back; what a halted one spends after its lease counts", async () => {
  const config = configOf({ limit: { output_tokens: 100 }, strict: true });
  const [killed, halted, other] = await Promise.all([
    bed.process({ config }),
    bed.process({ config }),
    bed.gateway({ config }),
  ]);
  const { promise, resolve: open } = Promise.withResolvers<void>();
  gate = promise;
  const asked = [statusOf(killed, 50), statusOf(halted, 40)].map((status) => status.catch(() => 0));
  await waitFor("both are under way", () => begun === 2);
  gate = undefined;
  expect(await statusOf(other, 20)).toBe(429);
  const startedMs = performance.now();
  await killed.stop("SIGKILL");
  process.kill(halted.pid, "SIGSTOP");
  await waitFor("room for what was set aside", async () => (await statusOf(other, 60)) === 200);
  expect(performance.now() - startedMs).toBeWithin(LEASE_MS / 2, LEASE_MS + 3_000);
  process.kill(halted.pid, "SIGCONT");
  open();
  await Promise.all(asked);
  await waitFor("all is known", async () => (await spentAt(other)) === 100);
  expect(await statusOf(other, 1)).toBe(429);
});
