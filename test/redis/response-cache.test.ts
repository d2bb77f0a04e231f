// The response cache in Redis: two gateways with one server, what it may do to them, and what nobody may ever see.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { openRedisDoor, type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const PASSWORD = "sekret-of-redis";
/** A request waits for the server once. What waits for it again and again, or until it is back, takes longer, on any machine. */
const LONGEST_MS = 10_000;
const [ANNA, ARNO, BERT] = ["sk-sekret-anna", "sk-sekret-arno", "sk-sekret-bert"] as const;
let redis: RedisServer;

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

function start(redisSettings: object, more: ConfigDocument = {}): Promise<Gateway> {
  const { response_cache, ...rest } = more;
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      deduplication: { mode: "off" },
      response_cache: { enabled: true, backend: "redis", redis: redisSettings, ...response_cache },
      api_keys: {
        keys: [
          { key: ANNA, id: "anna", organization_id: "a" },
          { key: ARNO, id: "arno", organization_id: "a" },
          { key: BERT, id: "bert", organization_id: "b" },
        ],
      },
      backends: [{ name: "a", url: backend.url, models: ["m", "n"] }],
      ...rest,
    },
  });
}

interface Asked {
  text: string;
  model?: string;
  key?: string;
  stream?: boolean;
}

async function ask(gateway: Gateway, { text, model = "m", key, stream = false }: Asked) {
  const body = { model, stream, temperature: 0, messages: [{ role: "user", content: text }] };
  const response = await gateway.chat(body, key === undefined ? {} : { headers: bearer(key) });
  const answer = await response.text();
  expect(response.status).toBe(200);
  return { cache: response.headers.get("x-cache"), answer };
}

async function statistics(gateway: Gateway) {
  return (await (await gateway.fetch("/admin/response-cache")).json()) as Record<string, unknown>;
}

async function clear(gateway: Gateway, query = ""): Promise<Response> {
  return gateway.fetch(`/admin/response-cache${query}`, { method: "DELETE" });
}

/** Everyone gets the answer to his own question. */
function echo(): void {
  backend.answer = (request) => {
    const { messages, stream } = request.json<{ messages: { content: string }[]; stream?: boolean }>();
    const text = `echo of ${messages.at(-1)?.content}`;
    return stream ? chatStream([text]) : chat(text);
  };
}

async function untilHit(gateway: Gateway, asked: Asked): Promise<string> {
  return waitFor("a hit", async () => {
    const { cache, answer } = await ask(gateway, asked);
    return cache === "HIT" && answer;
  });
}

beforeAll(async () => {
  redis = await startRedisServer({ password: PASSWORD });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  backend.reset();
  echo();
  await redis.send("FLUSHALL");
});

