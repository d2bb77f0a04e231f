// /openapi.json: what the gateway really answers is what the document says, for every operation and for errors.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { EventFollower } from "../support/event-follower.ts";
import type { Answer, RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { workerCount } from "../support/gateway-parts.ts";
import type { FormPart } from "../support/multipart-forms.ts";
import { type OpenApiOperation, operationsOf, SchemaChecks, samplePath } from "../support/openapi.ts";
import { pngImage } from "../support/png-images.ts";
import { readSse } from "../support/sse-reader.ts";
import { filePart, PURPOSE, sendForm } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const engine = bed.backend({ models: ["reranker"] });
const failing = bed.backend({ models: ["failing"] });
const media = bed.backend({ models: ["media"] });
const MESSAGES = [{ role: "user", content: "Hello!" }];
const PROMPT = "You are terse.\n";

let gateway: Gateway;
let checks: SchemaChecks;
/** Operations that a test of this file has called. */
const called = new Set<string>();

beforeAll(async () => {
  failing.answer = { status: 503, body: '{"error": {"message": "busy", "type": "busy"}}' };
  media.answer = mediaAnswer;
  engine.answer = (request) => ({
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(
      request.path.includes("embed_sparse")
        ? [[{ index: 7, value: 0.5 }]]
        : { results: [{ index: 0, relevance_score: 0.9 }], usage: { total_tokens: 3 } },
    ),
  });
  gateway = await bed.gateway({
    config: {
      server: { bind_address: "127.0.0.1:0" },
      backends: [
        { name: "demo", type: "demo" },
        { name: "engine", type: "vllm", url: engine.url },
        { name: "media", type: "generic", url: media.url },
        { name: "closed", type: "generic", url: "http://127.0.0.1:9", models: ["unreachable"], api_key: "sekret-1" },
      ],
      health_checks: { interval: "200ms" },
      retry: { max_attempts: 1 },
      response_cache: { enabled: true },
      kv_cache_index: { enabled: true },
      metrics: { persistence: { snapshot_interval_seconds: 1 } },
      global_prompts: { models: { other: { prompt_file: "terse.md" } }, prompts_dir: "prompts" },
    },
    files: { "prompts/terse.md": PROMPT },
  });
  const response = await gateway.fetch("/openapi.json");
  expect(response.status).toBe(200);
  checks = new SchemaChecks((await response.json()) as object, { closed: true });
  const list = operationsOf(checks.document);
  expect(list.length).toBeGreaterThan(50);
});

/** Pictures, transcriptions and moderations in one; or as a stream, which asks by its words for one. */
function mediaAnswer({ path, text }: RecordedRequest): Answer {
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
  if (path.endsWith("/speech") && !text.includes("sse")) {
    return { headers: { "Content-Type": "audio/mpeg" }, body: "ID3" };
  }
  if (!/"stream"(:true|\r\n\r\ntrue)|sse/.test(text)) {
    const body = { created: 7, data: [{ b64_json: "QUJD" }], text: "Hello", results: [{ flagged: false }], usage };
    return { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  }
  const [part, end] = path.includes("edits")
    ? ["image_edit.partial_image", "image_edit.completed"]
    : path.endsWith("/speech")
      ? ["speech.audio.delta", "speech.audio.done"]
      : ["transcript.text.delta", "transcript.text.done"];
  const events = [
    { type: part, b64_json: "QUJD", partial_image_index: 0, created_at: 7, delta: "He", audio: "QUJD" },
    { type: end, b64_json: "QUJD", created_at: 7, text: "Hello", usage },
  ];
  return {
    headers: { "Content-Type": "text/event-stream" },
    body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  };
}

interface CallOptions {
  /** Expected; default 200. */
  status?: number;
  parameters?: Record<string, string>;
  query?: string;
  body?: unknown;
  /** The body breaks the described schema, on purpose. */
  invalidBody?: boolean;
  headers?: Record<string, string>;
  /** Default: the one that all tests share. */
  from?: Gateway;
  /** In place of a body: the answer to it is checked, not its schema. */
  form?: readonly FormPart[];
}

/** Calls an operation, and checks the answer with all that the document says of it. */
async function call<Body = Record<string, unknown>>(
  method: string,
  path: string,
  { status = 200, parameters, query = "", body, invalidBody = false, headers, from = gateway, form }: CallOptions = {},
): Promise<Body> {
  const operation = checks.operation(method, path);
  called.add(`${method} ${path}`);
  if (body !== undefined) checkRequest(operation, body, invalidBody);
  if (form !== undefined) expect(Object.keys(operation.requestBody?.content ?? {})).toEqual(["multipart/form-data"]);
  const sent = form === undefined ? undefined : sendForm(from, form, { path });
  const request =
    sent ??
    from.fetch(samplePath(path, parameters) + query, {
      method,
      headers: { ...(body !== undefined && { "Content-Type": "application/json" }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  const response = await request;
  const described = checks.response(operation, response.status);
  expect(response.headers.get("x-request-id") ?? "").not.toBe("");
  const type = (response.headers.get("content-type") ?? "").split(";")[0] as string;
  // Whatever a sound is, it is described as bytes.
  const media = described.content?.[type.startsWith("audio/") ? "application/octet-stream" : type];
  if (media === undefined) throw new Error(`${method} ${path} answers ${response.status} as ${type}: not described`);

  if (type === "text/event-stream") {
    expect(response.status).toBe(status);
    const { data } = await readSse(response);
    const events = data.filter((text) => text !== "[DONE]").map((text) => JSON.parse(text) as unknown);
    expect(events.length).toBeGreaterThan(1);
    for (const event of events) expect(checks.problems(media["x-event-data"] ?? {}, event)).toEqual([]);
    return events as Body;
  }
  if (type === "application/x-ndjson") {
    expect(response.status).toBe(status);
    const lines = (await response.text()).trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line) as unknown);
    for (const event of events) expect(checks.problems(media["x-event-data"] ?? {}, event)).toEqual([]);
    return events as Body;
  }
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  const value = type === "application/json" ? (JSON.parse(text) as Body) : (text as Body);
  expect({ value, problems: checks.problems(media.schema, value) }).toEqual({ value, problems: [] });
  return value;
}

function checkRequest(operation: OpenApiOperation, body: unknown, isInvalid: boolean): void {
  const schema = operation.requestBody?.content["application/json"]?.schema;
  if (schema === undefined) throw new Error(`${operation.operationId} is described without a body`);
  const problems = typeof body === "string" ? ["not JSON"] : checks.problems(schema, body);
  expect({ body, valid: problems.length === 0 }).toEqual({ body, valid: !isInvalid });
}

describe("public operations", () => {
  test.each([["/health"], ["/healthz"], ["/readyz"], ["/v1/models"], ["/anthropic/v1/models"], ["/openapi.json"]])(
    "GET %s",
    async (path) => {
      await call("GET", path);
    },
  );

  test("the welcome page and its icon", async () => {
    for (const path of ["/", "/anthropic"]) {
      await call("GET", path);
      await call("GET", path, { headers: { Accept: "text/html" } });
    }
    await call("GET", "/favicon.ico");
  });

  test.each([["/v1/models/{model}"], ["/anthropic/v1/models/{model}"], ["/v1beta/models/{model}"]])(
    "GET %s",
    async (path) => {
      await call("GET", path, { parameters: { model: "demo" } });
      await call("GET", path, { parameters: { model: "no/such" }, status: 404 });
    },
  );

  test("a page of models in the shape of the Messages API", async () => {
    await call("GET", "/anthropic/v1/models", { query: "?limit=1" });
    await call("GET", "/anthropic/v1/models", { query: "?limit=0", status: 400 });
    await call("GET", "/v1beta/models", { query: "?pageSize=1" });
    await call("GET", "/v1beta/models", { query: "?pageSize=-1", status: 400 });
  });

  const model = "demo";
  const generating: [path: string, body: Record<string, unknown>][] = [
    ["/v1/chat/completions", { model, messages: MESSAGES }],
    ["/v1/completions", { model, prompt: "Hello!" }],
    ["/v1/responses", { model, input: "Hello!" }],
    ["/v1/messages", { model, max_tokens: 64, messages: MESSAGES }],
    ["/anthropic/v1/messages", { model, max_tokens: 64, messages: MESSAGES }],
  ];
  test.each(generating)("POST %s, plain and streamed, and its errors", async (path, body) => {
    await call("POST", path, { body });
    await call("POST", path, { body: { ...body, stream: true } });
    await call("POST", path, { body: { ...body, model: undefined }, invalidBody: true, status: 400 });
    await call("POST", path, { body: "{", invalidBody: true, status: 400 });
    await call("POST", path, { body: { ...body, model: "nobody-has-it" }, status: 404 });
  });

  const computing: [path: string, body: Record<string, unknown>][] = [
    ["/v1/messages/count_tokens", { model, messages: MESSAGES }],
    ["/anthropic/v1/messages/count_tokens", { model, messages: MESSAGES }],
    ["/v1/embeddings", { model, input: ["a", "b"] }],
    ["/v1/embeddings", { model, input: "a", encoding_format: "base64" }],
    ["/v1/rerank", { model: "reranker", query: "q", documents: ["a"], return_documents: true }],
    ["/rerank", { model: "reranker", query: "q", documents: [{ text: "a" }] }],
    ["/v1/embed_sparse", { model: "reranker", inputs: "a" }],
    ["/embed_sparse", { model: "reranker", inputs: ["a"] }],
  ];
  test.each(computing)("POST %s and its errors", async (path, body) => {
    await call("POST", path, { body });
    await call("POST", path, { body: { ...body, model: 1 }, invalidBody: true, status: 400 });
  });

  test.each([
    ["/api/chat", { model, messages: MESSAGES }],
    ["/api/generate", { model, prompt: "Hello!", system: "Be brief." }],
  ] as [path: string, body: Record<string, unknown>][])("POST %s of Ollama, streamed and plain", async (path, body) => {
    expect(((await call("POST", path, { body })) as unknown as unknown[]).length).toBeGreaterThan(1);
    await call("POST", path, { body: { ...body, stream: false, options: { temperature: 0, num_ctx: 99 } } });
    await call("POST", path, { body: { model } });
    await call("POST", path, { body: { model, stream: false, keep_alive: 0 } });
    await call("POST", path, { body: { ...body, model: undefined }, invalidBody: true, status: 400 });
    await call("POST", path, { body: { ...body, options: { top_p: 2 } }, invalidBody: true, status: 400 });
    await call("POST", path, { body: { ...body, model: "nobody-has-it" }, status: 404 });
  });

  test("embeddings and models of Ollama", async () => {
    await call("POST", "/api/embed", { body: { model, input: ["a", "b"], dimensions: 8, truncate: true } });
    await call("POST", "/api/embed", { body: { model, input: [] } });
    await call("POST", "/api/embed", { body: { model, input: [1] }, invalidBody: true, status: 400 });
    await call("POST", "/api/embed", { body: { model: "nobody-has-it", input: "a" }, status: 404 });
    await call("POST", "/api/embeddings", { body: { model, prompt: "a", keep_alive: "5m" } });
    await call("POST", "/api/embeddings", { body: { model, prompt: ["a"] }, invalidBody: true, status: 400 });
    for (const path of ["/api/version", "/api/tags", "/api/ps"]) await call("GET", path);
    await call("POST", "/api/show", { body: { model } });
    await call("POST", "/api/show", { body: { name: `${model}:latest` } });
    await call("POST", "/api/show", { body: { model: "nobody-has-it" }, status: 404 });
    await call("POST", "/api/show", { body: { model: 1 }, invalidBody: true, status: 400 });
  });

  test("images: generations", async () => {
    const path = "/v1/images/generations";
    const body = { model: "demo-image", prompt: "A box", size: "16x16" };
    await call("POST", path, { body });
    await call("POST", path, { body: { ...body, stream: true, partial_images: 1 } });
    await call("POST", path, { body: { ...body, prompt: 1 }, invalidBody: true, status: 400 });
    await call("POST", path, { body: { ...body, model: "nobody-has-it" }, status: 404 });
  });

  const png = pngImage({ width: 4, height: 4 });
  const image: FormPart = { name: "image", filename: "a.png", content: png };
  const recording: FormPart = { name: "file", filename: "a.wav", content: "RIFF" };
  const named: FormPart = { name: "model", content: "media" };
  const streamed: FormPart = { name: "stream", content: "true" };
  const forms: [path: string, form: FormPart[], isStreamed: boolean][] = [
    ["/v1/images/edits", [named, { name: "prompt", content: "x" }, image], true],
    ["/v1/images/variations", [named, image], false],
    ["/v1/audio/transcriptions", [named, recording], true],
    ["/v1/audio/translations", [named, recording], true],
  ];
  test.each(forms)("a form for %s, and its errors", async (path, form, isStreamed) => {
    await call("POST", path, { form });
    if (isStreamed) await call("POST", path, { form: [...form, streamed] });
    await call("POST", path, { form: [named], status: 400 });
    await call("POST", path, { form: [{ ...named, content: "nobody-has-it" }, ...form.slice(1)], status: 404 });
  });

  test("speech and moderations", async () => {
    const speech = { model: "media", input: "Mind the gap.", voice: "alloy" };
    await call("POST", "/v1/audio/speech", { body: speech });
    await call("POST", "/v1/audio/speech", { body: { ...speech, stream_format: "sse" } });
    await call("POST", "/v1/audio/speech", { body: { ...speech, input: "" }, invalidBody: true, status: 400 });
    await call("POST", "/v1/moderations", { body: { model: "media", input: ["a", "b"] } });
    await call("POST", "/v1/moderations", { body: { model: "media", input: 1 }, invalidBody: true, status: 400 });
    await call("POST", "/v1/moderations", { body: { input: "a" }, status: 404 });
  });

  test.each(["/v1beta", "/v1"])("Gemini's API below %s", async (version) => {
    const path = (method: string) => `${version}/models/{model}:${method}`;
    const parameters = { model };
    const contents = [{ role: "user", parts: [{ text: "Hello!" }] }];
    await call("POST", path("generateContent"), { parameters, body: { contents } });
    await call("POST", path("generateContent"), { parameters, body: {}, invalidBody: true, status: 400 });
    // Another question: a kept answer would be one event.
    const asked = [{ role: "user", parts: [{ text: `Hello below ${version}!` }] }];
    await call("POST", path("streamGenerateContent"), { parameters, body: { contents: asked }, query: "?alt=sse" });
    await call("POST", path("streamGenerateContent"), { parameters, body: { contents } });
    await call("POST", path("countTokens"), { parameters, body: { contents } });
    const content = { parts: [{ text: "Hello!" }] };
    await call("POST", path("embedContent"), { parameters, body: { content } });
    const requests = [{ model: "models/demo", content }];
    await call("POST", path("batchEmbedContents"), { parameters, body: { requests } });
  });

  test.each([["/v1/files"], ["/anthropic/v1/files"]])("files at %s", async (path) => {
    const sent = async (parts: readonly FormPart[], status: number) => {
      const operation = checks.operation("POST", path);
      called.add(`POST ${path}`);
      const response = await sendForm(gateway, parts, { path });
      const schema = checks.response(operation, response.status).content?.["application/json"]?.schema;
      const value = (await response.json()) as { id: string };
      expect({ status: response.status, problems: checks.problems(schema ?? {}, value) }).toEqual({
        status,
        problems: [],
      });
      return value.id;
    };
    await sent([], 400);
    const expiry = [
      { name: "expires_after[anchor]", content: "created_at" },
      { name: "expires_after[seconds]", content: "3600" },
    ];
    const ids = [await sent([PURPOSE, filePart("hello")], 200), await sent([PURPOSE, filePart("you"), ...expiry], 200)];
    await call("GET", path);
    await call("GET", path, { query: "?limit=1" });
    await call("GET", path, { query: "?limit=0", status: 400 });
    for (const id of ids) {
      const parameters = { file_id: id };
      await call("GET", `${path}/{file_id}`, { parameters });
      const operation = checks.operation("GET", `${path}/{file_id}/content`);
      called.add(`GET ${path}/{file_id}/content`);
      for (const [status, headers] of [
        [200, {}],
        [206, { Range: "bytes=0-0" }],
        [304, { "If-None-Match": "*" }],
        [416, { Range: "bytes=99-" }],
      ] as const) {
        const response = await gateway.fetch(`${path}/${id}/content`, { headers });
        expect(response.status).toBe(status);
        for (const name of Object.keys(checks.response(operation, status).headers ?? {})) {
          expect({ name, value: response.headers.get(name) }).toEqual({ name, value: expect.any(String) });
        }
      }
      await call("DELETE", `${path}/{file_id}`, { parameters });
      await call("DELETE", `${path}/{file_id}`, { parameters, status: 404 });
      await call("GET", `${path}/{file_id}`, { parameters: { file_id: "x" }, status: 400 });
    }
  });

  test("batches", async () => {
    const purpose: FormPart = { name: "purpose", content: "batch" };
    const form = [purpose, filePart('{"custom_id":"a"}\n', { filename: "batch.jsonl" })];
    const { id } = (await (await sendForm(gateway, form)).json()) as { id: string };
    const body = { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const batch = await call<{ id: string }>("POST", "/v1/batches", { body });
    await call("POST", "/v1/batches", { body: { ...body, endpoint: "/v1/x" }, invalidBody: true, status: 400 });
    await call("GET", "/v1/batches");
    const parameters = { batch_id: batch.id };
    // Its only line cannot be asked.
    await waitFor("the batch has failed", async () => {
      const { status } = await call<{ status: string }>("GET", "/v1/batches/{batch_id}", { parameters });
      return status === "failed";
    });
    await call("POST", "/v1/batches/{batch_id}/cancel", { parameters, status: 409 });
    await call("GET", "/v1/batches", { query: "?limit=0", status: 400 });
    await call("GET", "/v1/batches/{batch_id}", { parameters: { batch_id: batch.id } });
    await call("GET", "/v1/batches/{batch_id}", { parameters: { batch_id: "x" }, status: 404 });
  });

  test.each([["/v1/messages/batches"], ["/anthropic/v1/messages/batches"]])("batches at %s", async (path) => {
    const params = { model: "demo", max_tokens: 8, messages: MESSAGES };
    const requests = [
      { custom_id: "a", params },
      { custom_id: "b", params: { ...params, model: "not-served" } },
    ];
    const one = `${path}/{message_batch_id}`;
    const { id } = await call<{ id: string }>("POST", path, { body: { requests } });
    await call("POST", path, { body: { requests: [{}] }, invalidBody: true, status: 400 });
    const parameters = { message_batch_id: id };
    await waitFor("the batch has ended", async () => {
      const batch = await call<{ processing_status: string }>("GET", one, { parameters });
      return batch.processing_status === "ended";
    });
    await call("GET", path);
    await call("GET", path, { query: "?limit=0", status: 400 });
    expect(await call<unknown[]>("GET", `${one}/results`, { parameters })).toHaveLength(2);
    await call("POST", `${one}/cancel`, { parameters, status: 400 });
    await call("DELETE", one, { parameters });
    await call("GET", one, { parameters, status: 404 });
    await call("GET", `${one}/results`, { parameters, status: 404 });
    const other = await call<{ id: string }>("POST", path, { body: { requests: [{ custom_id: "a", params }] } });
    const cancelled = await gateway.fetch(`${path}/${other.id}/cancel`, { method: "POST" });
    expect([200, 400]).toContain(cancelled.status);
  });

  test("tool calls", async () => {
    const tools = [{ type: "function", function: { name: "look_up", parameters: { type: "object" } } }];
    const body = { model, messages: MESSAGES, tools, tool_choice: "required" };
    await call("POST", "/v1/chat/completions", { body });
    await call("POST", "/v1/chat/completions", { body: { ...body, stream: true } });
  });

  test("errors of backends", async () => {
    const body = { model: "reranker", messages: MESSAGES };
    const others = engine.answer;
    for (const [status, text] of [
      [418, '{"error": {"message": "no", "type": "teapot", "code": null}}'],
      [500, "<html>"],
      [429, '{"error": {"message": "slow", "type": "busy"}}'],
    ] as const) {
      engine.answer = { status, body: text };
      await call("POST", "/v1/chat/completions", { body, status });
    }
    engine.answer = others;
    // The checks of its health find it down first.
    await call("POST", "/v1/chat/completions", { body: { ...body, model: "unreachable" }, status: 404 });
  });
});

test("callers that are refused", async () => {
  const from = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      api_keys: {
        mode: "blocking",
        keys: [
          { key: "sekret-reader", scopes: ["read"] },
          { key: "sekret-slow", rate_limit: 1 },
        ],
      },
    },
  });
  const reader = { Authorization: "Bearer sekret-reader" };
  const slow = { "X-API-Key": "sekret-slow" };
  for (const [path, body] of [
    ["/v1/chat/completions", { model: "demo", messages: MESSAGES }],
    ["/v1/messages", { model: "demo", max_tokens: 9, messages: MESSAGES }],
  ] as const) {
    await call("POST", path, { from, body, status: 401 });
    await call("POST", path, { from, body, status: 403, headers: reader });
  }
  await call("GET", "/v1/models", { from, headers: reader });
  await call("GET", "/v1/me", { from, headers: reader });
  await call("GET", "/v1/me", { from, status: 401 });
  await call("GET", "/dashboard/me");
  await call("GET", "/v1/me/usage", { from, headers: reader, query: "?by=model,day&window=7d" });
  await call("GET", "/v1/me/usage", { from, status: 401 });
  await call("GET", "/v1/me/requests", { from, headers: reader, query: "?limit=2" });
  await call("GET", "/v1/me/requests", { from, status: 401 });
  await call("GET", "/v1/models", { from, headers: slow });
  for (const path of ["/v1/models", "/anthropic/v1/models"]) {
    await call("GET", path, { from, headers: slow, status: 429 });
    await call("GET", path, { from, status: 401 });
  }
  await call("GET", "/openapi.json", { from });
});

test("administrators, and those who are none", async () => {
  const from = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      api_keys: {
        keys: [
          { key: "sekret-admin", scopes: ["admin"] },
          { key: "sekret-reader", scopes: ["read"] },
        ],
      },
      admin: { auth: { method: "api_key", max_failed_attempts: 1 } },
      metrics: { auth: { enabled: true, username: "prometheus", password: "sekret-scrape" } },
    },
    awaitHealth: false, // that is asked without credentials
  });
  const admin = { "X-API-Key": "sekret-admin" };
  const reader = { "X-API-Key": "sekret-reader" };
  for (const path of ["/admin/config", "/admin/stats", "/admin/backends"]) {
    await call("GET", path, { from, headers: admin });
    await call("GET", path, { from, status: 401 });
    await call("GET", path, { from, headers: reader, status: 403 });
  }
  await call("POST", "/admin/config/export", { from, headers: admin, body: { include_sensitive: true } });
  const wrong = { "X-API-Key": "sekret-wrong" };
  await call("GET", "/admin/config/full", { from, headers: wrong, status: 401 });
  await call("GET", "/admin/config/full", { from, headers: wrong, status: 429 });
  await call("GET", "/metrics", { from, status: 401 });
  await call("GET", "/metrics", { from, headers: { Authorization: `Basic ${btoa("prometheus:sekret-scrape")}` } });
});

