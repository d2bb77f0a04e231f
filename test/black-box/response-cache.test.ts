// The response cache: what is kept, for whom, how it is replayed, and what is never kept (specification, Limits,
// "Response cache").

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { readChat } from "../support/chat-reading.ts";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import {
  chat,
  chatBody,
  chatEvents,
  chatStream,
  embeddings,
  eventStream,
  failure,
  sseEvent,
} from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const standIn = bed.backend();
const [ANNA, ARNO, BERT] = ["sk-sekret-anna", "sk-sekret-arno", "sk-sekret-bert"];
let gateway: Gateway;

function start(response_cache: object): Promise<Gateway> {
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
      response_cache: { enabled: true, ...response_cache },
      fallback: { fallback_chains: { chained: ["stand-in"] } },
      api_keys: {
        keys: [
          { key: ANNA as string, organization_id: "a" },
          { key: ARNO as string, organization_id: "a" },
          { key: BERT as string, organization_id: "b" },
        ],
      },
      backends: [
        { name: "a", url: backend.url, models: ["m", "other", "chained"] },
        { name: "b", url: standIn.url, models: ["stand-in"] },
      ],
    },
  });
}

beforeAll(async () => {
  gateway = await start({ max_response_size: 20_000, max_stream_buffer_size: 40_000 });
});

beforeEach(async () => {
  backend.reset(chat("hello"));
  standIn.reset(chat("stand-in"));
  await clear();
});

async function clear(query = ""): Promise<Record<string, unknown>> {
  const response = await gateway.fetch(`/admin/response-cache${query}`, { method: "DELETE" });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

interface Statistics {
  enabled: boolean;
  entries: number;
  hits: number;
  misses: number;
  stores: number;
  evictions: number;
  expirations: number;
}

async function statistics(target = gateway): Promise<Statistics> {
  return (await (await target.fetch("/admin/response-cache")).json()) as Statistics;
}

/** X-Cache of each answer, read to its end. */
async function ask(target: Gateway, ...bodies: Record<string, unknown>[]): Promise<(string | null)[]> {
  const decisions: (string | null)[] = [];
  for (const body of bodies) {
    const response = await target.chat(body);
    await response.text();
    decisions.push(response.headers.get("x-cache"));
  }
  return decisions;
}

describe("HIT, MISS, BYPASS", () => {
  test("the second of two equal requests is a HIT with the same bytes", async () => {
    const firstAnswer = await gateway.chat();
    const secondAnswer = await gateway.chat();
    expect([firstAnswer.headers.get("x-cache"), secondAnswer.headers.get("x-cache")]).toEqual(["MISS", "HIT"]);
    expect(await secondAnswer.text()).toBe(await firstAnswer.text());
    expect(secondAnswer.headers.get("content-type")).toContain("application/json");
    expect(secondAnswer.headers.get("x-request-id")).not.toBe(firstAnswer.headers.get("x-request-id"));
    expect(backend.requests).toHaveLength(1);
  });

  test("temperature 0 and absent are kept, anything else is a BYPASS", async () => {
    expect(await ask(gateway, { temperature: 0 }, { temperature: 0 })).toEqual(["MISS", "HIT"]);
    expect(await ask(gateway, { temperature: 0.1 }, { temperature: 0.1 })).toEqual(["BYPASS", "BYPASS"]);
    expect(await ask(gateway, { temperature: 1 }, { store: true }, { store: true })).toEqual([
      "BYPASS",
      "BYPASS",
      "BYPASS",
    ]);
  });

  test("whatever changes the output is another question; who asks is not", async () => {
    expect(await ask(gateway, { seed: 9 }, { seed: 8 }, { max_tokens: 3 }, { model: "other" })).toEqual(
      Array(4).fill("MISS"),
    );
    expect(await ask(gateway, { messages: [{ role: "user", content: "ho" }] })).toEqual(["MISS"]);
    expect(await ask(gateway, { seed: 9, user: "x" }, { user: "y", metadata: { a: "b" }, seed: 9 })).toEqual([
      "HIT",
      "HIT",
    ]);
    const big = (seed: string) => `{"model":"m","seed":${seed},"messages":[{"role":"user","content":"hi"}]}`;
    await (await gateway.post("/v1/chat/completions", big("9007199254740992"))).text();
    const response = await gateway.post("/v1/chat/completions", big("9007199254740993"));
    expect(response.headers.get("x-cache")).toBe("MISS");
    await response.text();
  });

  test("embeddings carry no X-Cache", async () => {
    backend.reset(embeddings([[1, 2]]));
    for (let count = 1; count <= 2; count++) {
      const response = await gateway.post("/v1/embeddings", { model: "m", input: "x" });
      expect(response.headers.get("x-cache")).toBeNull();
      await response.text();
      expect(backend.requests).toHaveLength(count);
    }
  });

  test("a hit asks no backend, so that it works while none is there", async () => {
    await ask(gateway, {});
    backend.stop();
    try {
      expect(await ask(gateway, {})).toEqual(["HIT"]);
    } finally {
      backend.start();
    }
  });
});

describe("streams", () => {
  test("a complete stream is replayed byte for byte", async () => {
    const events = chatEvents(["one ", "two"]);
    backend.reset(eventStream(events));
    expect(await ask(gateway, { stream: true })).toEqual(["MISS"]);
    const response = await gateway.chat({ stream: true });
    expect(response.headers.get("x-cache")).toBe("HIT");
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    expect(await response.text()).toBe(events.join(""));
    expect(backend.requests).toHaveLength(1);
  });

  test("what was asked still counts when the stream is over: headers, and a body that was let go meanwhile", async () => {
    backend.reset(eventStream(chatEvents(["one ", "two"])));
    async function decisionOn(content: string, headers: Record<string, string>): Promise<string | null> {
      const response = await gateway.chat({ stream: true, messages: [{ role: "user", content }] }, { headers });
      await response.text();
      return response.headers.get("x-cache");
    }
    const long = "x".repeat(100_000);
    for (const [content, beta, expected] of [
      [long, "a", "MISS"],
      [long, "a", "HIT"],
      [long, "b", "MISS"],
      [`${long.slice(0, 50_000)}y${long.slice(50_001)}`, "a", "MISS"],
      [long, "b", "HIT"],
    ] as const) {
      expect(await decisionOn(content, { "openai-beta": beta })).toBe(expected);
    }
  });

  test("a plain answer is replayed as a stream", async () => {
    backend.reset(chat("one two"));
    await ask(gateway, {});
    const response = await gateway.chat({ stream: true });
    expect(response.headers.get("x-cache")).toBe("HIT");
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    expect(await readChat(response)).toMatchObject({
      text: "one two",
      ids: ["chatcmpl-1"],
      roles: ["assistant"],
      finishReasons: ["stop"],
      errors: [],
      done: 1,
    });
    expect(backend.requests).toHaveLength(1);
  });

  test("a stream with usage is replayed as a plain answer", async () => {
    const usage = sseEvent({
      id: "chatcmpl-1",
      model: "m",
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    });
    const events = chatEvents(["one ", "two"]);
    backend.reset(eventStream([...events.slice(0, -1), usage, "data: [DONE]\n\n"]));
    await ask(gateway, { stream: true, stream_options: { include_usage: true } });
    const response = await gateway.chat();
    expect(response.headers.get("x-cache")).toBe("HIT");
    expect(await response.json()).toMatchObject({
      id: "chatcmpl-1",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "one two" }, finish_reason: "stop" }],
      usage: { total_tokens: 3 },
    });
    expect(backend.requests).toHaveLength(1);
  });

  test("the official SDK understands what is replayed, in both forms", async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const question = { model: "m", messages: [{ role: "user" as const, content: "hi" }] };
    backend.reset(chat("one two"));
    expect((await client.chat.completions.create(question)).choices[0]?.message.content).toBe("one two");
    const replayed = await client.chat.completions.stream(question).finalChatCompletion();
    expect(replayed.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "one two" } });
    expect(backend.requests).toHaveLength(1);
  });
});