describe("two gateways with one server", () => {
  let first: Gateway;
  let second: Gateway;
  beforeAll(async () => {
    [first, second] = (await Promise.all([start({ url: redis.url }), start({ url: redis.url })])) as [Gateway, Gateway];
  });

  test("what one has asked is a hit at the other, in either form, with the same bytes", async () => {
    const missed = await ask(first, { text: "one" });
    expect(missed.cache).toBe("MISS");
    expect(await untilHit(second, { text: "one" })).toBe(missed.answer);
    const stream = await ask(first, { text: "two", stream: true });
    expect(stream.cache).toBe("MISS");
    expect(await untilHit(second, { text: "two", stream: true })).toBe(stream.answer);
    expect(await untilHit(first, { text: "one", stream: true })).toContain("echo of one");
    const count = backend.requests.length;
    for (const gateway of [first, second]) expect((await ask(gateway, { text: "one" })).answer).toBe(missed.answer);
    expect(backend.requests).toHaveLength(count);
  });

  test("an owner sees its own answers alone, and the server sees nothing of questions and keys", async () => {
    await ask(first, { text: "secret plan", key: ANNA });
    expect(await untilHit(second, { text: "secret plan", key: ARNO })).toContain("echo of secret plan");
    const count = backend.requests.length;
    for (const key of [BERT, undefined]) {
      const asked = { text: "secret plan", ...(key && { key }) };
      expect((await ask(second, asked)).cache).toBe("MISS");
    }
    expect(backend.requests).toHaveLength(count + 2);
    const names = (await redis.send("KEYS", "*")) as string[];
    expect(names.every((name) => name.startsWith("cr:resp:"))).toBe(true);
    expect(names.join()).not.toMatch(/secret|anna|org|bert/);
  });

  test("an answer ends by itself", async () => {
    await ask(first, { text: "ends" });
    await untilHit(second, { text: "ends" });
    const [name] = (await redis.send("KEYS", "*:plain:*")) as string[] as [string];
    const leftMs = Number(await redis.send("PTTL", name));
    expect(leftMs).toBeGreaterThan(200_000);
    expect(leftMs).toBeLessThanOrEqual(300_000);
  });

  test("clearing forgets the answers of one model, or all, and nothing else in the server", async () => {
    await redis.send("MSET", "other", "1", "cr:resp", "2", "xcr:resp:1", "3");
    for (const model of ["m", "n"])
      for (let index = 0; index < 30; index++) await ask(first, { text: `${index}`, model });
    await untilHit(second, { text: "29", model: "n" });
    expect(await (await clear(second, "?model=m")).json()).toMatchObject({ removed: 30 });
    expect((await ask(first, { text: "3", model: "n" })).cache).toBe("HIT");
    expect((await ask(first, { text: "3", model: "m" })).cache).toBe("MISS");
    await untilHit(second, { text: "3", model: "m" });
    expect(await (await clear(first)).json()).toMatchObject({ removed: 31 });
    expect(((await redis.send("KEYS", "*:*:*:*:*")) as string[]).length).toBe(0);
    expect(await redis.send("MGET", "other", "cr:resp", "xcr:resp:1")).toEqual(["1", "2", "3"]);
  });

  test("the counters are a gateway's own; what it holds, it does not know", async () => {
    const before = (await statistics(first)) as { hits: number };
    await ask(first, { text: "counted" });
    await untilHit(first, { text: "counted" });
    const after = await statistics(first);
    expect(after).toMatchObject({
      backend: "redis",
      connected: true,
      entries: null,
      bytes: null,
      capacity: null,
      hits: before.hits + 1,
    });
    const metrics = await (await first.fetch("/metrics")).text();
    expect(metrics).toContain('signalbox_redis_up{use="response_cache"} 1');
    expect(metrics).not.toMatch(/signalbox_response_cache_entries \d/);
  });

  test("values that others have written, or spoilt, are misses", async () => {
    await ask(first, { text: "spoilt" });
    await untilHit(second, { text: "spoilt" });
    await ask(first, { text: "another" });
    await untilHit(second, { text: "another" });
    const names = (await redis.send("KEYS", "*:plain:*")) as string[];
    const [one, other] = names as [string, string];
    await redis.send("RENAME", one, "aside");
    await redis.send("COPY", other, one, "REPLACE");
    for (const text of ["spoilt", "another"]) expect((await ask(second, { text })).answer).toContain(`echo of ${text}`);
    for (const write of [
      ["SET", one, "garbage"],
      ["SET", one, ""],
      ["DEL", one],
      ["EVAL", "redis.call('DEL', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'a')", "1", one],
    ]) {
      await redis.send(...write);
      await redis.send("DEL", other);
      for (const text of ["spoilt", "another"]) {
        expect((await ask(second, { text })).answer).toContain(`echo of ${text}`);
      }
    }
    expect(await statistics(second)).toMatchObject({ connected: true });
  });
});

test("by a unix socket, with a prefix of its own that means nothing but itself", async () => {
  const own = await startRedisServer({ socket: true, password: PASSWORD });
  try {
    const one = await start({ url: own.url, key_prefix: "a*[b]?\\-:" });
    const other = await start({ url: own.url, key_prefix: "ax[b]?\\-:" });
    await ask(one, { text: "q" });
    await untilHit(one, { text: "q" });
    expect((await ask(other, { text: "q" })).cache).toBe("MISS");
    await untilHit(other, { text: "q" });
    expect(await (await clear(one)).json()).toMatchObject({ removed: 1 });
    expect((await ask(other, { text: "q" })).cache).toBe("HIT");
    expect((await ask(one, { text: "q" })).cache).toBe("MISS");
    expect(await (await one.fetch("/admin/config/response_cache")).text()).not.toContain("sekret");
    expect(await (await one.fetch("/admin/config/full")).text()).not.toContain("sekret");
  } finally {
    await own.stop();
  }
});

