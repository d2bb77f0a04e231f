// The cache in two tiers before a real S3-compatible server: what is shared, what outlives a restart, and that a server which
// is away, silent, slow or full of garbage costs nobody an answer or more than a second.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatBody } from "../support/openai-answers.ts";
import { type S3Server, startS3Server } from "../support/s3-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const [ANNA, BERT] = ["sk-sekret-anna", "sk-sekret-bert"];
let server: S3Server;
/** Each test has objects of its own. */
let prefixes = 0;

beforeAll(async () => {
  server = await startS3Server();
}, INSTALL_TIMEOUT_MS);
afterAll(() => server.stop());

beforeEach(() => {
  server.faults.answer = () => undefined;
  // The answer says what was asked, so that a wrong one shows.
  backend.reset((request) => chat(`to ${JSON.parse(request.text).messages[0].content}`));
  prefixes++;
});

function start(
  tiered: { l1?: object; l2?: object; promote_on_hit?: boolean } = {},
  more: object = {},
): Promise<Gateway> {
  const { key_prefix: _files, ...bucket } = server.settings;
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      response_cache: {
        enabled: true,
        backend: "tiered",
        tiered: { ...tiered, l2: { ...bucket, key_prefix: `cache-${prefixes}/`, ...tiered.l2 } },
        ...more,
      },
      api_keys: {
        keys: [
          { key: ANNA as string, organization_id: "a" },
          { key: BERT as string, organization_id: "b" },
        ],
      },
      backends: [{ name: "a", url: backend.url, models: ["m", "n"] }],
    },
  });
}

async function ask(gateway: Gateway, content: string, { key = ANNA as string, model = "m", stream = false } = {}) {
  const body = { model, stream, messages: [{ role: "user", content }] };
  const startedMs = performance.now();
  const response = await gateway.chat(body, { headers: { Authorization: `Bearer ${key}` } });
  const text = await response.text();
  expect(response.status).toBe(200);
  if (!stream) expect(text).toBe(chatBody(`to ${content}`));
  return { cache: response.headers.get("x-cache"), ms: performance.now() - startedMs, text };
}

interface Statistics {
  connected: boolean;
  hits: number;
  misses: number;
  stores: number;
  entries: number;
  l2: Record<string, number>;
}

async function statistics(gateway: Gateway): Promise<Statistics> {
  return (await (await gateway.fetch("/admin/response-cache")).json()) as Statistics;
}

async function written(gateway: Gateway, count: number): Promise<void> {
  await waitFor("the answers are written", async () => (await statistics(gateway)).l2.written === count);
}

describe("answers in the bucket", () => {
  test("are given by another gateway, and after a restart, to the same owner alone, in either form", async () => {
    const one = await start();
    expect((await ask(one, "hi")).cache).toBe("MISS");
    expect((await ask(one, "hi")).cache).toBe("HIT");
    await written(one, 1);
    const other = await start();
    expect((await ask(other, "hi", { key: BERT as string })).cache).toBe("MISS");
    expect((await ask(other, "hi")).cache).toBe("HIT");
    const { cache, text } = await ask(other, "hi", { stream: true });
    expect(cache).toBe("HIT");
    expect(text).toContain("to hi");
    expect(backend.requests).toHaveLength(2);
    // The first was from the bucket, the second from memory, where it was put.
    const metrics = await (await other.fetch("/metrics")).text();
    expect(metrics).toContain("signalbox_response_cache_l2_up 1\n");
    expect(metrics).toContain("signalbox_response_cache_l2_hits_total 1\n");
    expect(await statistics(other)).toMatchObject({ hits: 2, misses: 1, stores: 1, entries: 2, l2: { hits: 1 } });
  });

  test("that are too large for the memory, or are not to be put there, come from the bucket each time", async () => {
    const one = await start({ l1: { max_value_size: 10 }, promote_on_hit: true });
    await ask(one, "hi");
    await written(one, 1);
    expect([(await ask(one, "hi")).cache, (await ask(one, "hi")).cache]).toEqual(["HIT", "HIT"]);
    expect(await statistics(one)).toMatchObject({ entries: 0, l2: { hits: 2 } });
    const other = await start({ promote_on_hit: false });
    expect([(await ask(other, "hi")).cache, (await ask(other, "hi")).cache]).toEqual(["HIT", "HIT"]);
    expect(await statistics(other)).toMatchObject({ entries: 0, l2: { hits: 2 } });
  });

  test("end with their own time", async () => {
    const one = await start({ l2: { ttl_override: "300ms" } });
    await ask(one, "hi");
    await written(one, 1);
    const other = await start({ promote_on_hit: false });
    await waitFor("it is too old", async () => (await ask(other, "hi")).cache === "MISS");
    expect((await ask(one, "hi")).cache).toBe("HIT");
  });

  test("are forgotten by model or all, and stay forgotten after a restart", async () => {
    const one = await start();
    for (const model of ["m", "n"]) await ask(one, "hi", { model });
    await written(one, 2);
    expect((await one.fetch("/admin/response-cache?model=m", { method: "DELETE" })).status).toBe(200);
    const other = await start({ promote_on_hit: false });
    const decisions = async (gateway: Gateway) => [
      (await ask(gateway, "hi")).cache,
      (await ask(gateway, "hi", { model: "n" })).cache,
    ];
    expect(await decisions(other)).toEqual(["MISS", "HIT"]);
    expect((await one.fetch("/admin/response-cache", { method: "DELETE" })).status).toBe(200);
    expect(await decisions(await start())).toEqual(["MISS", "MISS"]);
  });

  test("stay in memory, and are counted on, over a change of everything but the bucket", async () => {
    const gateway = await start();
    expect((await ask(gateway, "kept")).cache).toBe("MISS");
    await written(gateway, 1);
    const changes = { ttl: "2m", capacity: 500, tiered: { promote_on_hit: false, l2: { ttl_override: "1h" } } };
    const change = await gateway.fetch("/admin/config/response_cache", {
      method: "PATCH",
      body: JSON.stringify(changes),
      headers: { "Content-Type": "application/json" },
    });
    expect(change.status).toBe(200);
    server.faults.answer = () => new Response(null, { status: 500 });
    expect((await ask(gateway, "kept")).cache).toBe("HIT");
    expect(await statistics(gateway)).toMatchObject({ hits: 1, stores: 1, capacity: 500 });
  });

  test("settings: secrets are masked, a bucket is required", async () => {
    const one = await start();
    const text = await (await one.fetch("/admin/config/response_cache")).text();
    expect(text).toContain("bucket-1");
    expect(text).not.toContain("sekret");
  });
});