test("what is switched off", async () => {
  const from = await bed.gateway({
    config: {
      backends: [{ name: "demo", type: "demo" }],
      admin: { stats: { enabled: false } },
      metrics: { enabled: false },
      files: { enabled: false },
      batches: { enabled: false },
    },
  });
  await call("GET", "/v1/batches", { from, status: 404 });
  await call("GET", "/admin/batches", { from });
  await call("GET", "/admin/files", { from });
  await call("GET", "/v1/files", { from, status: 404 });
  for (const path of ["/admin/stats", "/admin/stats/costs", "/metrics"]) await call("GET", path, { from, status: 404 });
  await call("POST", "/admin/stats/reset", { from, status: 404 });
  await call("GET", "/admin/metrics/history", { from, query: "?metric=any", status: 404 });
  await call("GET", "/admin/metrics/series", { from, query: "?metric=any", status: 404 });
});

test("a gateway whose backends are all down", async () => {
  const from = await bed.gateway({
    config: { backends: [{ name: "closed", type: "vllm", url: "http://127.0.0.1:9" }] },
  });
  await call("GET", "/readyz", { from, status: 503 });
  await call("GET", "/v1/models", { from, status: 503 });
  await call("GET", "/admin/backends", { from });
  await call("GET", "/admin/health", { from, status: 503 });
  await call("GET", "/admin/response-cache", { from });
  await call("DELETE", "/admin/response-cache", { from, status: 404 });
  await call("GET", "/admin/kv-index", { from });
  await call("DELETE", "/admin/kv-index", { from, status: 404 });
});

