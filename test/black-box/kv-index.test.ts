// Requests go to the backend that has the beginning of their prompt in its cache: learnt from answers, and from the events
// of engines.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { workerCount } from "../support/gateway-parts.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const HEADER = "x-signalbox-prefix-hash";
const text = (word: string, blocks: number) => `${word} `.repeat(blocks * 100);

interface KvIndexBody {
  enabled: boolean;
  entries: number;
  hits: number;
  lookups: number;
  backends: { backend_name: string; entries: number; distrusted: boolean }[];
  event_sources: { connected: boolean; events: number; dropped: number; last_error: string | null }[];
}

async function kvIndex(gateway: Gateway): Promise<KvIndexBody> {
  return (await (await fetch(`${gateway.url}/admin/kv-index`)).json()) as KvIndexBody;
}

async function pool(
  size: number,
  config: ConfigDocument = {},
  more: object = {},
): Promise<{ backends: FakeBackend[]; gateway: Gateway }> {
  const backends = Array.from({ length: size }, () => bed.backend());
  const gateway = await bed.gateway({
    config: {
      routing: { selection_strategy: "PrefixAwareHash" },
      kv_cache_index: { enabled: true },
      ...config,
      backends: backends.map(({ url }, place) => ({ name: `b${place}`, url, models: ["m"], ...more })),
    },
  });
  return { backends, gateway };
}

async function ask(gateway: Gateway, ...contents: string[]): Promise<string> {
  const messages = contents.map((content, turn) => ({ role: turn % 2 === 0 ? "user" : "assistant", content }));
  const response = await gateway.chat({ messages });
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get("x-signalbox-backend") ?? "";
}

