// Clients of Gemini's API in front of backends of every format: answers, streams, keys, errors, models, counts and embeddings.

import { expect, test } from "bun:test";
import { chat, chatStream, embeddings, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

type Json = Record<string, unknown>;

const ASK = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };
const method = (model: string, name: string) => `/v1beta/models/${model}:${name}`;

const whole = (text: string, more: Json = {}) => ({
  candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, ...more }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  modelVersion: "gemini-2.5-flash",
  responseId: "r1",
});

async function startBoth(config: Json = {}) {
  const openai = bed.backend();
  const gemini = bed.backend();
  const gateway = await bed.gateway({
    config: {
      backends: [
        { name: "other", type: "vllm", url: openai.url, models: ["far", "org/far:8b"] },
        { name: "native", type: "gemini", url: gemini.url, api_key: "backend-sekret", models: ["gemini-2.5-flash"] },
      ],
      ...config,
    },
  });
  return { openai, gemini, gateway };
}

function textsIn(chunks: readonly Json[]): string {
  const parts = chunks.flatMap((chunk) => (chunk.candidates as { content?: { parts?: { text?: string }[] } }[]) ?? []);
  return parts
    .flatMap(({ content }) => content?.parts ?? [])
    .map(({ text = "" }) => text)
    .join("");
}

