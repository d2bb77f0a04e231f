// What bad backends get the client: a clear 502 or 504, never a crash, a hang or a leaked socket.

import { beforeAll, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatBody, html } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      timeouts: { first_byte: "400ms", between_chunks: "400ms" },
      health_checks: { enabled: false },
      backends: [{ name: "crooked", url: backend.url, models: ["m"] }],
    },
  });
});

const BODY = chatBody("hello");

const BAD: Record<string, { answer: Answer; status: number | readonly number[] }> = {
  "a web page": { answer: html(200), status: 502 },
  "a web page as an error": { answer: html(502), status: 502 },
  "invalid JSON": { answer: { body: '{"id": "x", ' }, status: 502 },
  "plain text": { answer: { body: "hello", headers: { "Content-Type": "text/plain" } }, status: 502 },
  "a JSON array": { answer: { body: "[]" }, status: 502 },
  "a JSON null": { answer: { body: "null" }, status: 502 },
  "an empty body": { answer: { body: "" }, status: 502 },
  "status 204": { answer: { status: 204, body: "" }, status: 502 },
  "a Content-Length that is too large": { answer: { body: BODY, contentLength: BODY.length + 50 }, status: 502 },
  "a Content-Length that is too small": { answer: { body: BODY, contentLength: 10 }, status: 502 },
  "half a body and a reset": {
    answer: { body: BODY, chunkBytes: 40, betweenChunksMs: 1, breakAfterBytes: 80, breakWith: "reset" },
    status: 502,
  },
  "half a chunked body": { answer: { body: BODY, framing: "chunked", breakAfterBytes: 40 }, status: 502 },
  "no answer at all": { answer: { rawBytes: "" }, status: 502 },
  "a reset": { answer: { breakWith: "reset" }, status: 502 },
  "half a head": { answer: { rawBytes: "HTTP/1.1 200 OK\r\nContent-Ty" }, status: 502 },
  "something that is no HTTP": { answer: { rawBytes: "SSH-2.0-OpenSSH_9.9\r\n" }, status: 502 },
  "a broken chunk size": {
    answer: { rawBytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n" },
    status: 502,
  },
  silence: { answer: { hang: true }, status: 504 },
  "half a body and silence": {
    answer: { body: [BODY.slice(0, 40), BODY.slice(40)], framing: "chunked", betweenChunksMs: 60_000 },
    status: 504,
  },
};

for (const [name, { answer, status }] of Object.entries(BAD)) {
  test(`${name}: a clear error, and the next request works`, async () => {
    backend.reset(answer);
    const response = await gateway.chat();
    const error = await expectError(response, status);
    expect(response.headers.get("x-signalbox-backend")).toBe("crooked");
    if (answer.status === undefined || answer.status === 200) expect(error.message).toContain("crooked");
    backend.reset(chat("fine again"));
    const next = await gateway.chat();
    expect(next.status).toBe(200);
    expect(await next.text()).toBe(chat("fine again").body as string);
  });

  test(`${name}: the same for text completions`, async () => {
    backend.reset(answer);
    await expectError(await gateway.post("/v1/completions", { model: "m", prompt: "x" }), status);
  });
}

test("bytes behind a complete answer do not become part of the next answer", async () => {
  const text = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
  backend.reset({ rawBytes: `${text}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"evil":1}` });
  expect(await (await gateway.chat()).text()).toBe(BODY);
  backend.reset(chat("clean"));
  expect(await (await gateway.chat()).text()).toBe(chat("clean").body as string);
});

test("100 bad answers side by side leave no socket and no count behind", async () => {
  const kinds = Object.values(BAD).filter(({ status }) => status === 502);
  let index = 0;
  backend.reset(() => (kinds[index++ % kinds.length] as { answer: Answer }).answer);
  const responses = await Promise.all(Array.from({ length: 100 }, () => gateway.chat()));
  for (const response of responses) {
    await response.text();
    // On a busy machine some come too late.
    expect([502, 504]).toContain(response.status);
  }
  await gateway.waitUntilIdle();
  await waitFor("no connection is busy", () => backend.busyConnections === 0);
});

test("bad response headers of a backend do not reach the client", async () => {
  backend.reset({
    ...chat("hello"),
    headers: {
      "Set-Cookie": "a=b",
      Server: "secret-engine/1.0",
      "X-Internal-Host": "10.0.0.7",
      Connection: "keep-alive",
    },
  });
  const response = await gateway.chat();
  for (const name of ["set-cookie", "x-internal-host"]) expect(response.headers.get(name)).toBe(null);
  expect(response.headers.get("server") ?? "").not.toContain("secret-engine");
});

test("a pooled connection that the backend has closed meanwhile is replaced unseen", async () => {
  for (const leave of [() => backend.dropConnections(), restart]) {
    backend.reset(chat("first"));
    expect((await gateway.chat()).status).toBe(200);
    leave();
    backend.reset(chat("second"));
    const response = await gateway.chat();
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(chat("second").body as string);
  }
});

function restart(): void {
  backend.stop();
  backend.start();
}

test("a compressed answer that nobody asked for reaches the client readable", async () => {
  const headers = { "Content-Type": "application/json", "Content-Encoding": "gzip" };
  backend.reset({ body: Bun.gzipSync(Buffer.from(BODY)), headers });
  const connection = await RawConnection.open(gateway.port);
  const request = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] });
  connection.write(postBytes("/v1/chat/completions", request));
  const response = await connection.response();
  expect(response.status).toBe(200);
  const isCompressed = response.headers["content-encoding"] === "gzip";
  expect(isCompressed ? Buffer.from(Bun.gunzipSync(Buffer.from(response.body))).toString() : response.text).toBe(BODY);
  connection.close();
});

test("an answer with enormous headers is an answer or a clear error", async () => {
  backend.reset({ ...chat("hello"), headers: { "X-Enormous": "y".repeat(500_000) } });
  const response = await gateway.chat();
  if (response.status === 200) await response.text();
  else await expectError(response, 502);
});

test("after all this the gateway runs, and holds nothing that is busy", async () => {
  await waitFor("no connection is busy", () => backend.busyConnections === 0);
  await gateway.waitUntilIdle();
  expect((await gateway.fetch("/health")).status).toBe(200);
});