describe("never kept", () => {
  const plain: Record<string, Answer> = {
    "an error": failure(400),
    "a server error": failure(500),
    "an error within 200": { body: '{"error":{"message":"no","code":400}}' },
    "a finish_reason error": chat("x", {
      choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "error" }],
    }),
    "an answer without a finish_reason": chat("x", {
      choices: [{ index: 0, message: { role: "assistant", content: "x" } }],
    }),
    "an answer larger than max_response_size": chat("x".repeat(20_001)),
  };
  for (const [name, answer] of Object.entries(plain)) {
    test(name, async () => {
      backend.reset(answer);
      const decisions = await ask(gateway, {}, {});
      expect(decisions).not.toContain("HIT");
      expect(backend.requests).toHaveLength(2);
      expect((await statistics()).entries).toBe(0);
    });
  }

  const broken = chatEvents(["one ", "two"], { finishReason: null, done: false });
  const streams: Record<string, Answer> = {
    "a stream that breaks": eventStream([...broken, "x"], {
      breakAfterBytes: Buffer.byteLength(broken.join("")),
      breakWith: "reset",
      betweenChunksMs: 5,
    }),
    "a stream that ends early": eventStream(broken),
    "a stream with an error in band": eventStream([
      ...broken,
      sseEvent({ error: { message: "x", code: 500 } }),
      "data: [DONE]\n\n",
    ]),
    "a stream with finish_reason error": eventStream(chatEvents(["one"], { finishReason: "error" })),
    "a stream longer than max_stream_buffer_size": eventStream(
      chatEvents(Array.from({ length: 50 }, () => "x".repeat(1_000))),
    ),
  };
  for (const [name, answer] of Object.entries(streams)) {
    test(name, async () => {
      backend.reset(answer);
      expect(await ask(gateway, { stream: true }, { stream: true })).not.toContain("HIT");
      expect(backend.requests).toHaveLength(2);
      expect((await statistics()).entries).toBe(0);
    });
  }

  test("a stream whose client leaves", async () => {
    const held = (index: number) => (index === 2 ? new Promise(() => {}) : undefined);
    backend.reset(chatStream(["one ", "two"], {}, { beforeChunk: held }));
    const response = await gateway.chat({ stream: true });
    await response.body?.cancel();
    await within("the backend is let go", backend.lastRequest.closed);
    await gateway.waitUntilIdle();
    backend.reset(chatStream(["whole"]));
    expect(await ask(gateway, { stream: true }, { stream: true })).toEqual(["MISS", "HIT"]);
  });

  test("an answer of a model that only stood in", async () => {
    backend.reset(failure(503));
    const response = await gateway.chat({ model: "chained" });
    expect(response.headers.get("x-fallback-model")).toBe("stand-in");
    await response.text();
    backend.reset(chat("the real one"));
    const next = await gateway.chat({ model: "chained" });
    expect(next.headers.get("x-cache")).not.toBe("HIT");
    expect(await next.text()).toBe(chatBody("the real one"));
  });

  test("a stream that another model finished", async () => {
    backend.reset(eventStream(chatEvents(["one "], { finishReason: null, done: false })));
    standIn.reset(chatStream(["one ", "two"]));
    const body = { model: "chained", stream: true };
    expect((await readChat(await gateway.chat(body))).text).toBe("one two");
    backend.reset(chatStream(["one ", "three"]));
    const next = await gateway.chat(body);
    expect(next.headers.get("x-cache")).not.toBe("HIT");
    expect((await readChat(next)).text).toBe("one three");
  });
});

