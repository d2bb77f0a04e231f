// Errors that a backend tells of inside a 200, before anything of the answer: in a stream after its announcement, or as a
// whole answer that failed. Every client reads the backend's words and code, with the status that they stand for.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, eventStream, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

interface Told {
  type?: string;
  code?: string | number;
  message: string;
}

const named = (event: { type: string }): string => `event: ${event.type}\n${sseEvent(event)}`;

const RESPONSE = { id: "resp_1", object: "response", created_at: 1_790_000_000, model: "m", status: "in_progress" };

/** The public service: the type first. vLLM: the members in the order of their names. */
function responsesStream(last: { type: string }, order: "type first" | "type last" = "type first"): Answer {
  const announced = ["response.created", "response.in_progress"].map((type, sequence_number) =>
    order === "type first"
      ? { type, sequence_number, response: RESPONSE }
      : { response: RESPONSE, sequence_number, type },
  );
  return eventStream([...announced, last].map(named));
}

const failed = (error: Told) => ({
  type: "response.failed",
  sequence_number: 2,
  response: { ...RESPONSE, status: "failed", error, output: [] },
});

const CLIENTS = {
  responses: { path: "/v1/responses", ask: { input: "x" } },
  chat: { path: "/v1/chat/completions", ask: { messages: [{ role: "user", content: "x" }] } },
  messages: { path: "/v1/messages", ask: { max_tokens: 9, messages: [{ role: "user", content: "x" }] } },
} as const;

type Client = keyof typeof CLIENTS;

const names = Object.keys(CLIENTS) as Client[];

let gateway: Gateway;
const backends = {} as Record<"responses" | "chat" | "messages" | "gemini", FakeBackend>;

beforeAll(async () => {
  const types = { responses: "openai", chat: "openai", messages: "anthropic", gemini: "gemini" } as const;
  for (const name of Object.keys(types) as (keyof typeof types)[]) backends[name] = bed.backend({ models: [name] });
  gateway = await bed.gateway({
    config: {
      retry: { base_delay: "1ms", max_delay: "5ms" },
      health_checks: { enabled: false },
      circuit_breaker: { failure_threshold: 20, minimum_requests: 20 },
      backends: (Object.keys(types) as (keyof typeof types)[]).map((name) => ({
        name,
        type: types[name],
        url: backends[name].url,
        models: [name],
        api_key: "sekret",
        ...(types[name] === "openai" && { protocols: [name as "chat" | "responses"] }),
      })),
    },
  });
});

beforeEach(() => {
  for (const backend of Object.values(backends)) backend.reset(chat("unexpected"));
});

async function ask(
  client: Client,
  backend: keyof typeof backends,
  stream: boolean,
): Promise<{ status: number; retryAfter: string | null; error: Told }> {
  const { path, ask: body } = CLIENTS[client];
  const response = await gateway.post(path, { model: backend, stream, ...body });
  const { error } = (await response.json()) as { error: Told };
  return { status: response.status, retryAfter: response.headers.get("retry-after"), error };
}

const CLIENTS_FAULTS = [
  "invalid_prompt",
  "context_length_exceeded",
  "bio_policy",
  "misalignment_policy_violation",
  "image_content_policy_violation",
  "image_too_large",
  "invalid_base64_image",
  "unsupported_image_media_type",
  "failed_to_download_image",
  "empty_image_file",
];

describe("a Responses backend tells of the client's own fault", () => {
  test.each(names.flatMap((client) => CLIENTS_FAULTS.map((code) => [client, code] as const)))(
    "%s client, %s: 400 with words and code, asked once",
    async (client, code) => {
      const message = `scripted: ${code}`;
      const answers: [boolean, Answer][] = [
        [true, responsesStream(failed({ code, message }))],
        [true, responsesStream(failed({ code, message }), "type last")],
        [true, responsesStream({ type: "error", ...{ code, message, param: null, sequence_number: 2 } })],
        [true, responsesStream({ type: "error", ...{ error: { type: "invalid_request_error", code, message } } })],
        [false, { body: JSON.stringify({ ...RESPONSE, status: "failed", error: { code, message }, output: [] }) }],
      ];
      for (const [stream, answer] of answers) {
        backends.responses.reset(answer);
        const { status, error } = await ask(client, "responses", stream);
        expect({ status, message: error.message, type: error.type }).toEqual({
          status: 400,
          message,
          type: "invalid_request_error",
        });
        if (client !== "messages") expect(error.code).toBe(code);
        expect(backends.responses.requests).toHaveLength(1);
      }
    },
  );

  test("the circuit stays closed, and the backend is not blamed", async () => {
    expect(await gateway.backend("responses")).toMatchObject({ circuit: "closed", failed_requests: 0 });
  });
});

