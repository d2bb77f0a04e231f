// Logging: one line per request, three formats, levels, and no secret or prompt in any of them.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { chatEvents, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

function start(logging: ConfigDocument["logging"], more: ConfigDocument = {}): Promise<ProcessGateway> {
  return startGatewayProcess({
    config: {
      logging,
      retry: { base_delay: "1ms" },
      backends: [
        {
          name: "a",
          url: backend.url,
          models: ["m"],
          api_key: "sk-sekret-backend",
          headers: { "X-Own": "sekret-own" },
        },
      ],
      ...more,
    },
  });
}

async function accessEntry(gateway: ProcessGateway, requestId: string): Promise<Record<string, unknown>> {
  return waitFor(`the access log line of ${requestId}`, () =>
    gateway.printed.logEntries.find((entry) => entry.request_id === requestId && entry.status !== undefined),
  );
}

const withId = (id: string): RequestInit => ({ headers: { "X-Request-ID": id } });

test("json: every line is an object with time, level and message; one access line per request", async () => {
  await using gateway = await start({ format: "json" });
  backend.reset();
  await (await gateway.chat({}, withId("plain-1"))).text();
  const entry = await accessEntry(gateway, "plain-1");
  expect(entry).toMatchObject({
    level: "info",
    method: "POST",
    path: "/v1/chat/completions",
    status: 200,
    model: "m",
    backend: "a",
    duration_ms: expect.any(Number),
  });
  expect(entry.time).toMatch(/^\d{4}-\d\d-\d\dT/);
  for (const line of gateway.printed.stderrLines) {
    expect(JSON.parse(line)).toMatchObject({
      time: expect.any(String),
      level: expect.any(String),
      msg: expect.any(String),
    });
  }
  expect(gateway.printed.logEntries.filter(({ request_id }) => request_id === "plain-1")).toHaveLength(1);
  // The start is such a line, too, in place of the banner.
  const greeting = gateway.printed.logEntries.find(({ msg }) => msg === "Signalbox listens");
  expect(greeting).toMatchObject({ addresses: [gateway.url], backends: ["a"], configuration: expect.any(String) });
  expect(gateway.printed.stdout).toBe("");
});

test("the line of a stream is written when the stream is over, and says when it broke", async () => {
  await using gateway = await start({});
  const gate = Promise.withResolvers<void>();
  backend.reset(chatStream(["one"], {}, { beforeChunk: (index) => (index === 1 ? gate.promise : undefined) }));
  const response = await gateway.chat({ stream: true }, withId("stream-1"));
  expect(gateway.printed.logEntries.some(({ request_id }) => request_id === "stream-1")).toBe(false);
  gate.resolve();
  await response.text();
  expect(await accessEntry(gateway, "stream-1")).toMatchObject({ status: 200, stream: true });

  const events = chatEvents(["one", "two"]);
  backend.reset(eventStream(events, { breakAfterBytes: (events[0] as string).length + 5 }));
  await (await gateway.chat({ stream: true }, withId("stream-2"))).text();
  expect((await accessEntry(gateway, "stream-2")).failure).toEqual(expect.any(String));
});

