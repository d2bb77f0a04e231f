// What bad input gets: a clear error in the standard shape that names the field, and the next request works.

import { afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { expectError, expectErrorBody } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }], timeouts: { request_body: "300ms" } },
  });
});

beforeEach(() => backend.reset(chat("hello")));

/** Whatever a test did, the next request works and nothing is left in a counter. */
afterEach(async () => {
  backend.reset(chat("hello"));
  const response = await gateway.chat();
  expect(response.status).toBe(200);
  expect(await response.text()).toBe(chat("hello").body as string);
  expect(backend.requests).toHaveLength(1);
  await gateway.waitUntilIdle();
});

const MEBIBYTE = 1024 * 1024;
const message = { role: "user", content: "hi" };
const valid = { model: "m", messages: [message] };

test("a body that is no JSON object is 400", async () => {
  for (const body of ["", " ", "{", '{"model":', "[]", "[1]", "null", "5", '"text"', "true", "{'model':'m'}", "<x/>"]) {
    for (const path of ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"]) {
      const error = await expectError(await gateway.post(path, body), 400);
      expect(error.type).toBe("invalid_request_error");
    }
  }
  expect(backend.requests).toHaveLength(0);
});

test("missing fields, wrong types and numbers out of range are 400 and name the field", async () => {
  const cases: [path: string, body: Record<string, unknown>, param: string][] = [
    ["chat/completions", { messages: [message] }, "model"],
    ["chat/completions", { ...valid, model: null }, "model"],
    ["chat/completions", { ...valid, model: 5 }, "model"],
    ["chat/completions", { ...valid, model: "" }, "model"],
    ["chat/completions", { model: "m" }, "messages"],
    ["chat/completions", { ...valid, messages: "hi" }, "messages"],
    ["chat/completions", { ...valid, messages: {} }, "messages"],
    ["chat/completions", { ...valid, messages: [message, 5] }, "messages[1]"],
    ["chat/completions", { ...valid, messages: [{ content: "hi" }] }, "messages[0].role"],
    ["chat/completions", { ...valid, messages: [{ role: 5, content: "hi" }] }, "messages[0].role"],
    ["chat/completions", { ...valid, messages: [message, { role: "user", content: 5 }] }, "messages[1].content"],
    ["chat/completions", { ...valid, temperature: 2.1 }, "temperature"],
    ["chat/completions", { ...valid, temperature: -0.1 }, "temperature"],
    ["chat/completions", { ...valid, temperature: "hot" }, "temperature"],
    ["chat/completions", { ...valid, top_p: 1.5 }, "top_p"],
    ["chat/completions", { ...valid, top_p: -1 }, "top_p"],
    ["chat/completions", { ...valid, frequency_penalty: 2.5 }, "frequency_penalty"],
    ["chat/completions", { ...valid, presence_penalty: -2.5 }, "presence_penalty"],
    ["chat/completions", { ...valid, max_tokens: 1.5 }, "max_tokens"],
    ["chat/completions", { ...valid, max_tokens: "5" }, "max_tokens"],
    ["chat/completions", { ...valid, max_tokens: -1 }, "max_tokens"],
    ["chat/completions", { ...valid, n: 0 }, "n"],
    ["chat/completions", { ...valid, stream: "yes" }, "stream"],
    ["chat/completions", { ...valid, stream: 1 }, "stream"],
    ["chat/completions", { ...valid, stop: 5 }, "stop"],
    ["chat/completions", { ...valid, logit_bias: [] }, "logit_bias"],
    ["chat/completions", { ...valid, user: 5 }, "user"],
    ["chat/completions", { ...valid, tools: {} }, "tools"],
    ["completions", { model: "m" }, "prompt"],
    ["completions", { prompt: "x" }, "model"],
    ["completions", { model: "m", prompt: {} }, "prompt"],
    ["completions", { model: "m", prompt: "x", temperature: 3 }, "temperature"],
    ["embeddings", { model: "m" }, "input"],
    ["embeddings", { input: "x" }, "model"],
    ["embeddings", { model: "m", input: 5 }, "input"],
    ["embeddings", { model: "m", input: "x", dimensions: 0 }, "dimensions"],
  ];
  for (const [path, body, param] of cases) {
    const error = await expectError(await gateway.post(`/v1/${path}`, body), 400);
    expect({ body, param: error.param, type: error.type }).toEqual({ body, param, type: "invalid_request_error" });
    expect(error.message).toContain(param);
  }
  expect(backend.requests).toHaveLength(0);
});

