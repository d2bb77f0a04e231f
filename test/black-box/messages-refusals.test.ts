// Whatever refuses a client of the Messages API, its SDK can read the refusal: the shape, and the id in body and header.

import { beforeAll, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const KEY = "sk-sekret-client-0123456789";
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      server: { cors: { allowed_origins: ["https://page.example"] } },
      api_keys: {
        mode: "blocking",
        keys: [
          { id: "client", key: KEY },
          { id: "limited", key: `${KEY}-limited`, rate_limit: 1 },
        ],
      },
      rate_limiting: { enabled: true },
      backends: [{ name: "claude", type: "anthropic", url: backend.url, models: ["claude"], api_key: "sekret" }],
    },
  });
});

const MESSAGE = { model: "claude", max_tokens: 9, messages: [{ role: "user", content: "hi" }] };

interface Ask {
  method?: string;
  path: string;
  key?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

function ask({ method = "GET", path, key = KEY, headers, body }: Ask): Promise<Response> {
  return gateway.fetch(path, {
    method,
    headers: { "Content-Type": "application/json", ...(key !== "" && { "x-api-key": key }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function expectMessagesError(response: Response, status: number, type: string): Promise<void> {
  const body = (await response.json()) as { request_id: string };
  expect([response.status, body]).toMatchObject([status, { type: "error", error: { type } }]);
  expect(body.request_id).toBe(response.headers.get("request-id") ?? "no header");
  expect(body.request_id).toBe(response.headers.get("x-request-id") ?? "no header");
}

const POST = { method: "POST", body: MESSAGE };
const CASES: [title: string, status: number, type: string, ask: Ask][] = [
  ["an unknown path", 404, "not_found_error", { path: "/anthropic/v1/nothing" }],
  ["an unknown path without a key", 404, "not_found_error", { path: "/anthropic/v1/complete", key: "" }],
  ["a path that is not built", 404, "not_found_error", { path: "/v1/messages/archive" }],
  ["a wrong method", 405, "invalid_request_error", { path: "/v1/messages" }],
  ["a wrong method at the door", 405, "invalid_request_error", { path: "/anthropic", method: "DELETE" }],
  ["a path that is not in order", 400, "invalid_request_error", { path: "/anthropic//v1/messages", ...POST }],
  ["an id that is not in order", 400, "invalid_request_error", { path: "/anthropic/v1/files/%zz" }],
  ["an id of nothing", 404, "not_found_error", { path: "/anthropic/v1/files/file_0" }],
  ["no key", 401, "authentication_error", { path: "/v1/messages", key: "", ...POST }],
  [
    "a page that asks whether it may",
    403,
    "permission_error",
    {
      path: "/anthropic/v1/messages",
      method: "OPTIONS",
      headers: { Origin: "https://other.example", "Access-Control-Request-Method": "POST" },
    },
  ],
];

test.each(CASES)("%s", async (_title, status, type, asked) => {
  await expectMessagesError(await ask(asked), status, type);
});

test("a body that is too large", async () => {
  const connection = await RawConnection.open(Number(new URL(gateway.url).port));
  const head = ["POST /v1/messages HTTP/1.1", "Host: localhost", `x-api-key: ${KEY}`, "Content-Length: 9999999999"];
  connection.write(`${head.join("\r\n")}\r\n\r\n`);
  // The answer ends when the client has stopped sending.
  const told = await waitFor("the refusal", () => connection.received.toString().match(/request_id":"([^"]+)"/));
  const answer = connection.received.toString();
  expect(answer).toStartWith("HTTP/1.1 413");
  expect(answer).toContain('"type":"error","error":{"type":"request_too_large"');
  expect(answer.toLowerCase()).toContain(`\r\nrequest-id: ${told[1]}\r\n`);
});

test("a limit", async () => {
  const limited: Ask = { path: "/anthropic/v1/models", key: `${KEY}-limited` };
  expect((await ask(limited)).status).toBe(200);
  await expectMessagesError(await ask(limited), 429, "rate_limit_error");
});

test("an error in the gateway's words, of a backend that speaks the format", async () => {
  backend.queue({ status: 500, body: "<html>Oops</html>" });
  await expectMessagesError(await ask({ path: "/v1/messages", ...POST }), 500, "api_error");
});

test("the backend's own error passes as it came", async () => {
  const own = '{"type":"error", "error":{"type":"overloaded_error","message":"Busy"},"request_id":"req_vendor"}';
  backend.answer = { status: 529, body: own };
  expect(await (await ask({ path: "/v1/messages", ...POST })).text()).toBe(own);
});

test("other paths keep the standard shape", async () => {
  for (const path of ["/v1/messagesx", "/anthropics", "/v1/nothing"]) {
    const response = await ask({ path });
    expect(await response.json()).not.toHaveProperty("type");
    expect(response.headers.has("request-id")).toBe(false);
  }
});
