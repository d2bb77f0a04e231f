// What happens to conversations of Gemini clients on their way: takeovers, the cache, proofs of thoughts, files, prompts and
// clients that leave.

import { describe, expect, test } from "bun:test";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, eventStream, sseEvent } from "../support/openai-answers.ts";
import { pngImage } from "../support/png-images.ts";
import { readSse } from "../support/sse-reader.ts";
import { uploadFile } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

type Json = Record<string, unknown>;

const method = (model: string, name: string) => `/v1beta/models/${model}:${name}`;
const asking = (text: string, more: Json = {}) => ({ contents: [{ role: "user", parts: [{ text }] }], ...more });
const piece = (text: string, more: Json = {}) => ({
  candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, ...more }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  modelVersion: "gemini-3-pro",
  responseId: "r1",
});
const END = { finishReason: "STOP" };

interface Bed {
  gateway: Gateway;
  native: FakeBackend;
  other: FakeBackend;
}

async function start(config: Json = {}): Promise<Bed> {
  const [native, other] = [bed.backend(), bed.backend()];
  const gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [
        {
          name: "native",
          type: "gemini",
          url: native.url,
          api_key: "backend-sekret",
          models: ["gemini-3-pro", "gemini-2.5-flash"],
        },
        { name: "other", type: "vllm", url: other.url, models: ["far"] },
      ],
      ...config,
    },
  });
  return { gateway, native, other };
}

function textOf(data: readonly string[]): string {
  const chunks = data.map((each) => JSON.parse(each) as ReturnType<typeof piece>);
  const parts = chunks.flatMap(({ candidates = [] }) => candidates).flatMap(({ content }) => content.parts ?? []);
  return parts.map(({ text = "" }) => text).join("");
}

async function streamed(gateway: Gateway, model: string, body: Json) {
  const response = await gateway.post(`${method(model, "streamGenerateContent")}?alt=sse`, body);
  const { data } = await readSse(response);
  return { text: textOf(data), last: JSON.parse(data.at(-1) as string) as Json, data, response };
}

describe("a stream that breaks off", () => {
  const goesOn = { mid_stream_fallback: { enabled: true, continuation_prompt: "Go on, please." } };
  const chains = { "gemini-3-pro": ["far"], far: ["gemini-2.5-flash"] };

  test("of a Gemini backend goes on at a backend of another format, and the other way round", async () => {
    const { gateway, native, other } = await start({ streaming: goesOn, fallback: { fallback_chains: chains } });
    const bytes = Buffer.byteLength(sseEvent(piece("One ")) + sseEvent(piece("two ")));
    native.answer = { ...eventStream([sseEvent(piece("One ")), sseEvent(piece("two ")), "x"]), breakAfterBytes: bytes };
    other.answer = chatStream(["three ", "four"]);
    const there = await streamed(
      gateway,
      "gemini-3-pro",
      asking("count", { generationConfig: { maxOutputTokens: 50 } }),
    );
    expect(there.text).toBe("One two three four");
    expect(there.last).toMatchObject({ candidates: [END], responseId: "r1", modelVersion: "gemini-3-pro" });
    const { messages, max_tokens } = other.lastRequest.json() as { messages: Json[]; max_tokens: number };
    expect(messages.slice(0, 2)).toMatchObject([{ role: "user" }, { role: "assistant" }]);
    expect(max_tokens).toBeLessThan(51);

    other.answer = chatStream(["One ", "two "], { finishReason: null, done: false });
    native.answer = eventStream([sseEvent(piece("three ")), sseEvent(piece("four", END))]);
    const back = await streamed(gateway, "far", asking("count again"));
    expect([back.text, back.data.length]).toEqual(["One two three four", 5]);
    expect(back.last).toMatchObject({ candidates: [END], modelVersion: "far" });
    expect((native.lastRequest.json() as { contents: Json[] }).contents.at(1)?.role).toBe("model");
  });

  test("goes on at another Gemini backend in its own bytes' format", async () => {
    const second = bed.backend();
    const native = bed.backend();
    const pair = await bed.gateway({
      config: {
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        streaming: goesOn,
        fallback: { fallback_chains: { "gemini-3-pro": ["gemini-2.5-pro"] } },
        backends: [
          { name: "first", type: "gemini", url: native.url, models: ["gemini-3-pro"] },
          { name: "second", type: "gemini", url: second.url, models: ["gemini-2.5-pro"] },
        ],
      },
    });
    native.answer = eventStream([
      sseEvent(piece("One ")),
      sseEvent({ error: { code: 503, message: "gone", status: "UNAVAILABLE" } }),
    ]);
    second.answer = eventStream([sseEvent(piece("two")), sseEvent(piece(" three", END))]);
    const { text, last } = await streamed(
      pair,
      "gemini-3-pro",
      asking("count", { generationConfig: { thinkingConfig: { thinkingLevel: "LOW" } } }),
    );
    expect(text).toBe("One two three");
    expect(last).toMatchObject({ candidates: [END], responseId: "r1" });
    const { generationConfig } = second.lastRequest.json() as { generationConfig: Json };
    expect(generationConfig.thinkingConfig).toEqual({ includeThoughts: false, thinkingBudget: 1024 });
    expect(second.lastRequest.json().model).toBeUndefined();
  });
});