describe("observation", () => {
  test("GET /admin/backends", async () => {
    await call("GET", "/admin/backends");
  });

  test("the response cache", async () => {
    await call("GET", "/admin/response-cache");
    await call("DELETE", "/admin/response-cache");
    await call("DELETE", "/admin/response-cache", { query: "?model=a" });
  });

  test("the KV cache index", async () => {
    await call("GET", "/admin/kv-index");
    await call("DELETE", "/admin/kv-index", { query: "?backend=nobody", status: 404 });
    await call("DELETE", "/admin/kv-index");
  });

  test("workers", async () => {
    await call("GET", "/admin/workers");
    await call("POST", "/admin/workers/restart", { status: workerCount() === 1 ? 409 : 200 });
  });

  test("the agent that editors start", async () => {
    await call("GET", "/admin/acp/status");
    await call("GET", "/admin/acp/sessions");
    await call("GET", "/admin/acp/agent.json");
  });

  test("batches of all callers", async () => {
    const requests = [
      { custom_id: "a", params: { model: "demo", max_tokens: 8, messages: [{ role: "user", content: "Hi" }] } },
    ];
    for (let index = 0; index < 2; index++) await gateway.post("/v1/messages/batches", { requests });
    interface Page {
      batches: { id: string; status: string }[];
      next: string | null;
    }
    const first = await call<Page>("GET", "/admin/batches", { query: "?limit=1" });
    expect(first.batches).toHaveLength(1);
    const second = await call<Page>("GET", "/admin/batches", { query: `?limit=1&cursor=${first.next}` });
    expect(second.batches).toHaveLength(1);
    const id = first.batches[0]?.id as string;
    expect(second.batches[0]?.id).not.toBe(id);
    const parameters = { id };
    await waitFor("the batch has ended", async () => {
      const { has_ended } = await call<{ has_ended: boolean }>("GET", "/admin/batches/{id}", { parameters });
      return has_ended;
    });
    await call("POST", "/admin/batches/{id}/cancel", { parameters, status: 409 });
    await call("POST", "/admin/batches/{id}/cancel", { parameters: { id: "x" }, status: 404 });
    await call("GET", "/admin/batches/{id}", { parameters: { id: "x" }, status: 404 });
    for (const limit of ["0", "501"]) await call("GET", "/admin/batches", { query: `?limit=${limit}`, status: 400 });
  });

  test("recordings", async () => {
    await call("PATCH", "/admin/config/recording", { body: { enabled: true } });
    await gateway.post("/v1/chat/completions", { model: "demo", messages: [{ role: "user", content: "Remember." }] });
    interface Page {
      recordings: { id: string }[];
    }
    const { recordings } = await waitFor("the recording is kept", async () => {
      const page = await call<Page>("GET", "/admin/recordings", { query: "?text=remember&limit=1" });
      return page.recordings.length > 0 && page;
    });
    const parameters = { id: recordings[0]?.id as string };
    await call("GET", "/admin/recordings/{id}", { parameters });
    await call("GET", "/admin/recordings/{id}", { parameters: { id: "x" }, status: 404 });
    const body = { recordings: [parameters.id], model: "demo" };
    const replay = await call<{ id: string }>("POST", "/admin/replays", { body, status: 201 });
    await call("POST", "/admin/replays", { body: { recordings: "x", model: "demo" }, status: 400 });
    await call("GET", "/admin/replays");
    const replayed = { id: replay.id };
    await waitFor("the replay is over", async () => {
      const { status } = await call<{ status: string }>("GET", "/admin/replays/{id}", { parameters: replayed });
      return status === "completed";
    });
    await call("DELETE", "/admin/replays/{id}", { parameters: replayed });
    await call("GET", "/admin/replays/{id}", { parameters: replayed, status: 404 });
    await call("DELETE", "/admin/replays/{id}", { parameters: replayed, status: 404 });
    await call("POST", "/v1/feedback", {
      body: { request_id: parameters.id, score: 1, comment: "Good." },
      status: 201,
    });
    await call("POST", "/v1/feedback", { body: { request_id: "x", score: 1 }, status: 404 });
    await call("GET", "/admin/feedback", { query: "?limit=1" });
    await call("GET", "/admin/recordings/export", { query: "?shape=evals" });
    await call("GET", "/admin/recordings/export", { query: "?shape=odd", status: 400 });
    await call("GET", "/admin/datasets");
    const line = { messages: [{ role: "user", content: "Hi" }] };
    await call("POST", "/admin/datasets", { query: "?name=set", body: line, status: 201 });
    await call("POST", "/admin/datasets", { query: "?name=", body: line, status: 400 });
    await call("DELETE", "/admin/recordings", { query: "?dataset=set" });
    await call("DELETE", "/admin/recordings", { query: "?text=remember" });
    await call("DELETE", "/admin/recordings", { status: 400 });
    await call("PATCH", "/admin/config/recording", { body: { enabled: false } });
  });

  test("GET /admin/files", async () => {
    await call("GET", "/admin/files");
  });

  test("GET /admin/health", async () => {
    await call("GET", "/admin/health");
  });

  for (const path of ["/admin/stats", "/admin/stats/models", "/admin/stats/backends"]) {
    test(`GET ${path}`, async () => {
      const { overall, models, backends } = await call("GET", path);
      for (const counted of [overall, models, backends]) expect(counted).not.toEqual([]);
      await call("GET", path, { query: "?window=30m" });
      await call("GET", path, { query: "?window=31m", status: 400 });
    });
  }

  test("GET /admin/stats/costs", async () => {
    const { keys } = await call("GET", "/admin/stats/costs");
    expect(keys).not.toEqual([]);
  });

  test("POST /admin/stats/reset", async () => {
    await call("POST", "/admin/stats/reset");
  });

  test("GET /admin/metrics/history", async () => {
    for (const metric of ["signalbox_requests_total", "gen_ai_server_request_duration_seconds"]) {
      await waitFor(`samples of ${metric}`, async () => {
        const { row_count } = await call("GET", "/admin/metrics/history", { query: `?metric=${metric}&limit=50` });
        return (row_count as number) > 0;
      });
    }
    await call("GET", "/admin/metrics/history", { query: "?metric=no_such_metric" });
    await call("GET", "/admin/metrics/history", { status: 400 });
  });

  test("GET /admin/metrics/series", async () => {
    for (const metric of [
      "signalbox_requests_total",
      "signalbox_uptime_seconds",
      "gen_ai_server_request_duration_seconds",
    ]) {
      const { series } = await call("GET", "/admin/metrics/series", { query: `?metric=${metric}&step=1` });
      expect((series as unknown[]).length).toBeGreaterThan(0);
    }
    await call("GET", "/admin/metrics/series", { query: "?metric=no_such_metric" });
    await call("GET", "/admin/metrics/series", { status: 400 });
  });

  test("GET /metrics", async () => {
    expect(await call<string>("GET", "/metrics")).toContain("# TYPE ");
  });

  test("errors", async () => {
    const { errors } = await call<{ errors: { request_id: string }[] }>("GET", "/admin/errors/recent");
    expect(errors.length).toBeGreaterThan(0);
    await call("GET", "/admin/errors/recent", { query: "?limit=0", status: 400 });
    await call("GET", "/admin/errors/stats");
    await call("GET", "/admin/errors/{request_id}", { parameters: { request_id: errors[0]?.request_id ?? "" } });
    await call("GET", "/admin/errors/{request_id}", { parameters: { request_id: "none" }, status: 404 });
  });

  test("POST /admin/debug/error", async () => {
    await call("POST", "/admin/debug/error", { body: { type: "timeout", backend: "engine" } });
    for (const body of [{}, { type: "timeout" }, { type: "status_200", backend: "engine" }]) {
      await call("POST", "/admin/debug/error", { body, invalidBody: true, status: 400 });
    }
    await call("POST", "/admin/debug/error", { body: { type: "status_503", backend: "no_such" }, status: 404 });
  });

  test("GET /admin/usage", async () => {
    for (const by of ["key", "user", "organization", "model", "backend", "day", "day,model"]) {
      await call("GET", "/admin/usage", { query: `?by=${by}&window=30d` });
    }
    expect(await call<string>("GET", "/admin/usage", { query: "?format=csv" })).toStartWith("key_id,requests,");
    await call("GET", "/admin/usage", { query: "?by=hour", status: 400 });
  });

  test("GET /admin/events", async () => {
    called.add("GET /admin/events");
    const { content } = checks.response(checks.operation("GET", "/admin/events"), 200);
    const schema = content?.["text/event-stream"]?.["x-event-data"] ?? {};
    const follower = await EventFollower.open(gateway);
    await gateway.chat({ model: "demo", messages: MESSAGES });
    await call("PATCH", "/admin/config/logging", { body: { level: "debug" } });
    for (const name of ["request", "config"]) await follower.next(name, ({ event }) => event === name);
    for (const { data } of follower.events)
      expect({ data, problems: checks.problems(schema, data) }).toEqual({ data, problems: [] });
    follower.leave();
  });

  test("/dashboard and its files", async () => {
    for (const operation of ["GET /dashboard", "GET /dashboard/{asset}"]) called.add(operation);
    const described = (path: string) =>
      Object.keys(checks.response(checks.operation("GET", path), 200).content ?? {}).toSorted();
    const typeOf = (answer: Response) => answer.headers.get("content-type")?.split(";")[0] as string;
    const page = await gateway.fetch("/dashboard");
    expect([typeOf(page)]).toEqual(described("/dashboard"));
    const names = [...(await page.text()).matchAll(/"dashboard\/([\w-]+\.(?:js|css))"/g)].map(([, name]) => name);
    const types = await Promise.all(names.map(async (name) => typeOf(await gateway.fetch(`/dashboard/${name}`))));
    expect([...new Set(types)].toSorted()).toEqual(described("/dashboard/{asset}"));
  });

  test("/admin/session", async () => {
    await call("POST", "/admin/session", { body: {} });
    await call("POST", "/admin/session", { body: { pin: 1 }, invalidBody: true, status: 400 });
    await call("GET", "/admin/session");
    await call("DELETE", "/admin/session");
  });

  test("GET /admin/stats/costs", async () => {
    await call("GET", "/admin/stats/costs");
    for (const by of ["key", "user", "organization", "model", "backend", "day"]) {
      await call("GET", "/admin/stats/costs", { query: `?by=${by}&window=30d` });
    }
    await call("GET", "/admin/stats/costs", { query: "?by=hour", status: 400 });
  });

  test("GET /admin/requests", async () => {
    await call("GET", "/admin/requests");
    await call("GET", "/admin/requests", { query: "?model=demo&status=2xx&limit=1" });
    await call("GET", "/admin/requests", { query: "?sort=duration&limit=1" });
    await call("GET", "/admin/requests", { query: "?limit=0", status: 400 });
  });

  test.each(["/admin/requests/groups", "/admin/errors/groups"] as const)("GET %s", async (path) => {
    await call("GET", path);
    await call("GET", path, { query: "?by=status,code,outcome,model,backend,key,user,organization,client" });
    await call("GET", path, { query: "?by=color", status: 400 });
  });

  test("GET /admin/requests/{request_id}", async () => {
    const from = await bed.gateway({
      config: {
        backends: [
          { name: "demo", type: "demo" },
          { name: "first", type: "vllm", url: failing.url },
          { name: "second", type: "vllm", url: failing.url },
        ],
        retry: { max_attempts: 3, base_delay: "1ms" },
        fallback: { enabled: true, fallback_chains: { failing: ["demo"] } },
        response_cache: { enabled: true },
      },
    });
    const path = "/admin/requests/{request_id}";
    const kinds = new Set<string>();
    const decisions = new Set<string | undefined>();
    const chat = { messages: MESSAGES, temperature: 0 };
    for (const body of [
      { ...chat, model: "failing" },
      { ...chat, model: "demo" },
      { ...chat, model: "demo" },
      { ...chat, model: "demo", temperature: 1 },
      { ...chat, model: "nobody-has-it" },
    ]) {
      const response = await from.post("/v1/chat/completions", body);
      const request_id = response.headers.get("x-request-id") ?? "";
      await response.text();
      const story = await call<{ steps: { kind: string }[]; cache: { decision: string } | null }>("GET", path, {
        from,
        parameters: { request_id },
      });
      for (const { kind } of story.steps) kinds.add(kind);
      decisions.add(story.cache?.decision);
    }
    expect([...kinds].sort()).toEqual(["attempt", "fallback", "refused", "wait"]);
    expect([...decisions]).toEqual(expect.arrayContaining(["MISS", "HIT", "BYPASS"]));
    await call("GET", path, { parameters: { request_id: "none" }, status: 404 });
  });
});

