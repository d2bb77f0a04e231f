// Ollama's own API from outside: streams in lines, the response cache, shared calls, takeovers, clients that leave, names of
// models, keys, and what is dropped or refused aloud.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, embeddings, eventStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const [engine, second, own] = [bed.backend(), bed.backend(), bed.backend()];
const [ANNA, BERT] = ["sk-sekret-anna", "sk-sekret-bert"];
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
      response_cache: { enabled: true },
      logging: { level: "debug" },
      streaming: { mid_stream_fallback: { enabled: true } },
      fallback: { fallback_chains: { big: ["small"] } },
      api_keys: { keys: [{ key: ANNA as string }, { key: BERT as string, models: ["m", "plain"] }] },
      backends: [
        {
          name: "engine",
          type: "vllm",
          url: engine.url,
          models: ["m", "big", "plain"],
          model_configs: [
            {
              id: "m",
              metadata: { capabilities: ["chat", "tool", "embedding"], limits: { context_window: 32_768 } },
            },
          ],
        },
        { name: "second", type: "vllm", url: second.url, models: ["small"] },
        { name: "own", type: "ollama", url: own.url, models: ["llama3:latest", "tagged:7b"] },
      ],
    },
  });
});

beforeEach(async () => {
  for (const backend of [engine, second, own]) backend.reset(chat("hello"));
  await gateway.fetch("/admin/response-cache", { method: "DELETE" });
});

const messages = [{ role: "user", content: "hi" }];
type Line = Record<string, unknown> & { message?: { content: string }; response?: string; error?: string };

async function ask(path: string, body: object, init: RequestInit = {}) {
  const response = await gateway.post(path, body, init);
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const isLines = type === "application/x-ndjson";
  if (isLines && text !== "") expect(text).toEndWith("\n");
  const lines = (isLines ? text.trimEnd().split("\n") : [text]).map((line) => JSON.parse(line) as Line);
  return { status: response.status, headers: response.headers, type, text, lines, last: lines.at(-1) as Line };
}

const said = (lines: readonly Line[]) => lines.map(({ message, response }) => message?.content ?? response).join("");

describe("streams", () => {
  test("are lines, which comments of the backend leave alone", async () => {
    const [start = "", ...events] = chatEvents(["one ", "two"]);
    engine.reset(eventStream([start, ": keep-alive\n\n", ...events]));
    const { status, type, lines, headers } = await ask("/api/chat", { model: "m", messages });
    expect([status, type, said(lines)]).toEqual([200, "application/x-ndjson", "one two"]);
    expect(headers.get("cache-control")).toBe("no-cache");
    expect(headers.get("x-signalbox-backend")).toBe("engine");
    expect(lines.map(({ done }) => done)).toEqual([false, false, true]);
  });

  test("each line goes out when its event has come", async () => {
    const rest = Promise.withResolvers<void>();
    engine.reset(chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? rest.promise : undefined) }));
    const response = await gateway.post("/api/chat", { model: "m", messages });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = await within("the first line", reader.read());
    expect(new TextDecoder().decode(first.value)).toEndWith(
      '"message":{"role":"assistant","content":"one"},"done":false}\n',
    );
    rest.resolve();
    let others = "";
    for (let next = await reader.read(); !next.done; next = await reader.read())
      others += new TextDecoder().decode(next.value);
    expect(others).toContain('"content":"two"');
  });

  test("an error in the middle is the last line", async () => {
    engine.reset(eventStream(chatEvents(["one"], { finishReason: null, done: false })));
    const { lines, last } = await ask("/api/generate", { model: "m", prompt: "hi" });
    expect(said(lines)).toBe("one");
    expect(Object.keys(last)).toEqual(["error"]);
    expect(last.error).toContain("'engine'");
  });

  test("an error in front of a stream has its status", async () => {
    engine.reset(failure(429, "slowly"));
    const { status, type, last } = await ask("/api/chat", { model: "m", messages });
    expect([status, type, last]).toEqual([429, "application/json", { error: "slowly" }]);
  });

  test("a client that leaves frees the backend", async () => {
    engine.reset(
      chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? new Promise(() => {}) : undefined) }),
    );
    const leaving = new AbortController();
    const response = await gateway.post("/api/chat", { model: "m", messages }, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await within("the backend's connection closes", engine.lastRequest.closed);
    expect(engine.lastRequest.answerComplete).toBe(false);
    await gateway.waitUntilIdle();
  });

  test("equal requests at a time share a call, each in lines of its own", async () => {
    const rest = Promise.withResolvers<void>();
    engine.reset(chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? rest.promise : undefined) }));
    const body = { model: "plain", messages, options: { temperature: 0 } };
    const both = await Promise.all([gateway.post("/api/chat", body), gateway.post("/api/chat", body)]);
    rest.resolve();
    for (const response of both) {
      const told = (await response.text()).trimEnd().split("\n");
      const lines = told.map((line) => JSON.parse(line) as Line);
      expect([said(lines), lines.at(-1)?.done]).toEqual(["onetwo", true]);
    }
    expect(engine.requests).toHaveLength(1);
  });
});