describe("the response cache", () => {
  test("gives an answer again, whole, as events and as an array", async () => {
    const { gateway, native } = await start({ response_cache: { enabled: true } });
    native.answer = eventStream([sseEvent(piece("kept ")), sseEvent(piece("once", END))]);
    const body = asking("keep");
    const first = await streamed(gateway, "gemini-3-pro", body);
    const whole = await gateway.post(method("gemini-3-pro", "generateContent"), body);
    const again = await streamed(gateway, "gemini-3-pro", body);
    const array = await gateway.post(method("gemini-3-pro", "streamGenerateContent"), body);
    expect([first, again].map(({ response }) => response.headers.get("x-cache"))).toEqual(["MISS", "HIT"]);
    expect([whole, array].map(({ headers }) => headers.get("x-cache"))).toEqual(["HIT", "HIT"]);
    expect(again.text).toBe("kept once");
    expect(await whole.json()).toMatchObject({ candidates: [{ content: { parts: [{ text: "kept once" }] }, ...END }] });
    const told = (await array.json()) as Json[];
    expect(textOf(told.map((each) => JSON.stringify(each)))).toBe("kept once");
    expect(array.headers.get("content-type")).toBe("application/json; charset=UTF-8");
    expect(native.requests.filter(({ path }) => path.includes("enerateContent"))).toHaveLength(1);
  });

  test("asks anew at another temperature, of another model and where the web is searched", async () => {
    const { gateway, other } = await start({ response_cache: { enabled: true } });
    other.answer = chat("x");
    const ask = async (model: string, more: Json = {}) =>
      (await gateway.post(method(model, "generateContent"), asking("again", more))).headers.get("x-cache");
    expect([await ask("far"), await ask("far")]).toEqual(["MISS", "HIT"]);
    expect(await ask("far", { generationConfig: { temperature: 0.7 } })).toBe("BYPASS");
    expect(await ask("far", { generationConfig: { temperature: 0 } })).toBe("MISS");
    expect(await ask("far", { labels: { a: "b" } })).toBe("HIT");
  });
});

describe("proofs", () => {
  const tools = [{ functionDeclarations: [{ name: "look", description: "Looks." }] }];
  const result = (name: string) => ({
    role: "user",
    parts: [{ functionResponse: { name, response: { output: "sun" } } }],
  });

  test("a call that another backend made goes to a Gemini model with the documented value, and without a foreign thought", async () => {
    const { gateway, native, other } = await start();
    const call = { id: "call_9", type: "function", function: { name: "look", arguments: '{"at":1}' } };
    other.answer = chat("", {
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call] },
          finish_reason: "tool_calls",
        },
      ],
    });
    const thinks = { generationConfig: { thinkingConfig: { includeThoughts: true } } };
    const answer = await gateway.post(method("far", "generateContent"), asking("look", { tools, ...thinks }));
    const { candidates } = (await answer.json()) as { candidates: { content: { parts: Json[] } }[] };
    const content = candidates[0]?.content as { parts: Json[] };
    expect(structuredClone(content.parts)).toMatchObject([
      { text: "hm", thought: true },
      { functionCall: { id: "call_9", name: "look", args: { at: 1 } }, thoughtSignature: expect.any(String) },
    ]);
    // As google-genai of Python writes bytes again.
    const signed = content.parts.map((part) =>
      typeof part.thoughtSignature === "string"
        ? { ...part, thoughtSignature: Buffer.from(part.thoughtSignature, "base64").toString("base64url") }
        : part,
    );
    native.answer = { headers: { "Content-Type": "application/json" }, body: JSON.stringify(piece("fine", END)) };
    const contents = [{ role: "user", parts: [{ text: "look" }] }, { role: "model", parts: signed }, result("look")];
    for (const [model, signature] of [
      ["gemini-3-pro", { thoughtSignature: "skip_thought_signature_validator" }],
      ["gemini-2.5-flash", {}],
    ] as const) {
      expect((await gateway.post(method(model, "generateContent"), { contents, tools })).status).toBe(200);
      const sent = (native.lastRequest.json() as { contents: { parts: Json[] }[] }).contents[1]?.parts.at(-1);
      expect(sent).toEqual({ functionCall: { id: "call_9", name: "look", args: { at: 1 } }, ...signature });
    }
  });

  test("a Gemini model's own signatures pass untouched", async () => {
    const { gateway, native } = await start();
    native.answer = { headers: { "Content-Type": "application/json" }, body: JSON.stringify(piece("fine", END)) };
    const part = { functionCall: { name: "look", args: {} }, thoughtSignature: "b3duIHByb29m" };
    const body = { contents: [{ parts: [{ text: "look" }] }, { role: "model", parts: [part] }, result("look")], tools };
    await gateway.post(method("gemini-3-pro", "generateContent"), body);
    expect(native.lastRequest.text).toBe(JSON.stringify(body));
  });

  test("results belong to their calls where there are no ids", async () => {
    const { gateway, other } = await start();
    other.answer = chat("fine");
    const call = (name: string) => ({ functionCall: { name, args: {} } });
    const answered = (name: string, output: string) => ({ functionResponse: { name, response: { output } } });
    const contents = [
      { role: "user", parts: [{ text: "look" }] },
      { role: "model", parts: [call("look"), call("hear"), call("look")] },
      { role: "function", parts: [answered("look", "1"), answered("look", "2"), answered("hear", "3")] },
    ];
    await gateway.post(method("far", "generateContent"), { contents, tools });
    const { messages } = other.lastRequest.json() as {
      messages: { role: string; tool_call_id?: string; content: string; tool_calls?: { id: string }[] }[];
    };
    const ids = messages[1]?.tool_calls?.map(({ id }) => id) ?? [];
    const results = messages.slice(2).map(({ tool_call_id = "", content }) => [ids.indexOf(tool_call_id), content]);
    expect(results.toSorted()).toEqual([
      [0, "1"],
      [1, "3"],
      [2, "2"],
    ]);
  });
});