describe("limits that a Responses backend tells of", () => {
  const words = "Rate limit reached for m. Please try again in 1.2s. Visit the dashboard.";

  test.each(names)("a rate limit for a %s client: its words, and when to come back", async (client) => {
    for (const stream of [true, false]) {
      const error = { code: "rate_limit_exceeded", message: words };
      backends.responses.reset(
        stream ? responsesStream(failed(error)) : { body: JSON.stringify({ ...RESPONSE, status: "failed", error }) },
      );
      const told = await ask(client, "responses", stream);
      expect(told).toMatchObject({ status: 429, retryAfter: "2", error: { message: words } });
      expect(told.error.type).toBe(client === "messages" ? "rate_limit_error" : "rate_limit_exceeded");
    }
  });

  test.each(names)("a spent account for a %s client: 429, asked once", async (client) => {
    backends.responses.reset(responsesStream(failed({ code: "insufficient_quota", message: "scripted: spent" })));
    const told = await ask(client, "responses", true);
    expect(told).toMatchObject({ status: 429, error: { message: "scripted: spent" } });
    expect(told.error.type).toBe(client === "messages" ? "billing_error" : "insufficient_quota");
    expect(backends.responses.requests).toHaveLength(1);
  });
});

describe("before the first event with content", () => {
  const start = { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", content: [] } };
  const cases: [string, keyof typeof backends, Answer, number, RegExp, number][] = [
    [
      "Messages: a refusal behind message_start and ping",
      "messages",
      eventStream(
        [
          start,
          { type: "ping" },
          { type: "error", error: { type: "invalid_request_error", message: "scripted: words" } },
        ].map(named),
      ),
      400,
      /^invalid_request_error$/,
      1,
    ],
    [
      "Messages: overloaded behind message_start",
      "messages",
      eventStream(
        [start, { type: "error", error: { type: "overloaded_error", message: "scripted: words" } }].map(named),
      ),
      503,
      /^overloaded_error$/,
      3,
    ],
    [
      "chat: the first data is an error",
      "chat",
      eventStream([
        sseEvent({
          error: { message: "scripted: words", type: "invalid_request_error", code: "context_length_exceeded" },
        }),
      ]),
      400,
      /^invalid_request_error$/,
      1,
    ],
    [
      "chat: an error by its event's name",
      "chat",
      eventStream(['event: error\ndata: {"message":"scripted: words","type":"invalid_request_error"}\n\n']),
      400,
      /^invalid_request_error$/,
      1,
    ],
    [
      "Gemini: INVALID_ARGUMENT",
      "gemini",
      eventStream([sseEvent({ error: { code: 400, message: "scripted: words", status: "INVALID_ARGUMENT" } })]),
      400,
      /^invalid_request_error$/,
      1,
    ],
    [
      "Gemini: RESOURCE_EXHAUSTED",
      "gemini",
      eventStream([
        sseEvent({
          error: {
            code: 429,
            message: "scripted: words",
            status: "RESOURCE_EXHAUSTED",
            details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "12s" }],
          },
        }),
      ]),
      429,
      /^rate_limit/,
      3,
    ],
  ];
  test.each(cases)("%s", async (_title, name, answer, status, type, requests) => {
    for (const client of names) {
      backends[name].reset(answer);
      const told = await ask(client, name, true);
      expect({ client, status: told.status, message: told.error.message }).toEqual({
        client,
        status,
        message: "scripted: words",
      });
      expect(told.error.type).toMatch(type);
      if (status === 429) expect(told.retryAfter).toBe("12");
      expect(backends[name].requests).toHaveLength(requests);
    }
  });
});