describe("the configuration", () => {
  for (const path of [
    "/admin/config",
    "/admin/config/full",
    "/admin/config/sections",
    "/admin/config/schema",
    "/admin/config/hot-reload-status",
    "/admin/config/history",
  ]) {
    test(`GET ${path}`, async () => {
      await call("GET", path);
    });
  }

  test("every section matches its schema", async () => {
    const { sections, extensions = [] } = await call<Record<string, (string | { name: string })[]>>(
      "GET",
      "/admin/config/sections",
    );
    const names = [...(sections ?? []), ...extensions].map((entry) => (typeof entry === "string" ? entry : entry.name));
    expect(names.length).toBeGreaterThan(15);
    const query = "?dry_run=true";
    for (const section of names) {
      const path = `/admin/config/${section}`;
      const { config } = await call<{ config: unknown }>("GET", path);
      await call("PUT", path, { body: { config }, query });
      await call("PATCH", path, { body: Array.isArray(config) ? config : {}, query });
    }
    for (const method of ["GET", "PUT", "PATCH"]) {
      const body = method === "GET" ? {} : { body: "{}" };
      expect((await gateway.fetch("/admin/config/no_such", { method, ...body })).status).toBe(404);
    }
  });

  test("changes of a section", async () => {
    const path = "/admin/config/retry";
    await call("PUT", path, { body: { max_attempts: 2 } });
    await call("PUT", path, { body: { config: { max_attempts: 3 } } });
    await call("PUT", path, { body: { max_attempts: 4 }, query: "?dry_run=true" });
    await call("PUT", path, { body: { config: { max_attempts: 4 }, version: 1 }, status: 409 });
    await call("GET", path, { query: "?include_sensitive=true", status: 403 });
    await call("PUT", path, { body: { max_attempts: -1 }, invalidBody: true, status: 400 });
    await call("PATCH", path, { body: { base_delay: "50ms" } });
    await call("PATCH", path, { body: { base_delay: 7 }, invalidBody: true, status: 400 });
    await call("PATCH", path, {
      body: { base_delay: "60ms" },
      headers: { "If-Match": "1" },
      status: 409,
    });
  });

  test("staged changes", async () => {
    await call("POST", "/admin/config/apply", { body: {}, status: 400 });
    await call("PATCH", "/admin/config/retry", {
      query: "?apply=false",
      body: { base_delay: "70ms" },
    });
    await call("GET", "/admin/config/staged");
    await call("POST", "/admin/config/apply", { body: { sections: ["retry"], dry_run: true } });
    await call("POST", "/admin/config/apply", { body: { sections: ["retry"] } });
    await call("DELETE", "/admin/config/staged");
    await call("DELETE", "/admin/config/staged", { query: "?section=no_such", status: 404 });
  });

  test("POST /admin/config/validate", async () => {
    const path = "/admin/config/validate";
    await call("POST", path, { body: { section: "retry", config: { max_attempts: 2 } } });
    await call("POST", path, { body: { section: "retry", config: { max_attempts: -2 } } });
    await call("POST", path, { body: { section: "retry" }, invalidBody: true, status: 400 });
  });

  test("export and import", async () => {
    for (const format of ["yaml", "json", "toml"]) await call("POST", "/admin/config/export", { body: { format } });
    await call("POST", "/admin/config/export", { body: { include_sensitive: true }, status: 403 });
    await call("POST", "/admin/config/export", { body: { format: "xml" }, invalidBody: true, status: 400 });
    const path = "/admin/config/import";
    const content = "retry:\n  max_attempts: 4\n";
    await call("POST", path, { body: { format: "yaml", content, dry_run: true } });
    await call("POST", path, { body: { format: "yaml", content: "retry: 1\n", dry_run: true } });
    await call("POST", path, { body: { format: "yaml", content, apply: false } });
    await call("POST", path, { body: { format: "yaml", content } });
    await call("POST", path, { body: { format: "yaml", content: "retry:\n  max_attempts: -4\n" }, status: 422 });
    await call("POST", path, { body: { format: "json", content: "{" }, status: 400 });
  });

  test("rollback", async () => {
    const path = "/admin/config/rollback/{version}";
    await call("POST", path, { parameters: { version: "1" }, body: { dry_run: true } });
    await call("POST", path, { parameters: { version: "1" }, body: {} });
    await call("POST", path, { parameters: { version: "999" }, body: {}, status: 404 });
    await call("GET", "/admin/config/history", { query: "?limit=2&offset=1" });
    await call("GET", "/admin/config/history", { query: "?limit=-1", status: 400 });
    await call("GET", "/admin/config/history/{version}", { parameters: { version: "1" } });
    await call("GET", "/admin/config/history/{version}", { parameters: { version: "999" }, status: 404 });
    await call("GET", "/admin/config/history/{version}", { parameters: { version: "one" }, status: 400 });
  });

  test("prompt files", async () => {
    const path = "/admin/config/prompts/{path}";
    await call("GET", "/admin/config/prompts");
    await call("GET", path, { parameters: { path: "terse.md" } });
    await call("PUT", path, { parameters: { path: "terse.md" }, body: { content: "Be brief.\n" } });
    await call("PUT", path, { parameters: { path: "terse.md" }, body: {}, invalidBody: true, status: 400 });
    await call("GET", path, { parameters: { path: "none.md" }, status: 404 });
    await call("PUT", path, { parameters: { path: "gone.md" }, body: { content: "Be gone.\n" } });
    await call("DELETE", path, { parameters: { path: "gone.md" } });
    await call("DELETE", path, { parameters: { path: "gone.md" }, status: 404 });
    await call("DELETE", path, { parameters: { path: "terse.md" }, status: 409 });
    await call("POST", "/admin/config/prompts/reload");
  });
});