test("a file is named by its id, in front of backends of every format", async () => {
  const { gateway, native, other } = await start();
  const picture = Buffer.from(pngImage({ width: 4, height: 4 }));
  const { id } = await uploadFile(gateway, picture, { contentType: "image/png" });
  const body = { contents: [{ parts: [{ text: "what?" }, { fileData: { fileUri: id } }] }] };
  other.answer = chat("a box");
  expect((await gateway.post(method("far", "generateContent"), body)).status).toBe(200);
  expect(other.lastRequest.text).toContain(picture.toString("base64"));
  native.answer = { headers: { "Content-Type": "application/json" }, body: JSON.stringify(piece("a box", END)) };
  expect((await gateway.post(method("gemini-3-pro", "generateContent"), body)).status).toBe(200);
  expect((native.lastRequest.json() as Json).contents).toEqual([
    { parts: [{ text: "what?" }, { inlineData: { mimeType: "image/png", data: picture.toString("base64") } }] },
  ]);
  const unknown = { contents: [{ parts: [{ fileData: { fileUri: "file-000000000000000000000000" } }] }] };
  const refused = await gateway.post(method("far", "generateContent"), unknown);
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: { status: "NOT_FOUND" } }]);
});

test("the operator's prompt goes along, in the client's own bytes and translated", async () => {
  const { gateway, native, other } = await start({ global_prompts: { default: "Be brief.", separator: " " } });
  native.answer = { headers: { "Content-Type": "application/json" }, body: JSON.stringify(piece("x", END)) };
  other.answer = chat("x");
  const ask = (model: string, more: Json) => gateway.post(method(model, "generateContent"), asking("hi", more));
  await ask("gemini-3-pro", {});
  expect((native.lastRequest.json() as Json).systemInstruction).toEqual({ parts: [{ text: "Be brief." }] });
  await ask("gemini-3-pro", { system_instruction: { parts: [{ text: "Rhyme." }] } });
  expect((native.lastRequest.json() as Json).system_instruction).toEqual({ parts: [{ text: "Be brief. Rhyme." }] });
  await ask("far", { systemInstruction: "Rhyme." });
  expect((other.lastRequest.json() as { messages: Json[] }).messages[0]).toEqual({
    role: "system",
    content: "Be brief. Rhyme.",
  });
});

test("what is left of a limit is told, and a spent one is RESOURCE_EXHAUSTED", async () => {
  const { gateway, other } = await start({
    rate_limiting: { enabled: true, limits: { per_client: { requests_per_second: 1, burst_capacity: 1 } } },
  });
  other.answer = chat("x");
  const first = await gateway.post(method("far", "generateContent"), asking("hi"));
  expect(first.headers.get("x-ratelimit-limit-requests")).not.toBeNull();
  const second = await gateway.post(method("far", "generateContent"), asking("hi"));
  expect(second.headers.get("retry-after")).not.toBeNull();
  expect([second.status, await second.json()]).toMatchObject([
    429,
    { error: { code: 429, status: "RESOURCE_EXHAUSTED" } },
  ]);
});