describe("the response cache", () => {
  test("gives an answer again in either form, with the same words", async () => {
    engine.reset(chat("hello"));
    const first = await ask("/api/chat", { model: "m", messages, stream: false, keep_alive: "5m" });
    const again = await ask("/api/chat", { model: "m", messages, stream: false, keep_alive: 0 });
    const lines = await ask("/api/chat", { model: "m", messages });
    expect([first, again, lines].map(({ headers }) => headers.get("x-cache"))).toEqual(["MISS", "HIT", "HIT"]);
    expect(again.text).toBe(first.text);
    expect([lines.type, said(lines.lines)]).toEqual(["application/x-ndjson", "hello"]);
    expect(lines.last).toMatchObject({ done: true, done_reason: "stop", eval_count: 2 });
    expect(engine.requests).toHaveLength(1);
  });

  test("keeps streams, and tells them whole", async () => {
    engine.reset(chatStream(["hel", "lo"]));
    const first = await ask("/api/generate", { model: "m", prompt: "hi" });
    const again = await ask("/api/generate", { model: "m", prompt: "hi" });
    const whole = await ask("/api/generate", { model: "m", prompt: "hi", stream: false });
    expect([first, again, whole].map(({ headers }) => headers.get("x-cache"))).toEqual(["MISS", "HIT", "HIT"]);
    expect([again.text, again.type]).toEqual([first.text, "application/x-ndjson"]);
    expect([whole.type, whole.last.response]).toEqual(["application/json", "hello"]);
    expect(engine.requests).toHaveLength(1);
  });

  test("looks for the temperature among the options; a chat is no prompt", async () => {
    const cacheOf = async (path: string, body: object) =>
      (await ask(path, { stream: false, ...body })).headers.get("x-cache");
    const warm = { model: "m", messages, options: { temperature: 0.7 } };
    expect([await cacheOf("/api/chat", warm), await cacheOf("/api/chat", warm)]).toEqual(["BYPASS", "BYPASS"]);
    expect(await cacheOf("/api/chat", { model: "m", messages, options: { temperature: 0 } })).toBe("MISS");
    expect(await cacheOf("/api/generate", { model: "m", prompt: "hi" })).toBe("MISS");
  });
});

describe("another backend goes on", () => {
  test.each([
    ["/api/chat", { messages }],
    ["/api/generate", { prompt: "hi" }],
  ])("with a stream of %s that broke off", async (path, body) => {
    engine.reset(eventStream(chatEvents(["One ", "two "], { finishReason: null, done: false })));
    second.reset(eventStream(chatEvents(["three ", "four"])));
    const { lines, last } = await ask(path, { model: "big", ...body });
    expect(said(lines)).toBe("One two three four");
    expect(last).toMatchObject({ model: "big", done: true, done_reason: "stop" });
    expect(new Set(lines.map(({ model }) => model))).toEqual(new Set(["big"]));
    expect(second.lastRequest.json().messages).toMatchObject([
      { role: "user", content: "hi" },
      { role: "assistant", content: "One two " },
      { role: "user" },
    ]);
    await gateway.waitUntilIdle();
  });
});

describe("names of models", () => {
  test("may have the tag :latest where none is served, and come back as they were asked for", async () => {
    const { last } = await ask("/api/chat", { model: "m:latest", messages, stream: false });
    expect(last.model).toBe("m:latest");
    expect(engine.lastRequest.json().model).toBe("m");
    await ask("/api/chat", { model: "llama3", messages, stream: false });
    expect(own.lastRequest.json().model).toBe("llama3");
    await ask("/api/chat", { model: "tagged:7b", messages, stream: false });
    expect(own.lastRequest).toMatchObject({ path: "/api/chat" });
    const unknown = await ask("/api/chat", { model: "tagged:latest", messages });
    expect([unknown.status, unknown.type]).toEqual([404, "application/json"]);
    expect(unknown.last.error).toContain("tagged:latest");
  });

  test("are those of the list, of which a key sees its own", async () => {
    const names = async (path: string, key: string) => {
      const response = await gateway.fetch(path, { headers: { Authorization: `Bearer ${key}` } });
      const { models } = (await response.json()) as { models: { name: string }[] };
      return models.map(({ name }) => name).toSorted();
    };
    for (const path of ["/api/tags", "/api/ps"]) {
      expect(await names(path, BERT as string)).toEqual(["m", "plain"]);
      expect(await names(path, ANNA as string)).toEqual(["big", "llama3:latest", "m", "plain", "small", "tagged:7b"]);
    }
    const headers = { Authorization: `Bearer ${BERT}` };
    const refused = await ask("/api/chat", { model: "big", messages }, { headers });
    expect([refused.status, Object.keys(refused.last)]).toEqual([403, ["error"]]);
    expect((await ask("/api/show", { model: "big" }, { headers })).status).toBe(403);
    expect((await ask("/api/chat", { model: "m:latest", messages, stream: false }, { headers })).status).toBe(200);
  });

  test("/api/show tells what the metadata says", async () => {
    const shown = async (model: string) => (await ask("/api/show", { model })).last;
    expect(await shown("m:latest")).toMatchObject({
      capabilities: ["completion", "tools", "embedding"],
      model_info: { "general.architecture": "signalbox", "signalbox.context_length": 32_768 },
    });
    expect(await shown("plain")).toMatchObject({ capabilities: ["completion"], model_info: {} });
  });
});