describe("backends", () => {
  test("the life of a backend", async () => {
    const parameters = { name: "another" };
    const body = { name: "another", type: "vllm", url: engine.url };
    await call("POST", "/admin/backends", { body, query: "?dry_run=true" });
    await call("POST", "/admin/backends", { body, status: 201 });
    await call("POST", "/admin/backends", { body, status: 409 });
    await call("POST", "/admin/backends", { body: { ...body, name: "a b" }, invalidBody: true, status: 400 });
    await call("GET", "/admin/backends/{name}", { parameters });
    await waitFor("it is checked", async () => {
      const { health_status } = await call("GET", "/admin/backends/{name}", { parameters });
      return health_status === "healthy";
    });
    await call("GET", "/admin/backends/{name}", { parameters: { name: "closed" } });
    await call("PUT", "/admin/backends/{name}", { parameters, body: { enabled: false } });
    await call("PUT", "/admin/backends/{name}/weight", { parameters, body: { weight: 5 } });
    await call("PUT", "/admin/backends/{name}/weight", {
      parameters,
      body: { weight: 101 },
      invalidBody: true,
      status: 400,
    });
    await call("PUT", "/admin/backends/{name}/models", { parameters, body: { models: ["x"] } });
    await call("PUT", "/admin/backends/{name}/models", { parameters, body: { models: ["y"], append: true } });
    await call("DELETE", "/admin/backends/{name}", { parameters });
    await call("POST", "/admin/backends/{name}/circuit/reset", { parameters: { name: "demo" } });
    await call("POST", "/admin/backends/{name}/circuit/reset", { parameters, status: 404 });
    await call("DELETE", "/admin/backends/{name}", { parameters, status: 404 });
    await call("GET", "/admin/backends/{name}", { parameters, status: 404 });
  });
});

