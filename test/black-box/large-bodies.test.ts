// Bodies that cost much: what they may take together, what is refused before it is parsed, and that a client that is still
// sending reads its refusal.

import { beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { runBounded } from "../../scripts/run-bounded.ts";
import { expectError, expectErrorBody } from "../support/expect-error.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chat, chatEvents, eventStream } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const MEGABYTE = 1_000_000;
const CHAT = "/v1/chat/completions";

beforeEach(() => backend.reset(chat("hello")));

function gatewayWith(more: object = {}): Promise<ProcessGateway> {
  return bed.process({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }], ...more } });
}

const chatWith = (metadata: string) =>
  `{"model":"m","messages":[{"role":"user","content":"hi"}],"metadata":${metadata}}`;

function residentMegabytes({ pid }: ProcessGateway): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000;
}

/** By how much the gateway grows at most while it answers five of these bodies at once. */
async function growthUnder(body: string, status: number): Promise<number> {
  const gateway = await gatewayWith();
  await (await gateway.chat()).text();
  const before = residentMegabytes(gateway);
  let highest = before;
  let isOver = false;
  const answers = Promise.all(Array.from({ length: 5 }, () => gateway.post(CHAT, body))).finally(() => {
    isOver = true;
  });
  await waitFor(
    "all are answered",
    () => {
      highest = Math.max(highest, residentMegabytes(gateway));
      return isOver;
    },
    { timeoutMs: 25_000, intervalMs: 5 },
  );
  for (const answer of await answers) {
    expect(answer.status).toBe(status);
    await answer.text();
  }
  await gateway.waitUntilIdle();
  return highest - before;
}

describe("five bodies at once do not take many times their size", () => {
  // Measured: 130 to 430 MB for bodies of 20 MB; without limits it was 3,000 MB for the first two.
  const kinds: [name: string, body: string, status: number, most: number][] = [
    ["20 MB of {},{}", chatWith(`[${"{},".repeat((20 * MEGABYTE) / 3)}{}]`), 400, 400],
    ["20 MB of [[[[", chatWith("[".repeat(10 * MEGABYTE) + "]".repeat(10 * MEGABYTE)), 400, 400],
    ["20 MB of text", chatWith(`"${"some text ".repeat(2 * MEGABYTE)}"`), 200, 900],
    ["as many objects as are taken", chatWith(`[${"{},".repeat(499_980)}{}]`), 200, 700],
  ];
  test.each(kinds)("%s", async (_name, body, status, most) => {
    expect(await growthUnder(body, status)).toBeLessThan(most);
  });
});