test("a backend of another format answers, whole and as a stream", async () => {
  const { openai, gateway } = await startBoth();
  openai.answer = chat("from afar");
  const answer = (await (await gateway.post(method("far", "generateContent"), ASK)).json()) as Json;
  expect(answer).toMatchObject({
    candidates: [{ content: { parts: [{ text: "from afar" }], role: "model" }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    modelVersion: "far",
    responseId: "chatcmpl-1",
  });
  expect(openai.lastRequest.json()).toMatchObject({ model: "far", messages: [{ role: "user", content: "Hi" }] });

  openai.answer = chatStream(["a", "b"]);
  const sse = await readSse(await gateway.post(`${method("far", "streamGenerateContent")}?alt=sse`, ASK));
  const chunks = sse.data.map((data) => JSON.parse(data) as Json);
  expect(textsIn(chunks)).toBe("ab");
  expect(chunks.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP" }], modelVersion: "far" });
});

test("without alt=sse a stream is one JSON array", async () => {
  const { openai, gemini, gateway } = await startBoth();
  openai.answer = chatStream(["a", "b"]);
  gemini.answer = eventStream([sseEvent(whole("c")), sseEvent(whole("d", { finishReason: "STOP" }))]);
  for (const [model, text] of [
    ["far", "ab"],
    ["gemini-2.5-flash", "cd"],
  ] as const) {
    const response = await gateway.post(method(model, "streamGenerateContent"), ASK);
    expect(response.headers.get("content-type")).toBe("application/json; charset=UTF-8");
    expect(textsIn((await response.json()) as Json[])).toBe(text);
  }
  expect(gemini.lastRequest.path).toBe(`${method("gemini-2.5-flash", "streamGenerateContent")}?alt=sse`);
});

test("names of models may have slashes and colons, written plainly or encoded", async () => {
  const { openai, gateway } = await startBoth();
  openai.answer = chat("yes");
  for (const path of ["/v1beta/models/org/far:8b:generateContent", "/v1beta/models/org%2Ffar%3A8b:generateContent"]) {
    expect([path, (await gateway.post(path, ASK)).status]).toEqual([path, 200]);
    expect(openai.lastRequest.json().model).toBe("org/far:8b");
  }
});

test("newer SDKs ask below /v1, which keeps its list of models", async () => {
  const { openai, gateway } = await startBoth();
  openai.answer = chat("yes");
  const answer = await gateway.post("/v1/models/org/far:8b:generateContent", ASK);
  expect(await answer.json()).toMatchObject({ candidates: [{ content: { parts: [{ text: "yes" }] } }] });
  expect(await (await gateway.fetch("/v1/models/org/far:8b")).json()).toMatchObject({ object: "model" });
  const unknown = await gateway.post("/v1/models/far:predict", ASK);
  expect([unknown.status, unknown.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("bytes pass as they are to a backend of the format, and back", async () => {
  const { gemini, gateway } = await startBoth();
  const body =
    '{ "contents": [{"parts":[{"text":"Hi"}]}],  "generationConfig": {"temperature": 1.0}, "labels": {"n": 1.50} }';
  const answer = `{ "candidates": [ {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"} ],\n "n": 1.0 }`;
  gemini.answer = { headers: { "Content-Type": "application/json" }, body: answer };
  const headers = { "content-type": "application/json", "x-goog-api-key": "client-sekret" };
  const url = `${gateway.url}${method("gemini-2.5-flash", "generateContent")}?key=client-sekret`;
  const response = await fetch(url, { method: "POST", headers, body });
  expect(await response.text()).toBe(answer);
  const { text, path, headers: sent } = gemini.lastRequest;
  expect([text, path]).toEqual([body, method("gemini-2.5-flash", "generateContent")]);
  expect(sent["x-goog-api-key"]).toBe("backend-sekret");

  const events = [`data: ${JSON.stringify(whole("a"))}\r\n\r\n`, sseEvent(whole("b", { finishReason: "STOP" }))];
  gemini.answer = eventStream(events);
  const stream = await gateway.post(`${method("gemini-2.5-flash", "streamGenerateContent")}?alt=sse`, ASK);
  expect(await stream.text()).toBe(events.join(""));
});

test("keys are taken from every place where clients send them, and from no query elsewhere", async () => {
  const key = "gemini-client-sekret";
  const { openai, gateway } = await startBoth({
    api_keys: { mode: "blocking", keys: [{ id: "one", key, scopes: ["read", "write"] }] },
    logging: { level: "debug" },
  });
  openai.answer = chat("yes");
  const path = method("far", "generateContent");
  const ask = (at: string, headers: Record<string, string> = {}) => gateway.post(at, ASK, { headers });
  expect((await ask(path, { "x-goog-api-key": key })).status).toBe(200);
  expect((await ask(path, { authorization: `Bearer ${key}` })).status).toBe(200);
  expect((await ask(`${path}?key=${key}`)).status).toBe(200);
  expect((await gateway.fetch(`/v1beta/models?key=${key}`)).status).toBe(200);
  expect((await ask(`${path}?key=`)).status).toBe(401);
  expect((await gateway.fetch(`/v1/models?key=${key}`)).status).toBe(401);
  const refused = await ask(`${path}?key=wrong-sekret`);
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({ error: { code: 401, status: "UNAUTHENTICATED" } });
  const { headers, text } = openai.lastRequest;
  expect(JSON.stringify(headers) + text).not.toContain("sekret");
  const stories = await (await gateway.fetch("/admin/requests")).text();
  expect(stories).toContain(path);
  expect(stories).not.toContain("sekret");
  // What the gateway printed is looked through for secrets when it ends.
});

test("errors have Google's shape, also at paths that do not exist and inside streams", async () => {
  const { openai, gemini, gateway } = await startBoth({ retry: { max_attempts: 1 } });
  const told = async (response: Response) => ({ at: response.status, ...((await response.json()) as Json) });
  const noContents = await told(await gateway.post(method("far", "generateContent"), {}));
  expect(noContents).toMatchObject({
    at: 400,
    error: { code: 400, status: "INVALID_ARGUMENT", details: [{}, { fieldViolations: [{ field: "contents" }] }] },
  });
  const notFound = { at: 404, error: { code: 404, status: "NOT_FOUND" } };
  expect(await told(await gateway.post(method("nowhere", "generateContent"), ASK))).toMatchObject(notFound);
  expect(await told(await gateway.fetch("/v1beta/models/nowhere"))).toMatchObject(notFound);
  const notBuilt = { ...notFound, error: { ...notFound.error, message: "/v1beta/files is not in this release." } };
  expect(await told(await gateway.fetch("/v1beta/files"))).toMatchObject(notBuilt);
  expect(await told(await gateway.fetch("/v1beta/what/is/this"))).toMatchObject(notFound);
  openai.answer = failure(429);
  const limited = await told(await gateway.post(method("far", "generateContent"), ASK));
  expect(limited).toMatchObject({ at: 429, error: { code: 429, status: "RESOURCE_EXHAUSTED" } });

  const own = { error: { code: 400, message: "bad", status: "FAILED_PRECONDITION", details: [{ "@type": "x" }] } };
  gemini.answer = { status: 400, headers: { "Content-Type": "application/json" }, body: JSON.stringify(own) };
  const passed = await gateway.post(method("gemini-2.5-flash", "generateContent"), ASK);
  expect([passed.status, await passed.json()]).toEqual([400, own]);

  openai.answer = { ...chatStream(["a"], { finishReason: null, done: false }) };
  const broken = await readSse(await gateway.post(`${method("far", "streamGenerateContent")}?alt=sse`, ASK));
  expect(JSON.parse(broken.data.at(-1) as string)).toMatchObject({ error: { code: 502, status: "UNAVAILABLE" } });
});

test("models are listed in Google's shape, page by page", async () => {
  const { gateway } = await startBoth();
  const first = (await (await gateway.fetch("/v1beta/models?pageSize=2")).json()) as Json;
  const second = (await (
    await gateway.fetch(`/v1beta/models?pageSize=2&pageToken=${encodeURIComponent(String(first.nextPageToken))}`)
  ).json()) as Json;
  const names = [first, second].flatMap(({ models }) => (models as Json[]).map(({ name }) => name));
  expect(names.toSorted()).toEqual(["models/far", "models/gemini-2.5-flash", "models/org/far:8b"]);
  expect(second.nextPageToken).toBeUndefined();
  const one = await (await gateway.fetch("/v1beta/models/org/far:8b")).json();
  expect(one).toMatchObject({ name: "models/org/far:8b", baseModelId: "org/far:8b" });
  expect((await gateway.fetch("/v1beta/models?pageToken=nothing")).status).toBe(400);
});

test("tokens are counted by the backend, or estimated", async () => {
  const { gemini, gateway } = await startBoth();
  gemini.answer = { headers: { "Content-Type": "application/json" }, body: '{"totalTokens":31}' };
  const counted = await gateway.post(method("gemini-2.5-flash", "countTokens"), ASK);
  expect([counted.headers.get("x-signalbox-estimate"), await counted.json()]).toEqual([null, { totalTokens: 31 }]);
  expect(gemini.lastRequest.path).toBe(method("gemini-2.5-flash", "countTokens"));
  const estimated = await gateway.post(method("far", "countTokens"), { generateContentRequest: ASK });
  expect(estimated.headers.get("x-signalbox-estimate")).toBe("1");
  expect(((await estimated.json()) as { totalTokens: number }).totalTokens).toBeGreaterThan(5);
});

test("embeddings come from backends of both formats", async () => {
  const { openai, gemini, gateway } = await startBoth();
  const content = (text: string) => ({ content: { parts: [{ text }] } });
  openai.answer = embeddings([[1, 2]]);
  const one = await gateway.post(method("far", "embedContent"), { ...content("a"), outputDimensionality: 2 });
  expect(await one.json()).toEqual({ embedding: { values: [1, 2] }, usageMetadata: { promptTokenCount: 4 } });
  expect(openai.lastRequest.json()).toEqual({ model: "far", input: ["a"], dimensions: 2 });
  openai.answer = embeddings([
    [1, 2],
    [3, 4],
  ]);
  const requests = [content("a"), content("b")].map((each) => ({ model: "models/far", ...each }));
  const two = await gateway.post(method("far", "batchEmbedContents"), { requests });
  expect(await two.json()).toMatchObject({ embeddings: [{ values: [1, 2] }, { values: [3, 4] }] });

  gemini.answer = { headers: { "Content-Type": "application/json" }, body: '{"embedding":{"values":[5]}}' };
  const native = await gateway.post(method("gemini-2.5-flash", "embedContent"), content("c"));
  expect(await native.json()).toEqual({ embedding: { values: [5] } });
  expect(gemini.lastRequest.path).toBe(method("gemini-2.5-flash", "embedContent"));
  const picture = { content: { parts: [{ inlineData: { mimeType: "image/png", data: "QUJD" } }] } };
  const refused = await gateway.post(method("far", "embedContent"), picture);
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { status: "INVALID_ARGUMENT" } }]);
});