describe("the KV cache index", () => {
  test("a conversation stays where it began, whatever the others do", async () => {
    const { gateway, backends } = await pool(4);
    const homes = new Map<string, string>();
    for (let turn = 0; turn < 4; turn++) {
      for (const user of ["ann", "bob", "cid", "dee", "eve"]) {
        const contents = Array.from({ length: turn * 2 + 1 }, (_, each) => text(`${user} ${each}`, each === 0 ? 8 : 2));
        const answeredBy = await ask(gateway, ...contents);
        homes.set(user, homes.get(user) ?? answeredBy);
        expect(answeredBy).toBe(homes.get(user) as string);
      }
    }
    expect(new Set(homes.values()).size).toBeGreaterThan(1);
    const hashes = backends.flatMap(({ requests }) => requests.map(({ headers }) => headers[HEADER]));
    for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{16}$/);
    expect(new Set(hashes).size).toBe(20);
    const view = await kvIndex(gateway);
    expect(view).toMatchObject({ enabled: true, lookups: 20, hits: 15, event_sources: [] });
    expect(view.backends.reduce((sum, { entries }) => sum + entries, 0)).toBe(view.entries);
  });

  test("a prompt that is shorter than a block has no hash, and nothing is learnt of it", async () => {
    const { gateway, backends } = await pool(2);
    await ask(gateway, "hello");
    expect(backends.flatMap(({ requests }) => requests.map(({ headers }) => headers[HEADER]))).toEqual([undefined]);
    expect(await kvIndex(gateway)).toMatchObject({ entries: 0, lookups: 0 });
  });

  test("without the index and the strategy no request carries a hash", async () => {
    const { gateway, backends } = await pool(2, { routing: {}, kv_cache_index: {} });
    await ask(gateway, text("long", 4));
    expect(backends.flatMap(({ requests }) => requests.map(({ headers }) => headers[HEADER]))).toEqual([undefined]);
    expect(await kvIndex(gateway)).toMatchObject({ enabled: false, entries: 0 });
    expect((await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" })).status).toBe(404);
  });

  test("without the index prompts that begin alike meet the same backend, and carry their hash", async () => {
    const { gateway, backends } = await pool(4, { kv_cache_index: { enabled: false } });
    const homes = new Set<string>();
    for (let user = 0; user < 20; user++) {
      const home = await ask(gateway, text(`user ${user}`, 2), "answer", "more");
      homes.add(home);
      expect(await ask(gateway, text(`user ${user}`, 2), "another answer", `other ${user}`)).toBe(home);
    }
    expect(homes.size).toBeGreaterThan(2);
    for (const { headers } of backends.flatMap(({ requests }) => requests)) expect(headers[HEADER]).toMatch(/^\w{16}$/);
  });

  test("the story of a request tells the scores, and who decided", async () => {
    const { gateway } = await pool(2);
    const story = async (contents: string[]) => {
      const messages = contents.map((content) => ({ role: "user", content }));
      const response = await gateway.chat({ messages });
      await response.text();
      const id = response.headers.get("x-signalbox-request-id") ?? response.headers.get("x-request-id");
      const body = await (await fetch(`${gateway.url}/admin/requests/${id}`)).json();
      return JSON.stringify(body);
    };
    expect(await story([text("a", 4)])).toContain('"strategy":"LeastLatency"');
    const second = await story([text("a", 4)]);
    expect(second).toContain('"strategy":"PrefixAwareHash"');
    expect(second).toMatch(/"score":(1|0\.9999)/);
    expect(second).toContain("share of the prompt in its cache");
  });

  test("below the threshold the configured strategy chooses", async () => {
    const { gateway } = await pool(2, { routing: { selection_strategy: "RoundRobin" } });
    const system = text("system", 2);
    const answered: string[] = [];
    for (let user = 0; user < 6; user++) answered.push(await ask(gateway, system, "fine", text(`user ${user} `, 40)));
    expect(answered.filter((name) => name === "b0")).toHaveLength(3);
    expect(await ask(gateway, system, "fine", text("user 3 ", 40))).toBe(answered[3] as string);
  });

  test("a backend that fails gives way, and the next one is learnt", async () => {
    const { gateway, backends } = await pool(2, { circuit_breaker: { enabled: false } });
    const home = await ask(gateway, text("a", 4));
    const broken = backends[home === "b0" ? 0 : 1] as FakeBackend;
    broken.answer = failure(503);
    const heir = await ask(gateway, text("a", 4));
    expect(heir).not.toBe(home);
    broken.answer = chat("well again");
    // Both have it now; the one that failed is less healthy.
    expect(await ask(gateway, text("a", 4))).toBe(heir);
  });

  test("a global prompt is a part of what is hashed, and a translated request of what is learnt", async () => {
    const { gateway, backends } = await pool(1, { global_prompts: { default: text("be kind", 2) } });
    await ask(gateway, "hello");
    const messages = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "m", max_tokens: 5, messages: [{ role: "user", content: "hello" }] }),
    });
    expect(messages.status).toBe(200);
    const [own, translated] = backends[0]?.requests.map(({ headers }) => headers[HEADER]) ?? [];
    expect(own).toMatch(/^\w{16}$/);
    expect(translated).toBe(own as string);
  });

  test("DELETE forgets one backend or all, and a smaller index keeps the newest of each", async () => {
    const { gateway } = await pool(2);
    const homes = new Map<string, string>();
    for (const word of ["a", "b", "c", "d"]) homes.set(word, await ask(gateway, text(word, 10)));
    const before = await kvIndex(gateway);
    const patch = await fetch(`${gateway.url}/admin/config/kv_cache_index`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ max_entries: 3 }),
    });
    expect(patch.status).toBe(200);
    expect(before.entries).toBeGreaterThan(3);
    const after = await kvIndex(gateway);
    expect(after.entries).toBe(3);
    const name = homes.get("d") as string;
    const removed = after.backends.find(({ backend_name }) => backend_name === name)?.entries ?? 0;
    expect(removed).toBeGreaterThan(0);
    const one = await fetch(`${gateway.url}/admin/kv-index?backend=${name}`, { method: "DELETE" });
    expect(await one.json()).toMatchObject({ success: true, removed });
    expect((await fetch(`${gateway.url}/admin/kv-index?backend=nobody`, { method: "DELETE" })).status).toBe(404);
    expect(await (await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" })).json()).toMatchObject({
      removed: 3 - removed,
    });
  });

  test("it is switched on and off while requests come", async () => {
    const { gateway, backends } = await pool(2, { kv_cache_index: {}, routing: {} });
    const change = async (enabled: boolean) => {
      const body = JSON.stringify({ enabled });
      const headers = { "content-type": "application/json" };
      const done = await fetch(`${gateway.url}/admin/config/kv_cache_index`, { method: "PATCH", headers, body });
      expect(done.status).toBe(200);
    };
    const lastHash = () =>
      backends
        .flatMap(({ requests }) => requests)
        .toSorted((a, b) => a.receivedAtMs - b.receivedAtMs)
        .at(-1)?.headers[HEADER];
    await change(true);
    const home = await ask(gateway, text("a", 4));
    expect(lastHash()).toMatch(/^\w{16}$/);
    for (let count = 0; count < 4; count++) expect(await ask(gateway, text("a", 4))).toBe(home);
    await change(false);
    await ask(gateway, text("a", 4));
    expect(lastHash()).toBeUndefined();
    await change(true);
    expect((await kvIndex(gateway)).entries).toBe(0);
  });
});