test("a client that leaves ends the request, whichever form of stream it reads", async () => {
  const { gateway, native } = await start();
  for (const query of ["?alt=sse", ""]) {
    native.reset({
      ...eventStream([sseEvent(piece("a")), "never"]),
      beforeChunk: (index) => (index === 1 ? new Promise(() => {}) : undefined),
    });
    const client = new AbortController();
    const path = method("gemini-3-pro", "streamGenerateContent") + query;
    const response = await gateway.post(path, asking("hi"), { signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await gateway.waitUntilIdle();
    await waitFor("the backend to see it", () => native.lastRequest.isClosed);
    expect(native.lastRequest.answerComplete).toBe(false);
  }
});

test("what a request counted is in its story, passed and translated", async () => {
  const { gateway, native, other } = await start();
  native.answer = eventStream([sseEvent(piece("a")), sseEvent(piece("b", END))]);
  other.answer = chat("x");
  await streamed(gateway, "gemini-3-pro", asking("hi"));
  await gateway.post(method("far", "generateContent"), asking("hi"));
  // Too large to be read as a whole: the counts are found at its end.
  const long = JSON.stringify(piece("x".repeat(100_000), END));
  native.answer = { headers: { "Content-Type": "application/json" }, body: long };
  expect(await (await gateway.post(method("gemini-2.5-flash", "generateContent"), asking("hi"))).text()).toBe(long);
  const { requests } = (await (await gateway.fetch("/admin/requests")).json()) as { requests: Json[] };
  const counts = requests.map(({ model, operation, prompt_tokens, completion_tokens }) => [
    model,
    operation,
    prompt_tokens,
    completion_tokens,
  ]);
  expect(counts.toSorted()).toEqual([
    ["far", "generate-content", 3, 2],
    ["gemini-2.5-flash", "generate-content", 3, 2],
    ["gemini-3-pro", "generate-content", 3, 2],
  ]);
});

describe("a route", () => {
  const set = { temperature: 0.2, max_output_tokens: 7, reasoning_effort: "low", seed: 5 } as const;
  const picture = {
    inlineData: { mimeType: "image/png", data: Buffer.from(pngImage({ width: 4, height: 4 })).toString("base64") },
  };

  test("answers under its name, with its fields, whatever format the target speaks", async () => {
    const { gateway, native, other } = await start({
      routes: [
        {
          name: "smart",
          sticky: "none",
          when: [{ has: "image", targets: [{ model: "gemini-3-pro", set }] }],
          targets: [{ model: "far", set }],
        },
      ],
    });
    other.answer = chat("translated");
    const translated = await gateway.post(method("smart", "generateContent"), asking("hi"));
    expect(translated.headers.get("x-signalbox-route")).toBe("smart");
    expect(await translated.json()).toMatchObject({ modelVersion: "smart", candidates: [END] });
    expect(other.lastRequest.json()).toMatchObject({ model: "far", temperature: 0.2, max_tokens: 7, seed: 5 });

    const shown = {
      contents: [{ parts: [{ text: "what?" }, picture] }],
      generation_config: { top_k: 3, temperature: 1 },
    };
    native.answer = { headers: { "Content-Type": "application/json" }, body: JSON.stringify(piece("passed", END)) };
    const passed = await gateway.post(method("smart", "generateContent"), shown);
    expect(await passed.json()).toMatchObject({
      modelVersion: "smart",
      candidates: [{ content: { parts: [{ text: "passed" }] } }],
    });
    expect(native.lastRequest.path).toBe(method("gemini-3-pro", "generateContent"));
    expect(native.lastRequest.json()).toEqual({
      contents: shown.contents,
      generationConfig: {
        topK: 3,
        temperature: 0.2,
        maxOutputTokens: 7,
        seed: 5,
        thinkingConfig: { includeThoughts: false, thinkingLevel: "LOW" },
      },
    });

    native.answer = eventStream([sseEvent(piece("a")), sseEvent(piece("b", END))]);
    const { data, text } = await streamed(gateway, "smart", shown);
    expect([text, ...data.map((each) => (JSON.parse(each) as Json).modelVersion)]).toEqual(["ab", "smart", "smart"]);

    const { models } = (await (await gateway.fetch("/v1beta/models")).json()) as { models: Json[] };
    expect(models.map(({ name }) => name)).toContain("models/smart");
    expect(await (await gateway.fetch("/v1beta/models/smart")).json()).toMatchObject({ name: "models/smart" });
  });
});