test("without an OpenID provider nothing leads to one", async () => {
  await call("GET", "/admin/oidc/sign-in", { status: 404 });
  await call("GET", "/admin/oidc/callback", { status: 404 });
});

test("a query parameter that is not described is refused by every admin endpoint, and by no public one", async () => {
  const operations = operationsOf(checks.document);
  // What comes back from an OpenID provider has parameters of that.
  const admin = operations.filter(({ path }) => path.startsWith("/admin/") && path !== "/admin/oidc/callback");
  expect(admin.length).toBeGreaterThan(40);
  for (const { method, path, parameters = [] } of admin) {
    const ask = async (query: string) => {
      const response = await gateway.fetch(`${samplePath(path)}?${query}`, { method });
      const isOfLines = response.headers.get("content-type") === "application/jsonl";
      return (isOfLines ? {} : await response.json()) as { error?: { message: string; param?: string } };
    };
    const { error } = await ask("bogus=1");
    expect({ method, path, param: error?.param }).toEqual({ method, path, param: "bogus" });
    // Values that make no sense, so that nothing is changed.
    for (const { name } of parameters.filter((parameter) => parameter.in === "query")) {
      const { error } = await ask(`${name}=%00`);
      expect({ method, path, name, message: error?.message }).not.toMatchObject({
        message: expect.stringContaining("no query parameter"),
      });
    }
  }
  expect((await gateway.fetch("/v1/models?beta=true")).status).toBe(200);
  const misspelt = await (await gateway.fetch("/admin/stats?windwo=1h")).json();
  expect(misspelt).toMatchObject({ error: { param: "windwo", message: expect.stringContaining("'window'") } });
});

