// Clients of Ollama's API in front of Ollama itself: their own bytes go to it, with keep_alive and num_ctx, and its own lines
// come back; and what the gateway still does for them.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Ollama } from "ollama";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chatEvents, eventStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { within } from "../support/wait-for.ts";

const bed = createTestBed();
const [first, other, engine] = [bed.backend(), bed.backend(), bed.backend()];
let gateway: Gateway;
let prompted: Gateway;

beforeAll(async () => {
  const backends = [
    { name: "first", type: "ollama", url: first.url, models: ["big:latest", "own:latest"] },
    { name: "other", type: "ollama", url: other.url, models: ["small:latest"] },
    { name: "engine", type: "vllm", url: engine.url, models: ["far"] },
  ];
  const shared = {
    health_checks: { enabled: false },
    circuit_breaker: { enabled: false },
    retry: { max_attempts: 1 },
    backends,
  };
  [gateway, prompted] = await Promise.all([
    bed.gateway({
      config: {
        ...shared,
        response_cache: { enabled: true },
        streaming: { mid_stream_fallback: { enabled: true } },
        fallback: { fallback_chains: { own: ["small"], big: ["far"] } },
      },
    }),
    bed.gateway({ config: { ...shared, global_prompts: { default: "Be brief.", separator: " " } } }),
  ]);
});

beforeEach(async () => {
  for (const backend of [first, other, engine]) backend.reset(lines(whole));
  await gateway.fetch("/admin/response-cache", { method: "DELETE" });
});

const HEAD = { model: "big", created_at: "2026-01-01T00:00:00.123456789Z" };
const END = {
  ...{ done: true, done_reason: "stop", total_duration: 5, load_duration: 1, prompt_eval_count: 7 },
  ...{ prompt_eval_duration: 1, eval_count: 3, eval_duration: 2 },
};
const said = (content: string, more = {}) => ({
  ...HEAD,
  message: { role: "assistant", content, ...more },
  done: false,
});
const ended = (content = "") => ({ ...said(content), ...END });
const whole = [said("hel"), said("lo"), ended()];

function lines(objects: readonly object[], more: Answer = {}): Answer {
  const body = objects.map((object) => `${JSON.stringify(object)}\n`);
  return { headers: { "Content-Type": "application/x-ndjson" }, body, framing: "chunked", ...more };
}

const plain = (object: object): Answer => ({
  headers: { "Content-Type": "application/json; charset=utf-8" },
  body: JSON.stringify(object),
});

const messages = [{ role: "user", content: "hi" }];
const textOf = (answer: Answer) => (answer.body as string[]).join("");

describe("bytes pass", () => {
  test("of a chat, there and back", async () => {
    const body =
      '{ "model":"big", "messages":[{"role":"user","content":"hi"}], "keep_alive" : "10m", "options":{"num_ctx":65536,"seed":9007199254740993} }';
    const response = await gateway.post("/api/chat", body);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(await response.text()).toBe(textOf(lines(whole)));
    expect([first.lastRequest.path, first.lastRequest.text]).toEqual(["/api/chat", body]);
  });

  test("of a prompt, with what only Ollama knows, and of whole answers", async () => {
    const object = { ...HEAD, response: "hello", context: [1, 2], ...END };
    first.reset(plain(object));
    const body = { model: "big", prompt: "a", suffix: "b", raw: true, context: [3], stream: false };
    const response = await gateway.post("/api/generate", body);
    expect(await response.text()).toBe(JSON.stringify(object));
    expect(response.headers.has("x-signalbox-dropped")).toBe(false);
    expect([first.lastRequest.path, first.lastRequest.json()]).toEqual(["/api/generate", body]);
    const refused = await gateway.post("/api/generate", { ...body, model: "far" });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: "suffix: works only on backends of type ollama, and this model has none." },
    ]);
  });

  test("however the lines are cut, with counts in the statistics", async () => {
    const told = [said("🚂 "), said("", { thinking: "\n\n" }), said("hi"), ended()];
    for (const chunkBytes of [1, 2, 7, 50, 1000]) {
      first.reset(lines(told, { chunkBytes }));
      const response = await gateway.post("/api/chat", { model: "big", messages, options: { temperature: 1 } });
      expect(await response.text()).toBe(textOf(lines(told)));
      const id = response.headers.get("x-signalbox-request-id");
      await gateway.waitUntilIdle();
      const story = (await (await gateway.fetch(`/admin/requests/${id}`)).json()) as object;
      expect(story).toMatchObject({ outcome: "succeeded", prompt_tokens: 7, completion_tokens: 3 });
    }
  });

  test("a call whose arguments look like the end is not the end", async () => {
    const call = said("", { tool_calls: [{ function: { name: "f", arguments: { done: true } } }] });
    const rest = Promise.withResolvers<void>();
    const told = lines([call, ended()], { beforeChunk: (index) => (index === 1 ? rest.promise : undefined) });
    first.reset(told);
    const answer = gateway.post("/api/chat", { model: "big", messages }).then((response) => response.text());
    await within("the request", answerBegun());
    rest.resolve();
    expect(await answer).toBe(textOf(told));
  });

  /** The backend has written its first line. */
  async function answerBegun(): Promise<void> {
    while (first.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  test("through Ollama's own client", async () => {
    const client = new Ollama({ host: gateway.url });
    const call = { function: { name: "f", arguments: { a: 1 } } };
    first.reset(lines([said("", { tool_calls: [call] }), ended()]));
    const seen: object[] = [];
    for await (const part of await client.chat({ model: "big", messages, stream: true, keep_alive: -1 }))
      seen.push(part);
    expect(seen).toEqual([said("", { tool_calls: [call] }), ended()]);
    expect(first.lastRequest.json().keep_alive).toBe(-1);
  });
});

