// What a client does is never a backend's fault: whatever a request holds, the circuits, the health and the statistics of
// the backends stay as they were, and other clients are served.

import { beforeAll, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { answerWell } from "../support/all-formats.ts";
import { RawConnection, type RawResponse } from "../support/raw-http.ts";
import { type BackendStatus, type Gateway, upstreamClient } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: answerWell });

/** One backend of each kind, with a model of its name. */
const KINDS = [
  "openai",
  "azure",
  "anthropic",
  "gemini",
  "ollama",
  "lmstudio",
  "vllm",
  "llamacpp",
  "federated",
  "generic",
] as const;

const CLIENTS = ["sockets", "fetch"] as const;

function configWith(client: (typeof CLIENTS)[number]): ConfigDocument {
  return {
    server: { upstream_client: client },
    // The first failure that counts would open a circuit.
    circuit_breaker: { enabled: true, failure_threshold: 1 },
    health_checks: { enabled: false },
    retry: { base_delay: "1ms" },
    backends: KINDS.map((type) => ({
      name: type,
      type,
      url: backend.url,
      models: [type],
      api_key: `own-key-of-${type}`,
      ...((type === "openai" || type === "azure") && { forward_headers: ["OpenAI-Organization"] as const }),
    })) as ConfigDocument["backends"],
  };
}

const gateways = new Map<string, Gateway>();

beforeAll(async () => {
  for (const client of CLIENTS) gateways.set(client, await bed.gateway({ config: configWith(client) }));
});

const gatewayOf = (client: string): Gateway => gateways.get(client) as Gateway;

/** What is known of the backends, but for what grows with every good answer. */
async function knownOf(gateway: Gateway): Promise<unknown[]> {
  await gateway.waitUntilIdle();
  return (await gateway.backends()).map(
    ({ name, circuit, state, is_healthy, failed_requests, consecutive_failures }: BackendStatus) => ({
      name,
      circuit,
      state,
      is_healthy,
      failed_requests,
      consecutive_failures,
    }),
  );
}

/** Nothing is held against any backend, and each serves another client. */
async function expectUnblamed(gateway: Gateway): Promise<void> {
  expect(await knownOf(gateway)).toEqual(
    KINDS.map((name) =>
      expect.objectContaining({ name, circuit: "closed", failed_requests: 0, consecutive_failures: 0 }),
    ),
  );
  const statuses = await Promise.all(
    KINDS.map(async (model) => {
      const answer = await gateway.chat({ model });
      await answer.text();
      return answer.status;
    }),
  );
  expect(statuses).toEqual(KINDS.map(() => 200));
}

async function post(
  gateway: Gateway,
  path: string,
  body: string | Uint8Array,
  headers: readonly string[] = [],
): Promise<RawResponse> {
  const connection = await RawConnection.open(gateway.port);
  const length = Buffer.byteLength(body);
  const head = [`POST ${path} HTTP/1.1`, "Host: localhost", `Content-Length: ${length}`, ...headers, "", ""];
  connection.write(Buffer.concat([Buffer.from(head.join("\r\n"), "latin1"), Buffer.from(body as string)]));
  try {
    return await connection.response();
  } finally {
    connection.abort();
  }
}

const JSON_TYPE = "Content-Type: application/json";

function chatOf(model: string): string {
  return JSON.stringify({ model, max_tokens: 20, messages: [{ role: "user", content: "hi" }] });
}

describe.each(CLIENTS)("headers, by %s", (client) => {
  const LONG = "x".repeat(6_000);
  const PARENT = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  /** What becomes of a request with such a header: it is sent without, or refused. */
  const CASES: readonly [name: string, path: string, model: string, line: string, status: number][] = [
    ["a control character in User-Agent", "/v1/chat/completions", "generic", "User-Agent: a\x7fb", 200],
    ["a User-Agent of 6,000 characters", "/v1/chat/completions", "generic", `User-Agent: ${LONG}`, 200],
    ["a control character in tracestate", "/v1/chat/completions", "generic", "tracestate: a=\x7f", 200],
    ["a control character in traceparent", "/v1/chat/completions", "generic", `traceparent: ${PARENT}-\x7f`, 200],
    ["a control character in X-Request-ID", "/v1/chat/completions", "generic", "X-Request-ID: a\x7fb", 200],
    ["a control character in Idempotency-Key", "/v1/chat/completions", "generic", "Idempotency-Key: a\x7fb", 400],
    ["an Idempotency-Key of 6,000 characters", "/v1/chat/completions", "generic", `Idempotency-Key: ${LONG}`, 400],
    ["a control character in anthropic-version", "/v1/messages", "anthropic", "anthropic-version: a\x7fb", 400],
    ["a control character in anthropic-beta", "/v1/messages", "anthropic", "anthropic-beta: a\x7fb", 400],
    ["an anthropic-beta of 6,000 characters", "/v1/messages", "anthropic", `anthropic-beta: ${LONG}`, 400],
    ["the same where it is not sent on", "/v1/messages", "generic", "anthropic-beta: a\x7fb", 200],
    ["a control character in a listed header", "/v1/chat/completions", "openai", "OpenAI-Organization: org\x7f", 400],
  ];

  test.each(CASES)("%s", async (_name, path, model, line, status) => {
    const gateway = gatewayOf(client);
    const state = `${client} ${upstreamClient().upstream_client ?? ""}`;
    for (let turn = 0; turn < 3; turn++) {
      const trace = line.startsWith("tracestate") ? [`traceparent: ${PARENT}`] : [];
      const answer = await post(gateway, path, chatOf(model), [JSON_TYPE, ...trace, line]);
      expect([state, answer.status, answer.text]).toEqual([state, status, expect.any(String)]);
      if (status === 400) {
        const name = line.slice(0, line.indexOf(":")).toLowerCase();
        expect(answer.text).toContain(name);
        expect(answer.text).toContain("at most 2048 characters");
      }
    }
    await expectUnblamed(gateway);
  });
});