afterAll(() => {
  if (called.size === 0) return; // the first error says more
  const idle = operationsOf(checks.document)
    .map(({ method, path }) => `${method} ${path}`)
    .filter((operation) => !called.has(operation));
  expect(idle).toEqual([]);
});

describe("keys", () => {
  test("the life of a key", async () => {
    const parameters = { id: "another" };
    const body = { id: "another", scopes: ["read"], models: ["m*"], expires_at: "2999-01-01T00:00:00Z" };
    await call("POST", "/admin/keys", { body, query: "?dry_run=true" });
    await call("POST", "/admin/keys", { body, status: 201 });
    await call("POST", "/admin/keys", { body, status: 409 });
    await call("POST", "/admin/keys", { body: { id: "x", scopes: ["all"] }, invalidBody: true, status: 400 });
    await call("GET", "/admin/keys");
    await call("GET", "/admin/keys/{id}", { parameters });
    await call("PUT", "/admin/keys/{id}", { parameters, body: { rate_limit: 5, models: null } });
    await call("POST", "/admin/keys/{id}/rotate", { parameters, body: { overlap: "5m" } });
    await call("POST", "/admin/keys/{id}/rotate", { parameters });
    await call("POST", "/admin/keys/{id}/rotate", { parameters, body: { until: 1 }, invalidBody: true, status: 400 });
    await call("DELETE", "/admin/keys/{id}", { parameters });
    await call("DELETE", "/admin/keys/{id}", { parameters, status: 404 });
    await call("GET", "/admin/keys/{id}", { parameters, status: 404 });
  });
});