const FAULTS: [string, (request: Request) => Response | Promise<Response> | undefined][] = [
  ["refuses everything", () => new Response("no", { status: 403 })],
  ["never answers", () => new Promise<Response>(() => {})],
  ["answers too late", () => Bun.sleep(3_000).then(() => new Response("late"))],
  ["is full of garbage", ({ method }) => (method === "GET" ? new Response("<html>garbage</html>") : undefined)],
  ["sends without end", ({ method }) => (method === "GET" ? new Response(endless()) : undefined)],
  ["sends halves", ({ method }) => (method === "GET" ? new Response(new Uint8Array(3)) : undefined)],
];

function endless(): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(65_536).fill(97);
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(1);
      controller.enqueue(chunk);
    },
  });
}

describe("a server that", () => {
  test.each(FAULTS)(
    "%s",
    async (_name, fault) => {
      const gateway = await start({ l1: { max_value_size: 10 } });
      await ask(gateway, "before");
      await written(gateway, 1);
      expect((await ask(gateway, "before")).cache).toBe("HIT");
      server.faults.answer = fault;
      const waits: number[] = [];
      for (let round = 0; round < 4; round++) {
        const asked = Array.from({ length: 25 }, (_, index) =>
          ask(gateway, index % 5 === 0 ? "before" : `${round}/${index}`),
        );
        for (const { ms, cache } of await Promise.all(asked)) {
          waits.push(ms);
          expect(cache).not.toBe("HIT");
        }
      }
      expect(Math.max(...waits)).toBeLessThan(2_000);
      // Only those wait that ask before it is known.
      expect(waits.filter((ms) => ms > 900).length).toBeLessThanOrEqual(50);
      server.faults.answer = () => undefined;
      // A miss writes its answer, and this server gives halves of an object that is being written, which pauses the bucket again:
      // the object is asked for only while nothing is written, and others while the bucket is paused.
      let probes = 0;
      await waitFor(
        "the bucket is used again",
        async () => {
          const { connected, l2 } = await statistics(gateway);
          if (l2.written !== backend.requests.length) return false;
          const { cache } = await ask(gateway, connected ? "before" : `probe/${probes++}`);
          return cache === "HIT";
        },
        { timeoutMs: 50_000, intervalMs: 20 }, // after many failures a pause lasts 30 s (lib/pause.ts)
      );
      expect((await statistics(gateway)).l2.dropped).toBe(0);
    },
    70_000,
  );
});

test("a server that goes away for good during load", async () => {
  const own = await startS3Server();
  const { key_prefix: _files, ...bucket } = own.settings;
  const gateway = await start({ l2: bucket });
  await ask(gateway, "hi");
  await written(gateway, 1);
  const asked = Array.from({ length: 50 }, (_, index) => ask(gateway, `a ${index}`));
  await own.stop();
  const answers = [
    ...(await Promise.all(asked)),
    ...(await Promise.all(asked.map((_, index) => ask(gateway, `b ${index}`)))),
  ];
  expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(2_000);
  expect((await ask(gateway, "hi")).cache).toBe("HIT");
  const response = await gateway.fetch("/admin/response-cache", { method: "DELETE" });
  expect(response.status).toBe(503);
  expect((await ask(gateway, "hi")).cache).toBe("MISS");
  expect((await statistics(gateway)).connected).toBe(false);
}, 20_000);
