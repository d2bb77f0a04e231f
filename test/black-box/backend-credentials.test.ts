// A backend that does not accept the gateway's own credential: who is asked instead, and what client and operator learn.

import { beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const KEY = "sk-sekret-operator-0123456789";

/** As OpenAI refuses a key: with the key in the message. */
function refused(status: number): Answer {
  const message = `Incorrect API key provided: ${KEY}. You can find your API key at https://vendor.example.`;
  return { status, body: JSON.stringify({ error: { message, type: "vendor_error", param: "key", code: "bad_key" } }) };
}

/** As Anthropic does. */
function refusedMessage(status: number): Answer {
  const error = { type: "authentication_error", message: `invalid x-api-key ${KEY}` };
  return { status, body: JSON.stringify({ type: "error", error, request_id: "req_vendor" }) };
}

/** Without models each backend has the one of its own name. */
function configOf(
  backends: Record<string, FakeBackend>,
  { type = "openai", models }: { type?: string; models?: string[] },
) {
  return {
    retry: { base_delay: "1ms" },
    health_checks: { enabled: false },
    circuit_breaker: { enabled: true },
    backends: Object.entries(backends).map(([name, { url }]) => ({
      name,
      url,
      api_key: KEY,
      models: models ?? [name],
      type,
    })),
  };
}

function start(backends: Record<string, FakeBackend>, more: { type?: string } = {}) {
  return startGateway({ config: configOf(backends, { models: ["m"], ...more }) });
}

async function isQuiet(response: Response, gateway: Gateway): Promise<void> {
  const text = `${await response.clone().text()}${JSON.stringify([...response.headers])}`;
  const seen = [text, gateway.printed.stderr, await (await gateway.fetch("/admin/backends")).text()];
  seen.push(await (await gateway.fetch("/admin/errors/recent")).text());
  for (const each of seen) expect(each).not.toContain("sekret");
}

const questions: [title: string, path: string, body: Record<string, unknown>][] = [
  ["chat", "/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] }],
  ["messages", "/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: "hi" }] }],
  ["responses", "/v1/responses", { input: "hi" }],
];

const cases = [401, 403].flatMap((status) =>
  [false, true].flatMap((stream) =>
    questions.map(([title, path, body]) => ({
      status,
      stream,
      title,
      path,
      body,
      name: `${title}-${status}-${stream}`,
    })),
  ),
);

describe("status, type, param and code go on, the words are the gateway's own", () => {
  const backends = Object.fromEntries(
    cases.map(({ name, status }) => [name, bed.backend({ answer: refused(status) })] as const),
  );
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await bed.gateway({ config: configOf(backends, {}) });
  });

  test.each(cases)("$status ($title, stream: $stream)", async ({ status, stream, title, path, body, name }) => {
    const response = await gateway.post(path, { model: name, stream, ...body });
    expect(response.status).toBe(status);
    expect(response.headers.get("x-should-retry")).toBe("false");
    await isQuiet(response, gateway);
    const { type, error } = (await response.json()) as { type?: string; error: Record<string, unknown> };
    expect(error.message).toBe(
      `Backend '${name}' does not accept the gateway's own credential (HTTP ${status}); the gateway's operator has to mend it.`,
    );
    if (title === "messages")
      expect([type, error.type]).toEqual(["error", status === 401 ? "authentication_error" : "permission_error"]);
    else expect(error).toMatchObject({ type: "vendor_error", param: "key", code: "bad_key" });
    expect(backends[name]?.requests).toHaveLength(1);
  });
});

test("a Messages client of a Messages backend is told in that format", async () => {
  const backend = bed.backend({ answer: refusedMessage(401) });
  await using gateway = await start({ claude: backend }, { type: "anthropic" });
  const response = await gateway.post("/v1/messages", {
    model: "m",
    max_tokens: 9,
    messages: [{ role: "user", content: "hi" }],
  });
  expect(response.status).toBe(401);
  await isQuiet(response, gateway);
  const body = (await response.json()) as Record<string, unknown>;
  const id = response.headers.get("request-id");
  expect(body).toMatchObject({ type: "error", error: { type: "authentication_error" }, request_id: id });
  expect(JSON.stringify(body)).toContain("Backend 'claude'");
});

test("an answer without words of its own gets a type of the gateway's", async () => {
  const backend = bed.backend({ answer: { status: 401, body: "<html>who are you?</html>" } });
  await using gateway = await start({ "gpu-1": backend });
  const error = await expectError(await gateway.chat(), 401);
  expect(error).toMatchObject({ type: "authentication_error", code: 401 });
  expect(error.message).toContain("gpu-1");
});

test("another backend of the model answers, the operator is warned, and the failure is the backend's", async () => {
  const wrong = bed.backend({ answer: refused(401) });
  const right = bed.backend({ answer: chat("fine") });
  await using gateway = await start({ wrong, right });
  for (let count = 0; count < 4; count++) {
    const response = await gateway.chat();
    expect(response.status).toBe(200);
    expect(response.headers.get("x-signalbox-backend")).toBe("right");
    await isQuiet(response, gateway);
  }
  expect(wrong.requests).toHaveLength(2);
  expect(right.requests).toHaveLength(4);
  const warning = await waitFor("the warning is written", () =>
    gateway.printed.logEntries.find(({ level, backend }) => level === "warn" && backend === "wrong"),
  );
  expect(String(warning.msg ?? warning.message)).toContain("HTTP 401 (the api_key is refused)");
  expect(await gateway.backend("wrong")).toMatchObject({
    last_error: "HTTP 401 (the api_key is refused)",
    total_requests: 2,
    failed_requests: 2,
  });
  expect(await gateway.backend("right")).toMatchObject({ last_error: null, failed_requests: 0 });
});

test("a backend that refuses every time is left alone, until its key is changed", async () => {
  const wrong = bed.backend({ answer: refused(401) });
  const right = bed.backend({ answer: chat("fine") });
  await using gateway = await start({ wrong, right });
  while ((await gateway.backend("wrong")).circuit === "closed") expect((await gateway.chat()).status).toBe(200);
  expect(wrong.requests).toHaveLength(5);
  for (let count = 0; count < 4; count++) expect((await gateway.chat()).status).toBe(200);
  expect(wrong.requests).toHaveLength(5);

  wrong.reset(chat("let in"));
  const change = {
    method: "PUT",
    headers: { "Content-Type": "application/json" },
    body: '{"api_key":"sk-sekret-new"}',
  };
  expect((await gateway.fetch("/admin/backends/wrong", change)).status).toBe(200);
  expect(await gateway.backend("wrong")).toMatchObject({ last_error: null, circuit: "half_open" });
  for (let count = 0; count < 4; count++) expect((await gateway.chat()).status).toBe(200);
  expect(wrong.requests.length).toBeGreaterThan(0);
});