describe("the queue", () => {
  test("is read and changed", async () => {
    await call("GET", "/admin/queue");
    const body = { enabled: true, classes: { batch: { weight: 2, max_wait: "12h" } } };
    await call("PATCH", "/admin/queue", { body, query: "?dry_run=true" });
    await call("PATCH", "/admin/queue", { body });
    await call("PATCH", "/admin/queue", { body: { classes: { night: { weight: 1 } } }, status: 400 });
    await call("PATCH", "/admin/queue", { body: { classes: 1 }, invalidBody: true, status: 400 });
    await call("PATCH", "/admin/queue", { body: { enabled: false } });
  });
});

describe("routes", () => {
  const parameters = { name: "smart" };

  test("are added, read, changed and removed", async () => {
    const body = {
      name: "smart",
      targets: [
        { model: "m", weight: 9 },
        { model: "m", backend: "engine" },
      ],
    };
    await call("POST", "/admin/routes", { body, query: "?dry_run=true" });
    await call("POST", "/admin/routes", { body, status: 201 });
    await call("POST", "/admin/routes", { body, status: 409 });
    await call("POST", "/admin/routes", { body: { name: 1 }, invalidBody: true, status: 400 });
    await call("GET", "/admin/routes");
    await call("GET", "/admin/routes/{name}", { parameters });
    await call("PUT", "/admin/routes/{name}", { parameters, body: { sticky: "none" } });
    await call("DELETE", "/admin/routes/{name}", { parameters });
    await call("DELETE", "/admin/routes/{name}", { parameters, status: 404 });
    await call("GET", "/admin/routes/{name}", { parameters, status: 404 });
  });
});

describe("organizations", () => {
  test("the life of an organization", async () => {
    const parameters = { id: "sales" };
    const body = { id: "sales", name: "Sales", budget: { cost: 5, window: "month" }, token_limit: 100 };
    await call("POST", "/admin/organizations", { body, query: "?dry_run=true" });
    await call("POST", "/admin/organizations", { body, status: 201 });
    await call("POST", "/admin/organizations", { body, status: 409 });
    await call("POST", "/admin/organizations", { body: { id: 1 }, invalidBody: true, status: 400 });
    await call("GET", "/admin/organizations");
    await call("GET", "/admin/organizations/{id}", { parameters });
    await call("PUT", "/admin/organizations/{id}", { parameters, body: { rate_limit: 7, models: ["m"] } });
    await call("DELETE", "/admin/organizations/{id}", { parameters });
    await call("DELETE", "/admin/organizations/{id}", { parameters, status: 404 });
    await call("GET", "/admin/organizations/{id}", { parameters, status: 404 });
  });
});

test("the audit", async () => {
  await call("GET", "/admin/audit", { query: "?limit=5&outcome=done" });
  await call("GET", "/admin/audit", { query: "?limit=0", status: 400 });
});

describe("notifications", () => {
  test("the life of a receiver", async () => {
    const parameters = { name: "ops" };
    // A name that is never found.
    const body = { name: "ops", url: "https://receiver.invalid/sekret", secret: "sekret-1", events: ["budget"] };
    await call("POST", "/admin/notifications", { body, query: "?dry_run=true" });
    await call("POST", "/admin/notifications", { body, status: 201 });
    await call("POST", "/admin/notifications", { body, status: 409 });
    await call("POST", "/admin/notifications", { body: { name: "x", url: "ftp:" }, invalidBody: true, status: 400 });
    await call("GET", "/admin/notifications");
    await call("PUT", "/admin/notifications/{name}", { parameters, body: { format: "slack" } });
    await call("POST", "/admin/notifications/{name}/test", { parameters: { name: "other" }, status: 404 });
    await call("POST", "/admin/notifications/{name}/test", { parameters });
    await call("DELETE", "/admin/notifications/{name}", { parameters });
    await call("DELETE", "/admin/notifications/{name}", { parameters, status: 404 });
  });
});

describe("budgets", () => {
  test("the life of a budget", async () => {
    const parameters = { id: "small" };
    const body = { id: "small", match: { model: "m*" }, limit: { cost: 5, requests: 100 }, window: "month" };
    await call("POST", "/admin/budgets", { body, query: "?dry_run=true" });
    await call("POST", "/admin/budgets", { body, status: 201 });
    await call("POST", "/admin/budgets", { body, status: 409 });
    await call("POST", "/admin/budgets", { body: { id: "x", limit: { cost: -1 } }, invalidBody: true, status: 400 });
    await call("GET", "/admin/budgets");
    await call("GET", "/admin/budgets/{id}", { parameters });
    await call("PUT", "/admin/budgets/{id}", { parameters, body: { limit: { cost: 7 }, per: "key" } });
    await call("GET", "/admin/budgets/{id}/usage", { parameters });
    await call("GET", "/admin/budgets/{id}/usage", { parameters: { id: "other" }, status: 404 });
    await call("POST", "/admin/budgets/{id}/reset", { parameters, body: { reason: "the bill was paid" } });
    await call("POST", "/admin/budgets/{id}/reset", { parameters, body: { until: 1 }, invalidBody: true, status: 400 });
    await call("DELETE", "/admin/budgets/{id}", { parameters });
    await call("DELETE", "/admin/budgets/{id}", { parameters, status: 404 });
    await call("GET", "/admin/budgets/{id}", { parameters, status: 404 });
  });
});