test("the ends of every range, null for optional fields, and assistant turns without content are accepted", async () => {
  for (const more of [
    { temperature: 0, top_p: 0, frequency_penalty: -2, presence_penalty: -2, max_tokens: 1 },
    { temperature: 2, top_p: 1, frequency_penalty: 2, presence_penalty: 2 },
    { temperature: null, top_p: null, stop: null, stream: null, max_tokens: null, user: null, logit_bias: null },
    { stop: ["a", "b"], logit_bias: { "50256": -100 } },
    { messages: [message, { role: "assistant", content: null, tool_calls: [] }, { role: "tool", content: "x" }] },
    { messages: [{ role: "developer", content: [{ type: "text", text: "hi" }] }] },
    { reasoning_effort: "something-new", reasoning: { effort: "high" } },
  ]) {
    expect((await gateway.chat(more)).status).toBe(200);
  }
});

test("an error tells its request id in header and body", async () => {
  const response = await gateway.post("/v1/chat/completions", "{", { headers: { "X-Request-ID": "my-id-1" } });
  expect(response.headers.get("x-request-id")).toBe("my-id-1");
  expect(await response.text()).toContain("my-id-1");
});

test("very deep nesting is an answer, not a crash", async () => {
  const body = `{"model":"m","messages":${"[".repeat(300_000)}${"]".repeat(300_000)}}`;
  await expectError(await gateway.post("/v1/chat/completions", body), 400);
});

test("__proto__ and constructor as keys pass as ordinary fields", async () => {
  const body = `{"__proto__":{"model":"other"},"constructor":5,"model":"m","messages":[{"role":"user","content":"x"}]}`;
  expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
  expect(backend.lastRequest.text).toBe(body);
});

test("bytes that are no UTF-8 are an answer, not a crash", async () => {
  const connection = await RawConnection.open(gateway.port);
  const body = Buffer.concat([
    Buffer.from('{"model":"m","messages":[{"role":"user","content":"'),
    Buffer.from([0xff, 0xfe]),
  ]);
  connection.write(postBytes("/v1/chat/completions", "", { "Content-Length": String(body.length) }));
  connection.write(body);
  const response = await connection.response();
  expectErrorBody(response, response.text, 400);
  connection.close();
});

test("a body of 40 MB with Content-Length is 413", async () => {
  const connection = await RawConnection.open(gateway.port);
  const body = `{"model":"m","messages":[{"role":"user","content":"${"x".repeat(40 * MEBIBYTE)}"}]}`;
  connection.write(postBytes("/v1/chat/completions", body));
  const response = await connection.response();
  const error = expectErrorBody(response, response.text, 413);
  expect(error.message).toMatch(/32|MiB|MB|bytes/);
  connection.abort();
});

