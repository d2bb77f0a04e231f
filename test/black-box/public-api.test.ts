// The public API in good order: bytes pass untouched in both directions, model lists, health, methods and paths.

import { beforeAll, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { chat, completion, embeddings } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const first = bed.backend({ models: ["m", "org/model-1", "shared", "a model: with spaces"] });
const second = bed.backend({ models: ["shared", "only-second"] });
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "first", type: "vllm", url: first.url },
        { name: "second", type: "generic", url: second.url },
      ],
    },
  });
});

beforeEach(() => {
  for (const backend of [first, second]) backend.reset(chat("hello"));
});

const ODD_REQUEST = `{
\t"zeta" : [1.0, 1e2, -0, 9007199254740993, 123456789012345678901234567890],
  "model":"m",   "messages": [ {"role":"user","content":"h\\u00e9 \\ud83d\\ude00 \\/ 語", "extra": {"b":1,"a":2}} ],
  "seed": 18446744073709551615, "alpha":null, "temperature": null, "stop": null,
  "metadata": {"nested": {"deep": [[], {}, ""]}}
}\r\n`;

const ODD_ANSWER = `{ "id":"x",  "object":"chat.completion","created":1,"model":"m",
  "choices":[{"index":0,"message":{"role":"assistant","content":"h\\u00e9 語"},"finish_reason":"stop"}],
  "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "price": 0.10000000000000000001},
  "timings": {"big": 9007199254740993}, "unknown": [1.0, 1e2] }\n`;

test("a chat request reaches the backend byte for byte: unknown fields, key order, white space, large numbers", async () => {
  const response = await gateway.post("/v1/chat/completions", ODD_REQUEST);
  expect(response.status).toBe(200);
  await response.text();
  expect(first.lastRequest.method).toBe("POST");
  expect(first.lastRequest.path).toBe("/v1/chat/completions");
  expect(first.lastRequest.text).toBe(ODD_REQUEST);
  expect(first.lastRequest.headers["content-type"]).toContain("application/json");
});

test("a chat answer reaches the client byte for byte", async () => {
  first.reset({ body: ODD_ANSWER });
  const response = await gateway.chat();
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("application/json");
  expect(await response.text()).toBe(ODD_ANSWER);
});

test("a chunked answer of a backend reaches the client byte for byte", async () => {
  first.reset({ body: ODD_ANSWER, framing: "chunked", chunkBytes: 50, betweenChunksMs: 1 });
  expect(await (await gateway.chat()).text()).toBe(ODD_ANSWER);
});