test("limits are told as for other clients, and refusals in Ollama's words", async () => {
  const limited = await bed.gateway({
    config: {
      api_keys: { mode: "blocking", keys: [{ key: ANNA as string, rate_limit: 1 }] },
      rate_limiting: { headers_on_success: true },
      backends: [{ name: "engine", type: "vllm", url: engine.url, models: ["m"] }],
      health_checks: { enabled: false },
    },
  });
  const send = async (headers: Record<string, string>) => {
    const response = await limited.post("/api/chat", { model: "m", messages, stream: false }, { headers });
    return { response, told: (await response.json()) as Line };
  };
  const unknown = await send({});
  expect([unknown.response.status, Object.keys(unknown.told)]).toEqual([401, ["error"]]);
  const headers = { Authorization: `Bearer ${ANNA}` };
  const first = await send(headers);
  expect([first.response.status, first.response.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "0"]);
  const second = await send(headers);
  expect([second.response.status, Object.keys(second.told)]).toEqual([429, ["error"]]);
  expect(Number(second.response.headers.get("retry-after"))).toBeGreaterThan(0);
});

describe("what is dropped is told", () => {
  test("of a chat: in a header, and of a stream in the log", async () => {
    const body = { model: "m", messages, keep_alive: "10m", options: { num_ctx: 4096, mirostat: 1 } };
    const plain = await ask("/api/chat", { ...body, stream: false });
    expect(plain.headers.get("x-signalbox-dropped")).toBe("keep_alive, options.num_ctx, options.mirostat");
    engine.reset(chatStream(["hello"]));
    const streamed = await ask("/api/chat", { ...body, messages: [{ role: "user", content: "ho" }] });
    const id = streamed.headers.get("x-request-id");
    const told = await waitFor("the line of the log", () =>
      gateway.printed.logEntries.find(
        ({ msg, request_id }) => request_id === id && String(msg).includes("could not carry"),
      ),
    );
    expect(told.dropped).toEqual([
      { feature: "keep_alive" },
      { feature: "options.num_ctx" },
      { feature: "options.mirostat" },
    ]);
  });

  test("of embeddings, which reach the backend in its own words", async () => {
    engine.reset(
      embeddings([
        [1, 2],
        [3, 4],
      ]),
    );
    const { last, headers } = await ask("/api/embed", {
      ...{ model: "m:latest", input: ["a", "b"], dimensions: 2 },
      ...{ truncate: true, options: { num_ctx: 1 }, keep_alive: "5m" },
    });
    expect(last).toMatchObject({
      model: "m:latest",
      embeddings: [
        [1, 2],
        [3, 4],
      ],
      prompt_eval_count: 4,
    });
    expect(last.total_duration).toBeGreaterThan(0);
    expect(headers.get("x-signalbox-dropped")).toBe("keep_alive, options, truncate");
    expect(engine.lastRequest).toMatchObject({ path: "/v1/embeddings" });
    expect(engine.lastRequest.json()).toEqual({ model: "m", input: ["a", "b"], dimensions: 2 });
    engine.reset(embeddings([[1, 2]]));
    expect((await ask("/api/embeddings", { model: "m", prompt: "a" })).last).toEqual({ embedding: [1, 2] });
    expect(engine.lastRequest.json()).toEqual({ model: "m", input: "a" });
    engine.reset(failure(400, "too long"));
    expect(await ask("/api/embed", { model: "m", input: "a" })).toMatchObject({
      status: 400,
      last: { error: "too long" },
    });
  });
});

describe("what is not there", () => {
  test("is told in Ollama's words", async () => {
    const refused = await ask("/api/generate", { model: "m", prompt: "x", raw: true });
    expect([refused.status, refused.last.error]).toEqual([400, expect.stringMatching(/^raw: /)]);
    expect((await ask("/api/pull", { model: "x" })).last.error).toContain("models belong to the backends");
    expect((await ask("/api/whatever", {})).last).toEqual({ error: "/api/whatever is not in this release." });
    const wrong = await gateway.fetch("/api/chat");
    expect([wrong.status, await wrong.json()]).toEqual([405, { error: expect.stringContaining("allowed: POST") }]);
  });

  test("a HEAD of the bare address, by which tools look for a server", async () => {
    expect((await gateway.fetch("/", { method: "HEAD" })).status).toBe(200);
  });
});