describe("what the gateway does all the same", () => {
  test("it adds its prompt", async () => {
    const ask = async (path: string, body: object) => {
      await (await prompted.post(path, { model: "big", ...body })).text();
      return first.lastRequest.json();
    };
    expect((await ask("/api/chat", { messages })).messages).toEqual([
      { role: "system", content: "Be brief." },
      ...messages,
    ]);
    const instructed = [{ role: "system", content: "Be kind." }, ...messages];
    expect((await ask("/api/chat", { messages: instructed })).messages).toEqual([
      { role: "system", content: "Be brief. Be kind." },
      ...messages,
    ]);
    first.reset(lines([{ ...HEAD, response: "x", ...END }]));
    expect(await ask("/api/generate", { prompt: "hi" })).toMatchObject({ prompt: "hi", system: "Be brief." });
  });

  test("it keeps answers", async () => {
    const ask = async (more: object) => await gateway.post("/api/chat", { model: "big", messages, ...more });
    const [streamed, again] = [await ask({}), await ask({})];
    expect([streamed, again].map(({ headers }) => headers.get("x-cache"))).toEqual(["MISS", "HIT"]);
    expect(await again.text()).toBe(await streamed.text());
    expect(await (await ask({ stream: false })).json()).toMatchObject({ message: { content: "hello" }, eval_count: 3 });
    expect(first.requests).toHaveLength(1);
  });

  test.each([
    ["Ollama", "own", () => other.reset(lines([said("three "), said("four"), ended()])), other],
    ["an engine", "big", () => engine.reset(eventStream(chatEvents(["three ", "four"]))), engine],
  ] as const)("%s goes on in a stream that broke off", async (_name, model, script, next) => {
    for (const end of [[], [{ error: "the runner died" }]]) {
      first.reset(lines([said("One "), said("two "), ...end]));
      script();
      const response = await gateway.post("/api/chat", { model, messages });
      const told = (await response.text())
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as typeof HEAD & ReturnType<typeof said>);
      expect(told.map(({ message }) => message.content).join("")).toBe("One two three four");
      expect(told.at(-1)).toMatchObject({ done: true, done_reason: "stop" });
      expect(next.lastRequest.json().messages).toMatchObject([
        ...messages,
        { role: "assistant", content: "One two " },
        {},
      ]);
      await gateway.waitUntilIdle();
    }
  });

  test("Ollama goes on in a prompt's stream that broke off, as in a conversation", async () => {
    first.reset(lines(["One ", "two "].map((response) => ({ ...HEAD, response, done: false }))));
    other.reset(lines([said("three "), said("four"), ended()]));
    const response = await gateway.post("/api/generate", { model: "own", prompt: "hi", system: "Be brief." });
    const told = (await response.text()).trimEnd().split("\n");
    const texts = told.map((line) => (JSON.parse(line) as { response: string }).response);
    expect(texts.join("")).toBe("One two three four");
    expect(JSON.parse(told.at(-1) as string)).toMatchObject({ done: true, eval_count: expect.any(Number) });
    expect(other.lastRequest.path).toBe("/api/chat");
    expect(other.lastRequest.json().messages).toMatchObject([
      { role: "system", content: "Be brief." },
      ...messages,
      {},
      {},
    ]);
    await gateway.waitUntilIdle();
  });

  test("errors are Ollama's: of a status, in front of a stream, inside one, and of one that breaks off", async () => {
    const ask = async () => {
      const response = await prompted.post("/api/chat", { model: "big", messages });
      return [response.status, (await response.text()).trimEnd().split("\n").at(-1)];
    };
    first.reset({ ...plain({ error: "model 'big' not found" }), status: 404 });
    expect(await ask()).toEqual([404, '{"error":"model \'big\' not found"}']);
    first.reset(lines([{ error: "no memory" }]));
    expect(await ask()).toEqual([502, '{"error":"no memory"}']);
    first.reset(lines([said("One"), { error: "the runner died" }]));
    expect(await ask()).toEqual([200, '{"error":"the runner died"}']);
    first.reset(lines([said("One")]));
    expect((await ask())[1]).toContain("ended the stream before its answer was complete");
  });

  test("clients of other formats reach Ollama as before", async () => {
    first.reset(eventStream(chatEvents(["hello"])));
    const response = await gateway.post("/v1/chat/completions", { model: "big", messages, stream: true });
    expect(await response.text()).toContain("hello");
    expect(first.lastRequest.path).toBe("/v1/chat/completions");
  });
});
