// Headers both ways: what a client sends reaches no backend, and what a backend sends reaches no client, but for the few
// that are named here.

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand } from "../support/gateway-process.ts";
import { chat, chatEvents, eventStream } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const backend = bed.backend();

/** Headers with a value that is found again anywhere. */
const MARK = "attack-value";

const HOP_BY_HOP = ["keep-alive", "proxy-connection", "te", "trailer", "upgrade", "http2-settings"];
const FORWARDING = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "fastly-client-ip",
  "x-original-url",
  "x-rewrite-url",
  "x-http-method-override",
  "x-original-host",
  "max-forwards",
];
const CREDENTIALS = [
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "x-auth-token",
  "x-csrf-token",
  "x-amz-security-token",
  "x-ms-token-aad-access-token",
  "ocp-apim-subscription-key",
];
const VENDOR = [
  "openai-organization",
  "openai-project",
  "openai-beta",
  "anthropic-version",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "x-goog-user-project",
  "x-goog-api-client",
  "x-ms-client-request-id",
  "x-stainless-lang",
  "helicone-auth",
  "x-signalbox-backend",
];
const CONTENT = [
  "accept",
  "accept-language",
  "range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "content-language",
  "content-md5",
  "digest",
  "expect-ct",
  "origin",
  "referer",
  "sec-fetch-site",
  "sec-websocket-key",
  "x-custom",
  "baggage",
];
const FROM_CLIENT = [...HOP_BY_HOP, ...FORWARDING, ...CREDENTIALS, ...VENDOR, ...CONTENT];

/** What a backend gets of a request, whoever sent it. */
const ALLOWED_TO_BACKEND = new Set([
  "host",
  "connection",
  "content-length",
  "content-type",
  "accept-encoding",
  "accept",
  "user-agent",
  "idempotency-key",
  "traceparent",
  "x-request-id",
  "x-trace-id",
  "x-correlation-id",
  "authorization",
  "api-key",
  "x-api-key",
  "anthropic-version",
]);

type Kind = "openai" | "azure" | "anthropic" | "generic" | "federated" | "vllm";
const KINDS: Kind[] = ["openai", "azure", "anthropic", "generic", "federated", "vllm"];
const LISTED = "openai-listed";

let gateway: Gateway;

const backends: ConfigDocument["backends"] = [
  ...KINDS.map((type) => ({ name: type, type, url: backend.url, models: [type], api_key: `own-key-of-${type}` })),
  {
    name: LISTED,
    type: "openai" as const,
    url: backend.url,
    models: [LISTED],
    forward_headers: ["OpenAI-Organization", "openai-project", "OpenAI-Beta"],
  },
];

async function open(): Promise<Gateway> {
  gateway ??= await bed.gateway({
    config: {
      // The header Origin is one of those that are tried, too.
      server: { cors: { allowed_origins: ["*"] } },
      backends,
      health_checks: { enabled: false },
      retry: { max_attempts: 1 },
    },
  });
  return gateway;
}

beforeEach(() => backend.reset());