test("answers are shared within an organisation, and with nobody else", async () => {
  const as = async (key: string | undefined) => {
    const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    const response = await gateway.chat({}, { headers });
    await response.text();
    return response.headers.get("x-cache");
  };
  expect(await as(ANNA)).toBe("MISS");
  expect(await as(BERT)).toBe("MISS");
  expect(await as(undefined)).toBe("MISS");
  expect(await as(ARNO)).toBe("HIT");
  expect(await as(ANNA)).toBe("HIT");
  expect(await as(BERT)).toBe("HIT");
  expect(backend.requests).toHaveLength(3);
});

test("identical requests in flight are one call and one entry", async () => {
  const gate = Promise.withResolvers<void>();
  backend.reset(chatStream(["one"], {}, { headersAfter: gate.promise }));
  const pending = Array.from({ length: 8 }, () => gateway.chat({ stream: true, temperature: 0 }));
  await waitFor("all are under way", async () => {
    const response = await gateway.fetch("/admin/requests?limit=50");
    const { requests } = (await response.json()) as { requests: { status: number | null }[] };
    return requests.filter(({ status }) => status === null).length === pending.length;
  });
  gate.resolve();
  for (const response of await Promise.all(pending)) expect(await response.text()).toBe(chatEvents(["one"]).join(""));
  expect(backend.requests).toHaveLength(1);
  expect((await statistics()).entries).toBe(1);
});

describe("the admin API", () => {
  test("statistics count hits, misses and entries", async () => {
    const before = await statistics();
    expect(before).toMatchObject({ enabled: true, entries: 0 });
    await ask(gateway, {}, {}, {}, { seed: 1 }, { temperature: 1 });
    const after = await statistics();
    expect(after).toMatchObject({
      entries: 2,
      hits: before.hits + 2,
      misses: before.misses + 2,
      stores: before.stores + 2,
    });
  });

  test("DELETE removes the answers of one model, or all", async () => {
    await ask(gateway, {}, { seed: 1 }, { model: "other" });
    expect(await clear("?model=other")).toMatchObject({ success: true, removed: 1 });
    expect(await ask(gateway, {}, { model: "other" })).toEqual(["HIT", "MISS"]);
    expect(await clear()).toMatchObject({ success: true, removed: 3 });
    expect(await ask(gateway, {})).toEqual(["MISS"]);
  });

  test("while the cache is off, it says so, and no answer carries X-Cache", async () => {
    const off = await start({ enabled: false });
    expect(await statistics(off)).toMatchObject({ enabled: false });
    await expectError(await off.fetch("/admin/response-cache", { method: "DELETE" }), 404);
    expect(await ask(off, {}, {})).toEqual([null, null]);
    expect(backend.requests).toHaveLength(2);
  });
});

test("beyond the capacity the least recently used answer goes; after the ttl every one", async () => {
  const small = await start({ capacity: 2 });
  expect(await ask(small, { seed: 1 }, { seed: 2 }, { seed: 1 }, { seed: 3 })).toEqual(["MISS", "MISS", "HIT", "MISS"]);
  expect(await statistics(small)).toMatchObject({ entries: 2, evictions: 1 });
  expect(await ask(small, { seed: 1 })).toEqual(["HIT"]);
  expect(await ask(small, { seed: 2 })).toEqual(["MISS"]);
  const short = await start({ ttl: "500ms" });
  await ask(short, { seed: 1 });
  await waitFor("the answer is too old", async () => {
    await ask(short, { seed: 1 });
    return (await statistics(short)).expirations > 0;
  });
});