/** Each worker has a share of it (0046): what one of them does is seen here. */
describe("what all bodies may take together", () => {
  test("is refused beyond with 503 and Retry-After, and free again when requests are over", async () => {
    const gateway = await gatewayWith({ server: { workers: 1, max_buffered_bodies: 10 * MEGABYTE } });
    const held = Promise.withResolvers<void>();
    backend.answer = async () => {
      await held.promise;
      return chat("late");
    };
    const body = chatWith(`"${"x".repeat(4 * MEGABYTE)}"`);
    const first = gateway.post(CHAT, body);
    const second = gateway.post(CHAT, body);
    await waitFor("both are at the backend", () => backend.requests.length === 2);
    const refused = await gateway.post(CHAT, body);
    expect(refused.headers.get("retry-after")).toBe("1");
    const error = await expectError(refused, 503);
    expect(error).toMatchObject({ type: "service_unavailable", code: "bodies_exhausted" });
    expect(error.message).toContain("server.max_buffered_bodies");
    const small = gateway.post(CHAT, chatWith(`"${"x".repeat(0.9 * MEGABYTE)}"`));
    await waitFor("a small body has room that large ones have not", () => backend.requests.length === 3);
    held.resolve();
    for (const answer of [first, second, small]) expect((await answer).status).toBe(200);
    expect((await gateway.post(CHAT, body)).status).toBe(200);
  });

  test("counts a length that is only announced, and what arrives in chunks, until the client leaves", async () => {
    const gateway = await gatewayWith({ server: { workers: 1, max_buffered_bodies: 10 * MEGABYTE } });
    const announced = await RawConnection.open(gateway.port);
    announced.write(`POST ${CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${5 * MEGABYTE}\r\n\r\n{`);
    const chunk = "x".repeat(3 * MEGABYTE);
    const openChunked = async () => {
      const connection = await RawConnection.open(gateway.port);
      connection.write(`POST ${CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n`);
      connection.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
      await waitFor("its chunk is sent", () => connection.unsentBytes === 0);
      return connection;
    };
    let chunked = await openChunked();
    const body = chatWith(`"${"x".repeat(2 * MEGABYTE)}"`);
    await waitFor("it is used up", async () => {
      // Where a part of the chunk comes while the other body is held, it is the chunk that is refused.
      if (chunked.received.length > 0) chunked = await openChunked();
      return (await gateway.post(CHAT, body)).status === 503 && chunked.received.length === 0;
    });
    announced.abort();
    chunked.abort();
    await waitFor("it is free again", async () => (await gateway.post(CHAT, body)).status === 200);
  });

  test("is free again after streams that end, break off, or that nobody reads to their end", async () => {
    const gateway = await gatewayWith({ server: { workers: 1, max_buffered_bodies: 3 * MEGABYTE } });
    const body = chatWith(`"${"x".repeat(2 * MEGABYTE)}"`).replace("{", '{"stream":true,');
    const events = chatEvents(["a", "b", "c"]);
    for (const answer of [eventStream(events), eventStream(events, { breakAfterBytes: 300 })]) {
      backend.answer = answer;
      const response = await gateway.post(CHAT, body);
      expect(response.status).toBe(200);
      await response.text();
      await gateway.waitUntilIdle();
    }
    const unanswered = Promise.withResolvers<void>();
    backend.reset(eventStream(events, { headersAfter: unanswered.promise }));
    const tooEarly = new AbortController();
    const early = gateway.post(CHAT, body, { signal: tooEarly.signal }).catch(() => undefined);
    await waitFor("it is at the backend", () => backend.requests.length === 1);
    tooEarly.abort();
    await early;
    unanswered.resolve();
    backend.answer = eventStream(events, { betweenChunksMs: 60_000 });
    const leaving = new AbortController();
    await gateway.waitUntilIdle();
    expect((await gateway.post(CHAT, body, { signal: leaving.signal })).status).toBe(200);
    expect((await gateway.post(CHAT, body)).status).toBe(503);
    leaving.abort();
    backend.answer = eventStream(events);
    await waitFor("it is free again", async () => (await gateway.post(CHAT, body)).status === 200);
  });
});

test("a takeover asks with the whole of a large request", async () => {
  const other = bed.backend({ models: ["n"] });
  const gateway = await bed.process({
    config: {
      backends: [
        { name: "a", type: "vllm", url: backend.url, models: ["m"] },
        { name: "b", type: "vllm", url: other.url, models: ["n"] },
      ],
      fallback: { enabled: true, fallback_chains: { m: ["n"] } },
      routing: { selection_strategy: "ConsistentHash" },
      streaming: { mid_stream_fallback: { enabled: true } },
    },
  });
  const isSeen = Promise.withResolvers<void>();
  backend.answer = eventStream(chatEvents(["The answer is ", "never said"]), {
    beforeChunk: (index) => (index === 2 ? isSeen.promise : undefined),
    breakAfterBytes: 500,
  });
  other.answer = eventStream(chatEvents(["42."]));
  const content = "long ".repeat(20_000);
  const response = await gateway.chat({ stream: true, messages: [{ role: "user", content }], seed: 5 });
  expect(response.status).toBe(200);
  let text = "";
  for await (const bytes of response.body as ReadableStream<Uint8Array>) {
    text += Buffer.from(bytes).toString();
    if (text.includes("The answer is")) isSeen.resolve();
  }
  expect(text).toContain("42.");
  expect(text).toContain("[DONE]");
  expect(text).not.toContain('"error"');
  const asked = other.lastRequest.json<{ model: string; seed: number; messages: { content: string }[] }>();
  expect(asked).toMatchObject({ model: "n", seed: 5 });
  expect(asked.messages[0]?.content).toBe(content);
  expect(asked.messages.length).toBeGreaterThan(1);
});

describe("members that stand twice", () => {
  const cases: [path: string, body: string, param: string][] = [
    [CHAT, '{"model":"m","messages":[{"role":"user","content":"x"}],"model":"n"}', "model"],
    [CHAT, '{"model":"m","messages":[{"role":"user","content":"x"}],"\\u006dodel":"n"}', "model"],
    ["/v1/completions", '{"model":"m","prompt":"x","stream":false,"stream":true}', "stream"],
    ["/v1/responses", '{"model":"m","input":"x","input":"y"}', "input"],
    [
      "/v1/messages",
      '{"model":"m","max_tokens":1,"messages":[],"messages":[{"role":"user","content":"x"}]}',
      "messages",
    ],
    ["/v1/embeddings", '{"model":"m","input":"x","model":"m"}', "model"],
    ["/v1/rerank", '{"model":"m","query":"x","documents":["a"],"query":"y"}', "query"],
  ];
  let gateway: ProcessGateway | undefined;
  test.each(cases)("%s %s is 400", async (path, body, param) => {
    gateway ??= await gatewayWith();
    const response = await gateway.post(path, body);
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain(`${param}: stands more than once`);
    expect(backend.requests).toHaveLength(0);
  });
});