function anthropicAnswer(): Answer {
  const body = { id: "msg_1", type: "message", role: "assistant", content: [], stop_reason: "end_turn", usage: {} };
  return { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
}

/** Written on the wire as it stands here: no client library cleans it up. */
async function post(path: string, model: string, headers: readonly string[]): Promise<void> {
  const { port } = await open();
  const body = JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hi" }] });
  const connection = await RawConnection.open(port);
  connection.write(
    [
      `POST ${path} HTTP/1.1`,
      "Host: localhost",
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      ...headers,
      "",
      body,
    ].join("\r\n"),
  );
  const response = await connection.response();
  expect([path, model, response.status]).toEqual([path, model, 200]);
  connection.close();
}

describe("to a backend", () => {
  describe.each(KINDS)("%s", (kind) => {
    test.each([
      ["/v1/chat/completions", "chat"],
      ["/v1/messages", "messages"],
    ])("%s: nothing but what is named", async (path) => {
      if (kind === "anthropic") backend.answer = anthropicAnswer();
      const speaksMessages = path === "/v1/messages" && (kind === "anthropic" || kind === "federated");
      if (speaksMessages) backend.answer = anthropicAnswer();
      await post(path, kind, [
        ...FROM_CLIENT.map((name) => `${name}: ${MARK}-${name}`),
        `Authorization: Bearer ${MARK}-authorization`,
        "Connection: x-custom, idempotency-key",
      ]);
      const { headers } = backend.lastRequest;
      // The client's own body goes with the version it was written for.
      const own = speaksMessages ? ["anthropic-version", "anthropic-beta"] : [];
      const marked = Object.keys(headers).filter((name) => headers[name]?.includes(MARK));
      expect(marked.sort()).toEqual(own.sort());
      const unknown = Object.keys(headers).filter((name) => !ALLOWED_TO_BACKEND.has(name) && !own.includes(name));
      expect(unknown).toEqual([]);
      expect(Object.values(headers)).toContainEqual(expect.stringContaining(`own-key-of-${kind}`));
    });
  });

  test.each(FROM_CLIENT)("%s alone, in any letter case and twice", async (name) => {
    await post("/v1/chat/completions", "generic", [`${name.toUpperCase()}: ${MARK}-1`, `${name}: ${MARK}-2`]);
    expect(JSON.stringify(backend.lastRequest.rawHeaders)).not.toContain(MARK);
  });

  test("headers that choose who is billed, where the backend names them", async () => {
    const names = ["openai-beta", "openai-organization", "openai-project"];
    const lines = FROM_CLIENT.map((name) => `${name}: ${MARK}-${name}`);
    await post("/v1/chat/completions", LISTED, lines);
    const { headers } = backend.lastRequest;
    expect(
      Object.keys(headers)
        .filter((name) => headers[name]?.includes(MARK))
        .sort(),
    ).toEqual(names);
  });

  test.each(["generic", "anthropic", "vllm", "federated", "gemini"] as const)(
    "a backend of type %s cannot name them",
    async (type) => {
      const listed = { name: "b", type, url: backend.url, forward_headers: ["OpenAI-Organization"] };
      const { exitCode, stderr } = await runCommand({ config: { backends: [listed] } });
      expect(exitCode).toBe(1);
      expect(stderr).toContain("backends[0].forward_headers");
      expect(stderr).toContain("openai and azure");
    },
  );

  test("and no backend can name any other header", async () => {
    const listed = { name: "b", type: "openai" as const, url: backend.url, forward_headers: ["Authorization"] };
    const { exitCode, stderr } = await runCommand({ config: { backends: [listed] } });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("OpenAI-Organization, OpenAI-Project, OpenAI-Beta");
  });
});

const FROM_BACKEND = [
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authentication-info",
  "trailer",
  "upgrade",
  "via",
  "alt-svc",
  "www-authenticate",
  "authentication-info",
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "server",
  "x-powered-by",
  "location",
  "content-location",
  "refresh",
  "link",
  "etag",
  "last-modified",
  "age",
  "expires",
  "pragma",
  "vary",
  "warning",
  "content-disposition",
  "content-security-policy",
  "strict-transport-security",
  "access-control-allow-origin",
  "access-control-allow-credentials",
  "access-control-expose-headers",
  "x-frame-options",
  "x-accel-redirect",
  "x-sendfile",
  "x-request-id",
  "request-id",
  "x-trace-id",
  "x-correlation-id",
  "traceparent",
  "cf-ray",
  "cf-cache-status",
  "x-envoy-upstream-service-time",
  "openai-organization",
  "openai-project",
  "anthropic-organization-id",
  "x-goog-user-project",
  "x-ms-deployment-name",
  "x-ms-client-request-id",
  "x-signalbox-backend",
  "x-cache",
  "x-fallback-used",
  "x-should-retry",
  "x-custom",
];

describe("to a client", () => {
  const marked = Object.fromEntries(FROM_BACKEND.map((name) => [name, `${MARK}-${name}`]));

  const forms: [title: string, body: object, answer: (headers: Record<string, string>) => Answer, status: number][] = [
    ["a plain answer", {}, (headers) => ({ ...chat("hi"), headers }), 200],
    [
      "a stream",
      { stream: true },
      (headers) => {
        const stream = eventStream(chatEvents(["hi"]));
        return { ...stream, headers: { ...headers, ...stream.headers } };
      },
      200,
    ],
    [
      "an error",
      {},
      (headers) => ({ status: 429, headers, body: JSON.stringify({ error: { message: "no", type: "t" } }) }),
      429,
    ],
    ["an error that is no JSON", {}, (headers) => ({ status: 400, headers, body: "<html>" }), 400],
  ];

  for (const kind of [...KINDS.filter((each) => each !== "anthropic"), LISTED]) {
    test.each(forms)(`${kind}: %s carries none of them`, async (_title, body, answer, status) => {
      backend.answer = answer(marked);
      const response = await (await open()).chat({ model: kind, ...body });
      await response.text();
      expect(response.status).toBe(status);
      const leaked = [...response.headers].filter(([, value]) => value.includes(MARK));
      expect(leaked).toEqual([]);
    });
  }

  test("anthropic: a plain answer and an error carry none of them", async () => {
    for (const answer of [anthropicAnswer(), { status: 529, body: "{}" }]) {
      backend.answer = { ...answer, headers: { ...marked, "content-type": "application/json" } };
      const body = { model: "anthropic", max_tokens: 5, messages: [{ role: "user", content: "hi" }] };
      const response = await (await open()).post("/v1/messages", body);
      await response.text();
      expect([...response.headers].filter(([, value]) => value.includes(MARK))).toEqual([]);
    }
  });

  test("what a vendor says of its limits and itself goes on", async () => {
    const told = { "openai-version": "v", "openai-processing-ms": "7", "x-ratelimit-remaining-tokens": "3" };
    backend.answer = { ...chat("hi"), headers: told };
    const response = await (await open()).chat({ model: "openai" });
    expect(Object.fromEntries(response.headers)).toMatchObject(told);
  });
});
