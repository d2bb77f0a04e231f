// Selection strategies, and the rule that only healthy, enabled backends that serve the model are chosen.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

type BackendConfig = NonNullable<ConfigDocument["backends"]>[number];

function pool(names: readonly string[]): Record<string, FakeBackend> {
  return Object.fromEntries(names.map((name) => [name, bed.backend()]));
}

function start(
  backends: Record<string, FakeBackend>,
  strategy: string,
  more: Record<string, Partial<BackendConfig>> = {},
): Promise<Gateway> {
  return startGateway({
    config: {
      routing: { selection_strategy: strategy },
      backends: Object.entries(backends).map(([name, backend]) => ({
        name,
        url: backend.url,
        models: ["m"],
        ...more[name],
      })),
    },
  });
}

/** Requests one after the other; the result is who answered them. */
async function ask(
  gateway: Gateway,
  count: number,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<string[]> {
  const answeredBy: string[] = [];
  for (let index = 0; index < count; index++) {
    const response = await gateway.chat(more, { headers });
    expect(response.status).toBe(200);
    await response.text();
    answeredBy.push(response.headers.get("x-signalbox-backend") ?? "nobody");
  }
  return answeredBy;
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

test("RoundRobin gives every backend its turn, and the header tells the truth", async () => {
  const backends = pool(["a", "b", "c"]);
  await using gateway = await start(backends, "round_robin");
  const answeredBy = await ask(gateway, 9);
  expect(tally(answeredBy)).toEqual({ a: 3, b: 3, c: 3 });
  expect(new Set(answeredBy.slice(0, 3)).size).toBe(3);
  for (const backend of Object.values(backends)) expect(backend.requests).toHaveLength(3);
});

test("WeightedRoundRobin follows the weights; weight 0 stands by", async () => {
  const backends = pool(["heavy", "light", "standby"]);
  await using gateway = await start(backends, "WeightedRoundRobin", {
    heavy: { weight: 3 },
    light: { weight: 1 },
    standby: { weight: 0 },
  });
  expect(tally(await ask(gateway, 12))).toEqual({ heavy: 9, light: 3 });
});

test("a backend of weight 0 answers when no other is left", async () => {
  const backends = pool(["main", "standby"]);
  backends.main?.stop();
  await using gateway = await start(backends, "WeightedRoundRobin", { standby: { weight: 0 } });
  expect(tally(await ask(gateway, 3))).toEqual({ standby: 3 });
});

test("LeastLatency prefers the backend that answers sooner", async () => {
  const backends = pool(["slow", "fast"]);
  if (backends.slow) backends.slow.answer = { ...chat("slow"), beforeHeadersMs: 80 };
  await using gateway = await start(backends, "LeastLatency");
  const counts = tally(await ask(gateway, 12));
  expect(counts.fast ?? 0).toBeGreaterThanOrEqual(9);
});

test("LeastLatency counts open requests, so that the fastest is not drowned", async () => {
  const backends = pool(["a", "b"]);
  for (const backend of Object.values(backends)) backend.answer = { ...chat("x"), beforeHeadersMs: 50 };
  await using gateway = await start(backends, "LeastLatency");
  await ask(gateway, 4);
  await Promise.all(Array.from({ length: 20 }, () => ask(gateway, 1)));
  for (const backend of Object.values(backends)) expect(backend.requests.length).toBeGreaterThanOrEqual(5);
});

test("Random uses every backend", async () => {
  const backends = pool(["a", "b"]);
  await using gateway = await start(backends, "Random");
  const counts = tally(await ask(gateway, 60));
  expect(Object.keys(counts).sort()).toEqual(["a", "b"]);
});

test("ConsistentHash keeps a session on one backend, and a failed backend moves only its own sessions", async () => {
  const backends = pool(["a", "b", "c"]);
  await using gateway = await start(backends, "ConsistentHash");
  const owners = new Map<string, string>();
  for (let session = 0; session < 24; session++) {
    const answeredBy = await ask(gateway, 3, { prompt_cache_key: `session-${session}` });
    expect(new Set(answeredBy).size).toBe(1);
    owners.set(`session-${session}`, answeredBy[0] ?? "nobody");
  }
  expect(new Set(owners.values()).size).toBe(3);

  backends.b?.stop();
  for (const [session, owner] of owners) {
    const [answeredBy] = await ask(gateway, 1, { prompt_cache_key: session });
    if (owner === "b") expect(["a", "c"]).toContain(answeredBy ?? "nobody");
    else expect(answeredBy).toBe(owner);
  }
});

test("ConsistentHash takes the field user when there is no cache key", async () => {
  const backends = pool(["a", "b", "c"]);
  await using gateway = await start(backends, "consistent-hash");
  const owners = new Set<string>();
  for (let user = 0; user < 12; user++) {
    const answeredBy = await ask(gateway, 2, { user: `user-${user}` });
    expect(new Set(answeredBy).size).toBe(1);
    owners.add(answeredBy[0] ?? "nobody");
  }
  expect(owners.size).toBeGreaterThan(1);
});

test("disabled and unhealthy backends, and those without the model, receive nothing", async () => {
  const backends = pool(["good", "disabled", "sick", "other"]);
  if (backends.sick) backends.sick.probeAnswer = failure(500);
  await using gateway = await start(backends, "RoundRobin", {
    disabled: { enabled: false },
    other: { models: ["another"] },
  });
  expect(tally(await ask(gateway, 6))).toEqual({ good: 6 });
  expect(backends.disabled?.requests).toHaveLength(0);
  expect(backends.disabled?.probes).toHaveLength(0);
  expect(backends.sick?.requests).toHaveLength(0);
  expect(backends.other?.requests).toHaveLength(0);
});

test("a model that only an unavailable backend serves is 404 with the reason", async () => {
  const backends = pool(["good", "gone"]);
  backends.gone?.stop();
  await using gateway = await start(backends, "RoundRobin", { gone: { models: ["rare"] } });
  const response = await gateway.chat({ model: "rare" });
  expect(response.status).toBe(404);
  const { error } = (await response.json()) as { error: { type: string; message: string } };
  expect(error.type).toBe("model_not_found");
  expect(error.message).toContain("gone");
});

test("concurrent requests are spread as evenly as sequential ones", async () => {
  const backends = pool(["a", "b"]);
  for (const backend of Object.values(backends)) backend.answer = { ...chat("x"), beforeHeadersMs: 5 };
  await using gateway = await start(backends, "RoundRobin");
  await Promise.all(Array.from({ length: 40 }, () => ask(gateway, 1)));
  expect(backends.a?.requests).toHaveLength(20);
  expect(backends.b?.requests).toHaveLength(20);
});

interface Told {
  backend: string;
  strategy: string | null;
  score_means: string | null;
  candidates: { backend: string; score?: number; excluded?: string }[];
}

/** The attempts of a request as its story tells them. */
async function attemptsOf(gateway: Gateway, id: string): Promise<Told[]> {
  const response = await gateway.fetch(`/admin/requests/${id}`);
  const { steps } = (await response.json()) as { steps: (Told & { kind: string })[] };
  return steps.filter(({ kind }) => kind === "attempt");
}

test("the story of a request tells what the strategy went by, and why others were left out", async () => {
  const backends = pool(["a", "b", "standby"]);
  for (const backend of Object.values(backends)) backend.queue(failure(503));
  await using gateway = await start(backends, "WeightedRoundRobin", { a: { weight: 3 }, standby: { weight: 0 } });
  expect((await gateway.chat({}, { headers: { "X-Request-ID": "told" } })).status).toBe(503);
  const attempts = await attemptsOf(gateway, "told");
  expect(attempts.map(({ backend }) => backend)).toEqual(["a", "b", "standby"]);
  expect(attempts.map(({ candidates }) => candidates.map(({ score, excluded }) => excluded ?? score))).toEqual([
    [0.75, 0.25, "standby"],
    ["tried", 1, "standby"],
    ["tried", "tried", 1],
  ]);
  for (const { strategy, score_means } of attempts) {
    expect(strategy).toBe("WeightedRoundRobin");
    expect(score_means).toContain("owed");
  }
});

test("the story of a session tells its lots, the highest of which has won", async () => {
  const backends = pool(["a", "b", "c"]);
  await using gateway = await start(backends, "ConsistentHash", { a: { weight: 100 } });
  for (let session = 0; session < 6; session++) {
    const id = `session-${session}`;
    await ask(gateway, 1, { prompt_cache_key: id }, { "X-Request-ID": id });
    const [attempt] = await attemptsOf(gateway, id);
    const { candidates = [] } = attempt ?? {};
    const best = candidates.reduce((one, other) => ((other.score ?? 0) > (one.score ?? 0) ? other : one));
    expect(best.backend).toBe(attempt?.backend as string);
  }
});