test("a chunked request is put together and sent on", async () => {
  const connection = await RawConnection.open(gateway.port);
  connection.write(
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  const body = Buffer.from(ODD_REQUEST);
  for (let start = 0; start < body.length; start += 40) {
    const piece = body.subarray(start, start + 40);
    connection.write(`${piece.length.toString(16)}\r\n`);
    connection.write(piece);
    connection.write("\r\n");
    await Bun.sleep(1);
  }
  connection.write("0\r\n\r\n");
  expect((await connection.response()).status).toBe(200);
  expect(first.lastRequest.text).toBe(ODD_REQUEST);
  connection.close();
});

test("text completions and embeddings pass byte for byte", async () => {
  for (const [path, body, answer] of [
    ["/v1/completions", '{ "model":"m", "prompt" : ["a", "b"], "logit_bias": {"5": -1.0} }', completion("text")],
    ["/v1/embeddings", '{"model":"m","input":[[1,2,3]], "dimensions": 8, "x": 9007199254740993}', embeddings([[1, 2]])],
  ] as const) {
    first.reset(answer);
    const response = await gateway.post(path, body);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(answer.body as string);
    expect(first.lastRequest.path).toBe(path);
    expect(first.lastRequest.text).toBe(body);
  }
});

test("a query behind the path changes nothing", async () => {
  expect((await gateway.post("/v1/chat/completions?beta=true", ODD_REQUEST)).status).toBe(200);
  expect(first.lastRequest.path).toBe("/v1/chat/completions");
});

test("what a client sends to the gateway for itself does not reach the backend", async () => {
  await (
    await gateway.chat(
      {},
      { headers: { Authorization: "Bearer sk-sekret-client", Cookie: "session=sekret", "X-Api-Key": "sekret-key" } },
    )
  ).text();
  expect(JSON.stringify(first.lastRequest.rawHeaders)).not.toContain("sekret");
  expect(first.lastRequest.headers.host).toBe(`127.0.0.1:${first.port}`);
});

test("a large prompt and a large answer pass whole", async () => {
  const content = "word ".repeat(400_000);
  const answer = chat("x".repeat(3_000_000));
  first.reset(answer);
  const response = await gateway.chat({ messages: [{ role: "user", content }] });
  expect(await response.text()).toBe(answer.body as string);
  expect(first.lastRequest.json<{ messages: { content: string }[] }>().messages[0]?.content).toBe(content);
});

test("GET /v1/models lists every model once, with the fields of the contract", async () => {
  const response = await gateway.fetch("/v1/models");
  expect(response.status).toBe(200);
  const list = (await response.json()) as { object: string; data: Record<string, unknown>[] };
  expect(list.object).toBe("list");
  const ids = list.data.map((model) => model.id as string);
  expect([...ids].sort()).toEqual(["a model: with spaces", "m", "only-second", "org/model-1", "shared"]);
  for (const model of list.data) {
    expect(model.object).toBe("model");
    expect(Number.isInteger(model.created)).toBe(true);
    expect(model.permission).toEqual([]);
    expect(model.root).toBe(model.id as string);
    expect(model.parent).toBe(null);
  }
  expect(list.data.find((model) => model.id === "m")?.owned_by).toBe("vllm");
  expect(list.data.find((model) => model.id === "only-second")?.owned_by).toBe("somebody");
});

test("GET /v1/models/{id} finds ids with slashes and spaces, encoded and not", async () => {
  for (const path of ["org/model-1", "org%2Fmodel-1", "org%2fmodel-1", "a%20model%3A%20with%20spaces", "m"]) {
    const response = await gateway.fetch(`/v1/models/${path}`);
    expect(response.status).toBe(200);
    const model = (await response.json()) as Record<string, unknown>;
    expect(model.id).toBe(decodeURIComponent(path));
    expect(model.object).toBe("model");
    expect(model.available).toBe(true);
    expect(Object.keys(model).sort()).toEqual(["available", "created", "id", "object", "owned_by"]);
  }
});

test("GET /v1/models/{id} answers 404 for an unknown model, also for broken percent signs", async () => {
  for (const path of ["nothing", "org%2Fnothing", "%zz"]) {
    const error = await expectError(await gateway.fetch(`/v1/models/${path}`), [404, 400]);
    if (path !== "%zz") expect(error.type).toBe("model_not_found");
  }
});

test("a chat with an unknown model is 404 model_not_found", async () => {
  const error = await expectError(await gateway.chat({ model: "nothing" }), 404);
  expect(error.type).toBe("model_not_found");
  expect(error.message).toContain("nothing");
  expect(first.requests.length + second.requests.length).toBe(0);
});

test("a model of one backend is answered by that backend, and the header says so", async () => {
  const response = await gateway.chat({ model: "only-second" });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-signalbox-backend")).toBe("second");
  expect(second.requests).toHaveLength(1);
});

test("GET /health and /healthz say who answers; /readyz says whether somebody serves", async () => {
  for (const path of ["/health", "/healthz"]) {
    const response = await gateway.fetch(path);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ service: "signalbox", status: expect.any(String) });
  }
  expect((await gateway.fetch("/readyz")).status).toBe(200);
});