test("an access line has who asked, what was counted, and where the time went", async () => {
  await using gateway = await start({}, { api_keys: { keys: [{ key: "sk-sekret-client", id: "team" }] } });
  const usage = sseEvent({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
  backend.reset(eventStream([...chatEvents(["one"], { done: false }), usage, "data: [DONE]\n\n"]));
  const headers = { Authorization: "Bearer sk-sekret-client", "X-Request-ID": "whole-1" };
  const response = await gateway.chat({ stream: true }, { headers });
  await response.text();
  const entry = await accessEntry(gateway, "whole-1");
  expect(entry.gateway_ms as number).toBeLessThanOrEqual(entry.duration_ms as number);
  expect(entry).toMatchObject({
    level: "info",
    msg: "request",
    client: "127.0.0.1",
    key: "team",
    prompt_tokens: 3,
    completion_tokens: 2,
    first_token_ms: expect.any(Number),
    gateway_ms: expect.any(Number),
    id: response.headers.get("x-signalbox-request-id"),
  });
  expect(entry).not.toHaveProperty("failure");
});

test("a stream that was refused has no first token, in the access line, the story and the metrics", async () => {
  await using gateway = await start({});
  backend.reset(failure(500));
  await (await gateway.chat({ stream: true }, withId("tokenless-1"))).text();
  const entry = await accessEntry(gateway, "tokenless-1");
  expect(entry).toMatchObject({ status: 500, stream: true });
  expect(entry).not.toHaveProperty("first_token_ms");
  const story = (await (await gateway.fetch("/admin/requests/tokenless-1")).json()) as { timings: object };
  expect(story.timings).toMatchObject({ first_token_ms: null });
  expect(await (await gateway.fetch("/metrics")).text()).not.toMatch(/time_to_first_token\S*_count\S* [1-9]/);
});

test("failures are warnings with the reason, in one line, also without an access log; a client's mistake is none", async () => {
  for (const access_log of [true, false]) {
    await using gateway = await start({ access_log }, { retry: { max_attempts: 1 } });
    backend.reset(failure(503, 'overloaded by "sekret prompt, quoted by the backend as a whole"'));
    await (await gateway.chat({}, withId("refused-1"))).text();
    backend.reset(chatStream(["one"], { finishReason: null, done: false }));
    await (await gateway.chat({ stream: true }, withId("broken-1"))).text();
    backend.reset({ body: "no JSON" });
    await (await gateway.chat({}, withId("odd-1"))).text();
    await (await gateway.chat({ messages: "sekret" }, withId("mistaken-1"))).text();
    await gateway.stop();
    const entries = (id: string) => gateway.printed.logEntries.filter(({ request_id }) => request_id === id);
    expect(entries("refused-1")).toMatchObject([
      { level: "warn", status: 503, failure: "status_503", backend_error: 'overloaded by "…"' },
    ]);
    expect(entries("broken-1")).toMatchObject([
      { level: "warn", status: 502, failure: "reset", reason: expect.stringContaining("Backend 'a' ended the stream") },
    ]);
    expect(entries("odd-1")).toMatchObject([{ level: "warn", status: 502, reason: expect.stringContaining("'a'") }]);
    expect(entries("mistaken-1")).toMatchObject(access_log ? [{ level: "info", status: 400 }] : []);
  }
});

test("what is asked all the time is told at level debug: probes, scrapes, and reads of the admin API", async () => {
  const watched = ["/health", "/healthz", "/readyz", "/metrics", "/admin/stats", "/admin/requests"];
  for (const level of ["info", "debug"] as const) {
    await using gateway = await start({ level });
    for (const path of watched) await (await gateway.fetch(path)).text();
    await (await gateway.fetch("/v1/models")).text();
    await (await gateway.fetch("/admin/stats/reset", { method: "POST" })).text();
    await gateway.stop();
    // What the test bed asks at the start is not looked at.
    const requests = gateway.printed.logEntries.filter(
      ({ msg, path }) => msg === "request" && path !== "/admin/backends",
    );
    // The first of all lines is one of those.
    const lines = requests.slice(level === "debug" ? requests.length - watched.length - 2 : 0);
    // Lines come in the order of each process.
    expect(lines.map(({ path, level }) => `${path} ${level}`).sort()).toEqual(
      [
        ...(level === "debug" ? watched.map((path) => `${path} debug`) : []),
        "/v1/models info",
        "/admin/stats/reset info",
      ].sort(),
    );
  }
});

test("a failed request tells why, and how many attempts were made", async () => {
  await using gateway = await start({});
  backend.reset(failure(503));
  await (await gateway.chat({}, withId("failed-1"))).text();
  const entry = await accessEntry(gateway, "failed-1");
  expect(entry.attempts).toBe(3);
  expect(entry.failure).toContain("503");
});

test("access_log false leaves the request lines out", async () => {
  await using gateway = await start({ access_log: false });
  backend.reset();
  await (await gateway.chat({}, withId("silent-1"))).text();
  await gateway.stop();
  expect(gateway.printed.stderr).not.toContain("silent-1");
});

test("level error says nothing about good requests", async () => {
  await using gateway = await start({ level: "error" });
  backend.reset();
  await (await gateway.chat({}, withId("quiet-1"))).text();
  await gateway.stop();
  expect(gateway.printed.stderr).toBe("");
});

test("text and pretty are lines for people, with the same facts", async () => {
  for (const format of ["text", "pretty"] as const) {
    await using gateway = await start({ format });
    backend.reset();
    await (await gateway.chat({}, withId("people-1"))).text();
    await waitFor("the line of the request", () => gateway.printed.stderr.includes("people-1"));
    const line = gateway.printed.stderrLines.find((text) => text.includes("people-1")) as string;
    expect(() => JSON.parse(line)).toThrow();
    expect(line).toContain("/v1/chat/completions");
    expect(line).toMatch(/INFO.* request +.*path=/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
    if (format === "text") expect(line).not.toMatch(/\x1b\[/);
  }
});

test("a line break in a path or header cannot forge a log line", async () => {
  await using gateway = await start({ format: "text" });
  await gateway.fetch('/%0a{"level":"info","forged":true}', { headers: { "User-Agent": "x" } });
  await gateway.stop();
  expect(gateway.printed.stderrLines.some((line) => line.startsWith('{"level"'))).toBe(false);
});

test("secrets and prompts are in no line, not even at level trace, whatever goes wrong", async () => {
  await using gateway = await start(
    { level: "trace" },
    { api_keys: { mode: "permissive", keys: [{ key: "sk-sekret-client", id: "client" }] } },
  );
  const secrets = {
    headers: {
      Authorization: "Bearer sk-sekret-client",
      "X-Api-Key": "sekret-x",
      Cookie: "c=sekret",
      "api-key": "sekret",
    },
  };
  const prompt = { messages: [{ role: "user", content: "my sekret diary" }] };
  backend.reset();
  await (await gateway.chat(prompt, secrets)).text();
  backend.reset(failure(503, "Incorrect API key provided: sk-sekret-backend"));
  await (await gateway.chat(prompt, secrets)).text();
  backend.reset(failure(401, "Incorrect API key provided: sk-sekret-backend"));
  await (await gateway.chat(prompt, secrets)).text();
  backend.reset({ breakWith: "reset" });
  await (await gateway.chat(prompt, secrets)).text();
  backend.reset({ body: "my sekret answer, no JSON" });
  await (await gateway.chat(prompt, secrets)).text();
  await gateway.post("/v1/chat/completions", '{"model":"m","messages":"sekret', secrets);
  await gateway.fetch("/v1/models?api_key=sekret", secrets);
  backend.stop();
  await (await gateway.chat(prompt, secrets)).text();
  backend.start();
  await gateway.stop();
  expect(gateway.printed.stderr).not.toContain("sekret");
  expect(gateway.printed.stdout).not.toContain("sekret");
});