describe("trouble during load", () => {
  /** Clients ask, each its own questions and those of all, until told to stop: every answer is the right one. */
  function load(gateway: Gateway, clients = 8) {
    let goesOn = true;
    let longestMs = 0;
    const answered: number[] = Array(clients).fill(0);
    async function client(index: number): Promise<void> {
      for (let turn = 0; goesOn; turn++) {
        const text = turn % 2 === 0 ? `shared ${turn % 10}` : `own ${index} ${turn}`;
        const startedAtMs = performance.now();
        const { answer } = await ask(gateway, { text, stream: turn % 3 === 0 });
        longestMs = Math.max(longestMs, performance.now() - startedAtMs);
        expect(answer).toContain(`echo of ${text}`);
        answered[index] = turn + 1;
        await Bun.sleep(1);
      }
    }
    const clientsAtWork = Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
    return {
      /** Each client has its share of them, so that none waits for a server that is away. */
      more: (count: number) => {
        const until = answered.map((turns) => turns + count / clients);
        return waitFor(`${count} more answers`, () => answered.every((turns, index) => turns >= (until[index] ?? 0)));
      },
      async end(): Promise<number> {
        goesOn = false;
        await within("the clients end", clientsAtWork);
        return longestMs;
      },
    };
  }

  const isConnected = async (gateway: Gateway) => (await statistics(gateway)).connected === true;

  test.each([true, false])("killed, and back; fallback_to_memory: %p", async (fallback_to_memory) => {
    const own = await startRedisServer();
    try {
      const gateway = await start({ url: own.url, fallback_to_memory });
      const clients = load(gateway);
      await clients.more(100);
      await own.kill();
      await waitFor("it is away", async () => !(await isConnected(gateway)));
      await clients.more(200);
      await ask(gateway, { text: "meanwhile" });
      const again = await ask(gateway, { text: "meanwhile" });
      expect(again.cache).toBe(fallback_to_memory ? "HIT" : "MISS");
      expect((await clear(gateway)).status).toBe(503);
      expect(await (await gateway.fetch("/metrics")).text()).toContain('signalbox_redis_up{use="response_cache"} 0');
      await own.start();
      await waitFor("it is back", () => isConnected(gateway));
      await clients.more(100);
      await ask(gateway, { text: "again" });
      await untilHit(gateway, { text: "again" });
      expect(Number(await own.send("DBSIZE"))).toBeGreaterThan(0);
      expect(await clients.end()).toBeLessThan(LONGEST_MS);
    } finally {
      await own.stop();
    }
  });

  test("paused: it accepts, and never answers", async () => {
    const own = await startRedisServer();
    try {
      const gateway = await start({ url: own.url });
      const clients = load(gateway);
      await clients.more(100);
      own.pause();
      await waitFor("it is away", async () => !(await isConnected(gateway)));
      await clients.more(300);
      own.resume();
      await waitFor("it is back", () => isConnected(gateway));
      await clients.more(100);
      expect(await clients.end()).toBeLessThan(LONGEST_MS);
    } finally {
      await own.stop();
    }
  });

  test("slow, cut off, and full of garbage", async () => {
    const own = await startRedisServer();
    const door = openRedisDoor(own.port);
    try {
      const gateway = await start({ url: door.url });
      const clients = load(gateway);
      await clients.more(50);
      door.distort = async (bytes) => {
        await Bun.sleep(50);
        return bytes;
      };
      await clients.more(50);
      const garbage = (seed: number) => (bytes: Uint8Array) =>
        bytes.map((byte, index) => byte ^ ((index * seed) % 7 === 0 ? seed : 0));
      const shuffled: Uint8Array[] = [];
      const faults: ((bytes: Uint8Array) => Uint8Array | undefined)[] = [
        () => new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"),
        garbage(1),
        garbage(4),
        (bytes) => bytes.subarray(0, bytes.length >> 1),
        // Answers to other questions.
        (bytes) => {
          shuffled.push(bytes.slice());
          return shuffled.length > 3 ? shuffled.shift() : undefined;
        },
        () => undefined,
      ];
      for (const fault of faults) {
        door.distort = fault;
        await clients.more(60);
        door.cut();
        await clients.more(20);
        door.distort = (bytes) => bytes;
        await waitFor("it is back", () => isConnected(gateway), { timeoutMs: 25_000 });
        await clients.more(20);
      }
      expect(await clients.end()).toBeLessThan(LONGEST_MS);
    } finally {
      door.stop();
      await own.stop();
    }
  }, 120_000);
});

describe("a change of the configuration", () => {
  async function patch(gateway: Gateway, section: string, change: object): Promise<void> {
    const response = await gateway.fetch(`/admin/config/${section}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(change),
    });
    expect(response.status).toBe(200);
  }

  test.each(["memory", "redis"] as const)(
    "%s: answers stay when bounds change, not when the prompt does",
    async (kind) => {
      const gateway = await start({ url: redis.url }, { response_cache: { backend: kind } });
      const once = async (text: string) => (await ask(gateway, { text })).cache;
      expect(await once("kept")).toBe("MISS");
      await untilHit(gateway, { text: "kept" });
      for (const change of [
        { ttl: "10m" },
        { capacity: 500 },
        { max_total_size: 1_000_000 },
        { max_response_size: 50_000 },
      ]) {
        await patch(gateway, "response_cache", change);
        expect(await once("kept")).toBe("HIT");
      }
      expect(await statistics(gateway)).toMatchObject(kind === "memory" ? { capacity: 500, max_bytes: 1_000_000 } : {});
      await patch(gateway, "rate_limiting", { headers_on_success: true });
      expect(await once("kept")).toBe("HIT");
      await patch(gateway, "global_prompts", { default: "Speak like a pirate." });
      expect(await once("kept")).toBe("MISS");
      await untilHit(gateway, { text: "kept" });
      await patch(gateway, "global_prompts", { default: "Speak like a sailor." });
      expect(await once("kept")).toBe("MISS");
      await patch(gateway, "global_prompts", { default: "Speak like a pirate." });
      expect(await once("kept")).toBe("HIT");
    },
  );

  test("another server is used from then on", async () => {
    const own = await startRedisServer();
    try {
      const gateway = await start({ url: redis.url });
      await ask(gateway, { text: "moves" });
      await untilHit(gateway, { text: "moves" });
      await patch(gateway, "response_cache", { redis: { url: own.url } });
      expect((await ask(gateway, { text: "moves" })).cache).toBe("MISS");
      await untilHit(gateway, { text: "moves" });
      expect(Number(await own.send("DBSIZE"))).toBeGreaterThan(0);
    } finally {
      await own.stop();
    }
  });
});