test("HEAD is answered like GET, without a body", async () => {
  for (const path of ["/health", "/v1/models", "/readyz"]) {
    const response = await gateway.fetch(path, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  }
  expect((await gateway.fetch("/nowhere", { method: "HEAD" })).status).toBe(404);
});

test("a wrong method is 405 with Allow", async () => {
  for (const [method, path, allowed] of [
    ["GET", "/v1/chat/completions", "POST"],
    ["PUT", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/models", "GET"],
    ["POST", "/v1/models/m", "GET"],
    ["POST", "/health", "GET"],
    ["GET", "/v1/embeddings", "POST"],
    ["PATCH", "/v1/completions", "POST"],
  ] as const) {
    const response = await gateway.fetch(path, { method });
    await expectError(response, 405);
    expect((response.headers.get("allow") ?? "").split(", ")).toContain(allowed);
  }
});

test("an unknown path is 404 in the standard shape", async () => {
  for (const path of ["/v1", "/v1/nothing", "/v2/chat/completions", "/admin/nothing", "/v1/chat/completions/x"]) {
    await expectError(await gateway.fetch(path), 404);
    await expectError(await gateway.post(path, {}), 404);
  }
});

test("a path that other servers have says that it is not in this release", async () => {
  for (const path of ["/v1/assistants", "/v1/videos", "/v1/responses/resp_1", "/v1/threads"]) {
    for (const response of [await gateway.fetch(path), await gateway.post(path, {})]) {
      expect((await expectError(response, 404)).message).toBe(`${path} is not in this release.`);
    }
  }
});

test("GET / says what this is: a page for browsers, JSON for others", async () => {
  const browser = { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const page = await gateway.fetch("/", { headers: browser });
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  expect(page.headers.get("vary")).toBe("Accept");
  expect(await page.text()).toContain("<h1>Signalbox");
  for (const path of ["/", "/anthropic"]) {
    const response = await gateway.fetch(path);
    expect(await response.json()).toMatchObject({ service: "signalbox", links: { openapi: "/openapi.json" } });
    const head = await gateway.fetch(path, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect((await gateway.post(path, {})).status).toBe(405);
  }
  const icon = await gateway.fetch("/favicon.ico");
  expect([icon.status, icon.headers.get("content-type")]).toEqual([200, "image/svg+xml"]);
});

test("model ids with a tag :latest are found with and without it", async () => {
  const tagged = bed.backend({ models: ["llama3:latest"] });
  await using other = await startGateway({ config: { backends: [{ name: "o", type: "ollama", url: tagged.url }] } });
  expect((await other.chat({ model: "llama3" })).status).toBe(200);
  expect((await other.chat({ model: "llama3:latest" })).status).toBe(200);
});

test("with every backend down the list is 503, one model is unavailable, and a chat is 503", async () => {
  const gone = bed.backend();
  gone.stop();
  await using other = await startGateway({ config: { backends: [{ name: "gone", url: gone.url, models: ["m"] }] } });
  await expectError(await other.fetch("/v1/models"), 503);
  await expectError(await other.chat(), 503);
  expect((await other.fetch("/readyz")).status).toBe(503);
  expect((await other.fetch("/health")).status).toBe(200);
  const model = (await (await other.fetch("/v1/models/m")).json()) as { available: boolean };
  expect(model.available).toBe(false);
  await expectError(await other.fetch("/v1/models/other"), 404);
});

test("without any backend the list is empty and a chat is 503 No backends available", async () => {
  await using other = await startGateway({ config: { backends: [] } });
  const list = await other.fetch("/v1/models");
  expect(list.status).toBe(200);
  expect(await list.json()).toEqual({ object: "list", data: [] });
  const error = await expectError(await other.chat(), 503);
  expect(error.message).toBe("No backends available");
});

test("IPv6 addresses can be listened on", async () => {
  await using other = await startGatewayProcess({
    config: { server: { bind_address: ["127.0.0.1:0", "[::1]:0"] }, backends: [{ name: "d", type: "demo" }] },
  });
  const url = /http:\/\/\[::1\]:\d+/.exec(other.printed.stdout)?.[0];
  if (url === undefined) throw new Error(`the banner does not name the address:\n${other.printed.stdout}`);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect((await fetch(`${url}/admin/backends`)).status).toBe(200);
});

test("several addresses can be listened on, a unix socket beside the configuration among them", async () => {
  const config = {
    server: { bind_address: ["127.0.0.1:0", "unix:gateway.sock"] },
    backends: [{ name: "d", type: "demo" }],
  };
  await using other = await startGateway({ config });
  const socketPath = join(other.folder, "gateway.sock");
  expect((await other.fetch("/health")).status).toBe(200);
  expect((await fetch("http://localhost/health", { unix: socketPath })).status).toBe(200);
  expect((await fetch("http://localhost/admin/backends", { unix: socketPath })).status).toBe(200);
  await other.stop();
  expect(existsSync(socketPath)).toBe(false);
});

test("a unix socket that a killed gateway left behind does not keep the next one from starting", async () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-socket-"));
  const socketPath = join(folder, "gateway.sock");
  const config = {
    server: { bind_address: ["127.0.0.1:0", `unix:${socketPath}`] },
    backends: [{ name: "d", type: "demo" }],
  };
  try {
    await using killed = await startGatewayProcess({ config });
    await killed.stop("SIGKILL");
    expect(existsSync(socketPath)).toBe(true);
    await using next = await startGateway({ config });
    expect((await fetch("http://localhost/health", { unix: socketPath })).status).toBe(200);
    await next.stop();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