test("a chunked body of 40 MB is 413", async () => {
  // Without the short time limit for bodies: sender and reader share a process.
  await using patient = await bed.gateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  const connection = await RawConnection.open(patient.port);
  connection.write(
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  const piece = Buffer.alloc(MEBIBYTE, "x");
  for (let count = 0; count < 40 && !connection.isClosed; count++) {
    connection.write(`${piece.length.toString(16)}\r\n`);
    connection.write(piece);
    connection.write("\r\n");
    await Bun.sleep(1);
  }
  const response = await connection.response();
  expectErrorBody(response, response.text, 413);
  connection.abort();
});

test("embeddings take 40 MB, text completions do not take 9 MB", async () => {
  // Without the short time limit for bodies: sender and reader share a process.
  await using patient = await bed.gateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  const large = await patient.post("/v1/embeddings", { model: "m", input: "x".repeat(40 * MEBIBYTE) });
  expect(large.status).toBe(200);
  const connection = await RawConnection.open(patient.port);
  connection.write(postBytes("/v1/completions", `{"model":"m","prompt":"${"x".repeat(9 * MEBIBYTE)}"}`));
  const response = await connection.response();
  expectErrorBody(response, response.text, 413);
  connection.abort();
});

test("a flood of headers is refused", async () => {
  for (const flood of [
    Array.from({ length: 20_000 }, (_, index) => `X-Flood-${index}: ${"y".repeat(50)}\r\n`).join(""),
    `X-Long: ${"y".repeat(MEBIBYTE)}\r\n`,
  ]) {
    const connection = await RawConnection.open(gateway.port);
    connection.write(`GET /health HTTP/1.1\r\nHost: localhost\r\n${flood}\r\n`);
    const response = await connection.response();
    expect([400, 431]).toContain(response.status);
    connection.abort();
  }
  expect((await gateway.fetch("/health")).status).toBe(200);
});

test("something that is no HTTP is refused and closed", async () => {
  const connection = await RawConnection.open(gateway.port);
  connection.write("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not http\r\n\r\n");
  await within("the connection is closed", connection.closed);
});

test("half a body and then silence is 408", async () => {
  const connection = await RawConnection.open(gateway.port);
  const whole = postBytes("/v1/chat/completions", JSON.stringify(valid));
  connection.write(whole.subarray(0, whole.length - 20));
  const response = await connection.response();
  const error = expectErrorBody(response, response.text, 408);
  expect(error.message).not.toBe("");
  connection.abort();
});

test("a body that drips byte by byte is 408 as well", async () => {
  const connection = await RawConnection.open(gateway.port);
  const whole = postBytes("/v1/chat/completions", JSON.stringify({ ...valid, padding: "x".repeat(1_000) }));
  connection.write(whole.subarray(0, whole.length - 900));
  const answered = connection.response();
  let finished = false;
  void answered.then(() => {
    finished = true;
  });
  for (let index = whole.length - 900; index < whole.length - 1 && !finished && !connection.isClosed; index++) {
    connection.write(whole.subarray(index, index + 1));
    await Bun.sleep(10);
  }
  const response = await answered;
  expectErrorBody(response, response.text, 408);
  connection.abort();
});

test("half a chunked body and then silence is 408", async () => {
  const connection = await RawConnection.open(gateway.port);
  connection.write(
    'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"model":"m\r\n',
  );
  const response = await connection.response();
  expectErrorBody(response, response.text, 408);
  connection.abort();
});

test("a client that leaves in the middle of its body leaves nothing behind", async () => {
  for (const leave of ["abort", "close"] as const) {
    const connection = await RawConnection.open(gateway.port);
    const whole = postBytes("/v1/chat/completions", JSON.stringify(valid));
    connection.write(whole.subarray(0, whole.length - 5));
    await Bun.sleep(10);
    connection[leave]();
    await connection.closed;
  }
  expect(backend.requests).toHaveLength(0);
});

test("two requests on one connection without waiting are both answered, in order", async () => {
  const connection = await RawConnection.open(gateway.port);
  connection.write(
    Buffer.concat([postBytes("/v1/chat/completions", "{"), postBytes("/v1/chat/completions", JSON.stringify(valid))]),
  );
  const first = await connection.response();
  const second = await connection.response();
  expect([first.status, second.status]).toEqual([400, 200]);
  connection.close();
});

// Of the runtime's own: its parser closes a connection that goes on before it was answered, and no code of the gateway's is
// asked. What matters is that no answer reaches the wrong request, and that nothing is left behind.
test.each([
  ["another request", postBytes("/v1/chat/completions", JSON.stringify(valid)), ""],
  ["a line break", "\r\n", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"],
])("%s behind a body, before its answer, ends the connection and the request", async (_what, behind, received) => {
  const held = Promise.withResolvers<void>();
  backend.answer = { ...chat("late"), headersAfter: held.promise };
  const connection = await RawConnection.open(gateway.port);
  connection.write(postBytes("/v1/chat/completions", JSON.stringify(valid)));
  await waitFor("the first request is at the backend", () => backend.requests.length === 1);
  connection.write(behind);
  await within("the connection is closed", connection.closed);
  expect(connection.received.toString()).toBe(received);
  await within("the backend is told", backend.lastRequest.closed);
  held.resolve();
  expect(backend.requests).toHaveLength(1);
});

test("a line break behind a body whose answer was read costs no answer", async () => {
  const connection = await RawConnection.open(gateway.port);
  connection.write(postBytes("/v1/chat/completions", JSON.stringify(valid)));
  expect((await connection.response()).status).toBe(200);
  connection.write("\r\n");
  await within("the connection is closed", connection.closed);
  expect(connection.received.toString()).toStartWith("HTTP/1.1 400");
});

test("a request with two lengths is refused: proxies have disagreed about such requests", async () => {
  const body = JSON.stringify(valid);
  const smuggled = "GET /admin/backends HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const head of [
    `Content-Length: ${body.length}\r\nContent-Length: ${body.length + 5}\r\n`,
    `Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n`,
    "Content-Length: -5\r\n",
    "Content-Length: 12abc\r\n",
  ]) {
    const connection = await RawConnection.open(gateway.port);
    connection.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n${head}\r\n${body}${smuggled}`);
    const response = await connection.response();
    expect(response.status).toBeGreaterThanOrEqual(400);
    connection.abort();
  }
  expect(backend.requests).toHaveLength(0);
});

test("a client that asks before it sends its body (Expect: 100-continue) is answered", async () => {
  const connection = await RawConnection.open(gateway.port);
  const whole = postBytes("/v1/chat/completions", JSON.stringify(valid), { Expect: "100-continue" });
  const bodyStart = whole.indexOf("\r\n\r\n") + 4;
  connection.write(whole.subarray(0, bodyStart));
  await Bun.sleep(20);
  connection.write(whole.subarray(bodyStart));
  let response = await connection.response();
  if (response.status === 100) response = await connection.response();
  expect(response.status).toBe(200);
  connection.close();
});

test("a client of HTTP/1.0 and one that wants no keep-alive get their answer and the end of the connection", async () => {
  for (const [version, header] of [
    ["1.0", ""],
    ["1.1", "Connection: close\r\n"],
  ]) {
    const connection = await RawConnection.open(gateway.port);
    connection.write(`GET /health HTTP/${version}\r\nHost: localhost\r\n${header}\r\n`);
    const response = await connection.response();
    expect(response.status).toBe(200);
    await within("the gateway closes the connection", connection.closed);
  }
});