describe("a client that is still sending reads its refusal", () => {
  /** Requests of Node's fetch, one after the other; its output is the count of each outcome. */
  const NODE_CLIENT = `
    const [url, key, kind, rounds] = process.argv.slice(1);
    const bytes = Buffer.alloc(40 * 1024 * 1024, "x");
    const outcomes = {};
    for (let round = 0; round < rounds; round++) {
      let body = bytes;
      if (kind === "chunked") body = new ReadableStream({
        start(controller) { this.left = 640; },
        pull(controller) { if (this.left-- > 0) controller.enqueue(bytes.subarray(0, 65536)); else controller.close(); },
      });
      let outcome;
      try {
        const response = await fetch(url, { method: "POST", body, duplex: "half", headers: { Authorization: "Bearer " + key } });
        outcome = response.status + " " + JSON.parse(await response.text()).error.type;
      } catch (error) { outcome = String(error.cause?.code ?? error); }
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    console.log(JSON.stringify(outcomes));`;

  const cases: [name: string, path: string, key: string, kind: string, rounds: number, outcome: string][] = [
    ["413, announced", CHAT, "sk-sekret-1", "announced", 4, "413 payload_too_large"],
    // For the memory that they would take together, 800 MB.
    ["413, in chunks", CHAT, "sk-sekret-1", "chunked", 20, "413 payload_too_large"],
    ["401, announced", CHAT, "sk-sekret-2", "announced", 4, "401 authentication_error"],
    ["404, in chunks", "/nothing", "sk-sekret-1", "chunked", 4, "404 not_found"],
  ];
  test.each(cases)("%s", async (_name, path, key, kind, rounds, outcome) => {
    const gateway = await gatewayWith({ api_keys: { mode: "blocking", keys: [{ key: "sk-sekret-1" }] } });
    const { stdout, stderr } = await runBounded(
      ["node", "--input-type=module", "-e", NODE_CLIENT, gateway.url + path, key, kind, String(rounds)],
      { cwd: gateway.folder, environment: { PATH: process.env.PATH ?? "" }, timeoutMs: 50_000 },
    );
    expect({ outcomes: stdout.trim(), stderr }).toEqual({
      outcomes: JSON.stringify({ [outcome]: rounds }),
      stderr: "",
    });
    expect(residentMegabytes(gateway)).toBeLessThan(700);
  });

  test("429", async () => {
    const gateway = await gatewayWith({
      api_keys: { mode: "blocking", keys: [{ key: "sk-sekret-1", rate_limit: 1 }] },
    });
    const headers = { Authorization: "Bearer sk-sekret-1" };
    expect((await gateway.chat({}, { headers })).status).toBe(200);
    const connection = await RawConnection.open(gateway.port);
    connection.write(postBytes(CHAT, "x".repeat(20 * MEGABYTE), headers));
    const response = await connection.response();
    expectErrorBody(response, response.text, 429);
    expect(response.headers.connection).toBe("close");
    await connection.closed;
  });

  test("what is sent without end is taken up to a bound, and then the connection is closed", async () => {
    const gateway = await gatewayWith();
    const connection = await RawConnection.open(gateway.port);
    connection.write("POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = Buffer.from(`${MEGABYTE.toString(16)}\r\n${"x".repeat(MEGABYTE)}\r\n`);
    let sent = 0;
    await waitFor(
      "the gateway closes",
      () => {
        for (; connection.unsentBytes === 0 && !connection.isClosed; sent++) connection.write(chunk);
        connection.flush();
        return connection.isClosed;
      },
      { intervalMs: 1 },
    );
    expect(connection.received.toString()).toStartWith("HTTP/1.1 404");
    expect(sent).toBeGreaterThan(60);
    expect(sent).toBeLessThan(120);
  });

  test("a small body of a refused request costs no connection", async () => {
    const gateway = await gatewayWith();
    const connection = await RawConnection.open(gateway.port);
    connection.write("POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50000\r\n\r\n");
    expect((await connection.response()).status).toBe(404);
    connection.write("x".repeat(50_000));
    connection.write(postBytes(CHAT, chatWith("{}")));
    expect((await connection.response()).status).toBe(200);
    connection.close();
  });
});