/** An engine that tells of its cache, as long as its stream stands. */
function engine(status = 200) {
  const connections = new Set<ReadableStreamDefaultController<Uint8Array>>();
  const asked: Headers[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      asked.push(request.headers);
      if (status !== 200) return new Response("no", { status });
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          connections.add(controller);
          controller.enqueue(new TextEncoder().encode(": here\n\n"));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/events`,
    asked,
    write(piece: string) {
      for (const connection of connections) connection.enqueue(new TextEncoder().encode(piece));
    },
    tell(name: string, data: object) {
      this.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    cut() {
      for (const connection of connections) connection.close();
      connections.clear();
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}

describe("events of caches", () => {
  async function withEvents(endpoint: string, more: object = {}, routing?: ConfigDocument["routing"]) {
    const source = { backend_name: "b1", endpoint, reconnect_interval_ms: 20 };
    const { gateway, backends } = await pool(
      2,
      { kv_cache_index: { enabled: true, event_sources: [source], ...more }, ...(routing && { routing }) },
      { api_key: "sekret-of-backend" },
    );
    const source0 = async () => (await kvIndex(gateway)).event_sources[0];
    return { gateway, backends, source: source0 };
  }

  async function hashOf(gateway: Gateway, backends: FakeBackend[], content: string): Promise<string> {
    await ask(gateway, content);
    return backends
      .flatMap(({ requests }) => requests)
      .toSorted((a, b) => a.receivedAtMs - b.receivedAtMs)
      .at(-1)?.headers[HEADER] as string;
  }

  test("what is told is known, until the engine says otherwise", async () => {
    using told = engine();
    const { gateway, backends, source } = await withEvents(told.url);
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    expect(told.asked[0]?.get("authorization")).toBeNull(); // another address than the backend's own
    const hash = await hashOf(gateway, backends, text("a", 4));
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    const entries = async () => (await kvIndex(gateway)).backends.find((each) => each.backend_name === "b1")?.entries;
    for (const [name, data, expected] of [
      ["cache_created", { prefix_hash: hash, token_count: 512, tier: "GpuHot" }, 1],
      ["cache_evicted", { prefix_hash: hash, token_count: 512 }, 0],
      ["cache_reloaded", { prefix_hash: hash, token_count: 512, tier: "gpu_hot" }, 1],
      ["cache_offloaded", { prefix_hash: hash, token_count: 512 }, 0], // nothing is offloaded here
      ["message", { action: "CacheCreated", prefix_hash: hash, token_count: 512 }, 1],
      ["cache_purged", { prefix_hash: hash, token_count: 512 }, 0],
    ] as const) {
      told.tell(name, data);
      await waitFor(`${name} is known`, async () => (await entries()) === expected);
    }
    expect(await source()).toMatchObject({ events: 6, dropped: 0 });
  });

  test("a prefix that only an engine has told of leads to that engine, until it says otherwise", async () => {
    using told = engine();
    const { gateway, backends, source } = await withEvents(told.url, { scoring: { load_weight: 0, health_weight: 0 } });
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const hash = await hashOf(gateway, backends, text("a", 8));
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    (backends[1] as FakeBackend).requests.length = 0;
    told.tell("cache_created", { prefix_hash: hash, token_count: 512 });
    await waitFor("it is known", async () => (await kvIndex(gateway)).entries === 1);
    // Workers hear of it 20 ms later, and nothing shows when they have.
    if (workerCount() > 1) await Bun.sleep(500);
    // What goes on behind it begins with it.
    expect(await ask(gateway, text("a", 8), "fine", text("more", 2))).toBe("b1");
    await waitFor("the index chose", async () => (await kvIndex(gateway)).hits === 1);
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    told.tell("cache_created", { prefix_hash: hash, token_count: 512 });
    told.tell("cache_purged", { prefix_hash: hash });
    await waitFor("both were heard", async () => (await source())?.events === 3);
    await ask(gateway, text("a", 8));
    expect(await kvIndex(gateway)).toMatchObject({ hits: 1 });
  });

  /** Two backends that take turns where the index says nothing; b1 claims, and its answers report `cached` of 1,000 tokens. */
  async function withClaims(endpoint: string, cached?: number) {
    const { gateway, backends, source } = await withEvents(endpoint, {}, { selection_strategy: "RoundRobin" });
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const details = cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } };
    const counts = { prompt_tokens: 1_000, completion_tokens: 1, total_tokens: 1_001, ...details };
    (backends[1] as FakeBackend).answer = chat("fine", { usage: counts });
    const b1 = async () => (await kvIndex(gateway)).backends.find(({ backend_name }) => backend_name === "b1");
    return { gateway, backends, source, b1 };
  }

  /** Prompts that b1 has told of, and that the gateway does not know. */
  async function claimed(told: ReturnType<typeof engine>, gateway: Gateway, backends: FakeBackend[], count: number) {
    const contents = Array.from({ length: count }, (_, each) => text(`claim ${each}`, 4));
    const hashes: string[] = [];
    for (const content of contents) hashes.push(await hashOf(gateway, backends, content));
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    const before = await kvIndex(gateway);
    for (const hash of hashes) told.tell("cache_created", { prefix_hash: hash, token_count: 512 });
    await waitFor("they are known", async () => (await kvIndex(gateway)).entries === count);
    if (workerCount() > 1) await Bun.sleep(500);
    return { contents, hits: async () => (await kvIndex(gateway)).hits - before.hits };
  }

  test("a backend whose answers contradict its claims draws few requests, and is distrusted", async () => {
    using told = engine();
    const { gateway, backends, source, b1 } = await withClaims(told.url, 0);
    const shared = text("shared", 8);
    const hash = await hashOf(gateway, backends, shared);
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    told.tell("cache_created", { prefix_hash: hash, token_count: 512 });
    await waitFor("it is known", async () => (await kvIndex(gateway)).entries === 1);
    if (workerCount() > 1) await Bun.sleep(500);
    const asked = async (name: string) => await ask(gateway, shared, "fine", text(name, 2));
    expect([await asked("one"), await asked("two"), await asked("three")]).toEqual(["b1", "b1", "b1"]);
    await waitFor("it is distrusted", async () => (await b1())?.distrusted === true);
    if (workerCount() > 1) await Bun.sleep(500);
    expect(await b1()).toMatchObject({ entries: 0, distrusted: true });
    told.tell("cache_created", { prefix_hash: hash, token_count: 512 });
    await waitFor("it was heard", async () => (await source())?.events === 2);
    // Others take turns until one of them has it, and it stays there.
    const answered: string[] = [];
    for (let count = 0; count < 12; count++) answered.push(await asked(`later ${count}`));
    expect(answered.slice(2)).toEqual(Array.from({ length: 10 }, () => "b0"));
    expect(gateway.printed.stderr).toContain("answers of b1 contradict its events");
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toContain('signalbox_kv_index_distrusted{backend="b1"} 1');
    expect(metrics).toContain('signalbox_kv_index_distrusted{backend="b0"} 0');
  });

  test("claims that no answer confirms draw an equal share, and those that are confirmed draw all", async () => {
    using silent = engine();
    const first = await withClaims(silent.url);
    const unconfirmed = await claimed(silent, first.gateway, first.backends, 50);
    for (const content of unconfirmed.contents) await ask(first.gateway, content);
    expect(await unconfirmed.hits()).toBeLessThanOrEqual(25 + 8 * workerCount());
    using honest = engine();
    const second = await withClaims(honest.url, 900);
    const confirmed = await claimed(honest, second.gateway, second.backends, 50);
    for (const content of confirmed.contents) expect(await ask(second.gateway, content)).toBe("b1");
    expect(await second.b1()).toMatchObject({ distrusted: false });
  });

  test("an engine that tells of a prompt before its answer begins contradicts nothing", async () => {
    using told = engine();
    const { gateway, backends, source, b1 } = await withClaims(told.url, 0);
    const report = chat("fine", { usage: { prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 0 } } });
    let events = 0;
    const answer = async ({ headers }: { headers: Record<string, string> }) => {
      told.tell("cache_created", { prefix_hash: headers[HEADER], token_count: 512 });
      events++;
      await waitFor("it was heard", async () => (await source())?.events === events);
      return report;
    };
    for (const backend of backends) backend.answer = answer;
    for (let count = 0; count < 8; count++) await ask(gateway, text(`cold ${count}`, 4));
    expect(await b1()).toMatchObject({ distrusted: false });
  });

  test("the path of a backend is asked with its credential", async () => {
    const { backends, source } = await withEvents("/kv/events");
    await waitFor("it was asked", () => backends[1]?.probes.some(({ path }) => path === "/kv/events") === true);
    const probe = backends[1]?.probes.find(({ path }) => path === "/kv/events");
    expect(probe?.headers.authorization).toBe("Bearer sekret-of-backend");
    expect(probe?.headers.accept).toBe("text/event-stream");
    await waitFor("it is no stream", async () => (await source())?.last_error !== null);
  });

  test("a backend that is switched off tells nothing, and is asked at once when it is on again", async () => {
    using told = engine();
    const { gateway, source } = await withEvents(told.url, {
      event_sources: [{ backend_name: "b1", endpoint: told.url, reconnect_interval_ms: 3_600_000 }],
    });
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const change = async (enabled: boolean) => {
      const body = JSON.stringify({ enabled });
      const headers = { "content-type": "application/json" };
      expect((await fetch(`${gateway.url}/admin/backends/b1`, { method: "PUT", headers, body })).status).toBe(200);
    };
    await change(false);
    expect(await source()).toMatchObject({ connected: false, last_error: "the backend is disabled" });
    await change(true);
    await waitFor("the stream stands again", async () => (await source())?.connected === true);
  });

  test("a stream that ends, refuses or lies is asked again, and costs no request anything", async () => {
    using told = engine();
    const { gateway, source } = await withEvents(told.url);
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    told.write(
      'event: cache_created\ndata: not json\n\nevent: cache_created\ndata: {"prefix_hash": 7}\n\ndata: {}\n\n',
    );
    told.write(`event: cache_evicted\ndata: {"prefix_hash":"${"0".repeat(15)}g"}\n\n`);
    told.cut();
    await waitFor("it connects again", () => told.asked.length >= 2);
    await waitFor("the stream stands again", async () => (await source())?.connected === true);
    expect((await source())?.events).toBe(0);
    told.write("x".repeat(200_000));
    await waitFor("it is given up", async () => (await source())?.last_error === "an event is too large");
    expect(await ask(gateway, text("a", 4))).toMatch(/^b/);
  });

  test("a flood of events is bounded: the oldest go, and are counted", async () => {
    using told = engine();
    const { gateway, source } = await withEvents(told.url, { max_entries: 100 });
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const events = Array.from(
      { length: 60_000 },
      (_, hash) => `event: cache_created\ndata: {"prefix_hash":"${hash.toString(16).padStart(16, "0")}"}\n\n`,
    );
    told.write(events.join(""));
    await waitFor("all were heard", async () => (await source())?.events === 60_000);
    expect((await kvIndex(gateway)).entries).toBe(100);
    expect(await ask(gateway, text("a", 4))).toMatch(/^b/);
  });

  test("offloaded blocks count less, and evicted ones are taken for offloaded", async () => {
    using told = engine();
    const { gateway, backends, source } = await withEvents(told.url, {
      storage_offloading: { enabled: true },
      scoring: { load_weight: 0, health_weight: 0 },
    });
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const hash = await hashOf(gateway, backends, text("a", 4));
    await fetch(`${gateway.url}/admin/kv-index`, { method: "DELETE" });
    told.tell("cache_created", { prefix_hash: hash, token_count: 1 });
    told.tell("cache_evicted", { prefix_hash: hash, token_count: 1 });
    const entries = async () => (await kvIndex(gateway)).entries;
    await waitFor("both were heard", async () => (await source())?.events === 2 && (await entries()) === 1);
    told.tell("cache_evicted", { prefix_hash: hash, token_count: 1, tier: "StorageWarm" });
    await waitFor("it is gone", async () => (await entries()) === 0);
  });

  test("another list of sources closes and opens streams", async () => {
    using first = engine();
    using second = engine(503);
    const { gateway, source } = await withEvents(first.url);
    await waitFor("the stream stands", async () => (await source())?.connected === true);
    const body = JSON.stringify({
      event_sources: [{ backend_name: "b0", endpoint: second.url, reconnect_interval_ms: 20 }],
    });
    const headers = { "content-type": "application/json" };
    const change = await fetch(`${gateway.url}/admin/config/kv_cache_index`, { method: "PATCH", headers, body });
    expect(change.status).toBe(200);
    await waitFor("it was refused", async () => (await source())?.last_error === "HTTP 503");
    await waitFor("it is asked again", () => second.asked.length >= 3);
    const unknown = JSON.stringify({ event_sources: [{ backend_name: "nobody", endpoint: "/e" }] });
    expect(
      (await fetch(`${gateway.url}/admin/config/kv_cache_index`, { method: "PATCH", headers, body: unknown })).status,
    ).toBe(400);
  });
});
