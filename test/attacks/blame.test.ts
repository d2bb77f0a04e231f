// What a client does is never a backend's fault: whatever a request holds, the circuits, the health and the statistics of
// the backends stay as they were, and other clients are served.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { answerWell } from "../support/all-formats.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { BackendStatus, Gateway } from "../support/gateway.ts";
import { hostileRequests } from "../support/hostile-requests.ts";
import { BOUNDARY, type FormPart, formOf } from "../support/multipart-forms.ts";
import { chatEvents, eventStream, sseEvent } from "../support/openai-answers.ts";
import { postBytes, RawConnection, type RawResponse } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

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

/** Its time for a request is over soon. */
const IMPATIENT = "impatient";

const CLIENTS = ["sockets", "fetch"] as const;

/** Of the values that may stand in a field, each of them is tried in every fourth field; 1: each in every field. */
const EVERY = Number(process.env.HOSTILE_EVERY ?? 4);

function configWith(client: (typeof CLIENTS)[number]): ConfigDocument {
  return {
    server: { upstream_client: client },
    // The first failure that counts would open a circuit.
    circuit_breaker: { enabled: true, failure_threshold: 1 },
    health_checks: { enabled: false },
    retry: { base_delay: "1ms" },
    timeouts: { models: { [IMPATIENT]: { request: "3s" } } },
    backends: KINDS.map((type) => ({
      name: type,
      type,
      url: backend.url,
      models: type === "generic" ? [type, IMPATIENT] : [type],
      api_key: `own-key-of-${type}`,
      ...((type === "openai" || type === "azure") && { forward_headers: ["OpenAI-Organization"] as const }),
    })) as ConfigDocument["backends"],
  };
}

const gateways = new Map<string, Gateway>();

beforeAll(async () => {
  for (const client of CLIENTS) gateways.set(client, await bed.gateway({ config: configWith(client) }));
});

beforeEach(() => backend.reset());

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
    for (let turn = 0; turn < 3; turn++) {
      const trace = line.startsWith("tracestate") ? [`traceparent: ${PARENT}`] : [];
      const answer = await post(gateway, path, chatOf(model), [JSON_TYPE, ...trace, line]);
      expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
      if (status === 400) {
        const name = line.slice(0, line.indexOf(":")).toLowerCase();
        expect(answer.text).toContain(name);
        expect(answer.text).toContain("at most 2048 characters");
      }
    }
    await expectUnblamed(gateway);
  });
});

describe.each(CLIENTS)("clients that leave, by %s", (client) => {
  /** A piece that fills every buffer on the way. */
  const LARGE = sseEvent({ choices: [{ index: 0, delta: { content: "x".repeat(4_000_000) } }] });
  const ASKED = { model: "generic", stream: true, messages: [{ role: "user", content: "hi" }] };
  const slowly = (...events: string[]) => eventStream(events, { betweenChunksMs: 60_000 });
  const [FIRST = ""] = chatEvents([]);

  async function open(body: object, bytes?: number): Promise<RawConnection> {
    const connection = await RawConnection.open(gatewayOf(client).port);
    const sent = postBytes("/v1/chat/completions", JSON.stringify(body));
    connection.write(sent.slice(0, bytes));
    return connection;
  }

  test("while they upload", async () => {
    for (const bytes of [20, 150, 200]) {
      const connection = await open(ASKED, bytes);
      await Bun.sleep(5); // nothing tells that the bytes were read
      connection.abort();
    }
    await expectUnblamed(gatewayOf(client));
  });

  const PHASES: readonly [name: string, answer: Answer, seen: string][] = [
    ["before the backend has answered", { hang: true }, ""],
    ["before the first event", { ...slowly(": alive\n\n", FIRST), beforeFirstChunkMs: 1 }, ""],
    ["in the middle of a stream", slowly(FIRST, FIRST), "data: "],
    ["with a backlog that they have not read", slowly(FIRST, LARGE, LARGE, FIRST), "data: "],
  ];
  test.each(PHASES)("%s", async (_name, answer, seen) => {
    for (let turn = 0; turn < 3; turn++) {
      backend.reset(answer);
      const connection = await open(ASKED);
      await waitFor("the backend is asked", () => backend.requests.length === 1);
      await waitFor("the stream has begun", () => connection.received.includes(seen));
      connection.abort();
      await gatewayOf(client).waitUntilIdle();
    }
    backend.reset();
    await expectUnblamed(gatewayOf(client));
  });

  test("clients that read nothing until their time is over", async () => {
    backend.reset(eventStream([FIRST, ...Array.from({ length: 8 }, () => LARGE), ...chatEvents(["end"])]));
    const body = JSON.stringify({ ...ASKED, model: IMPATIENT });
    const paused = await Bun.connect({
      hostname: "127.0.0.1",
      port: gatewayOf(client).port,
      socket: {
        open(socket) {
          socket.write(postBytes("/v1/chat/completions", body));
          socket.pause();
        },
        data() {},
      },
    });
    await waitFor("the backend is asked", () => backend.requests.length === 1);
    await gatewayOf(client).waitUntilIdle();
    paused.terminate();
    backend.reset();
    await expectUnblamed(gatewayOf(client));
  });
});

describe("what a backend says of a client's request", () => {
  const gateway = () => gatewayOf("sockets");
  const typedEvent = (event: { type: string }) => `event: ${event.type}\n${sseEvent(event)}`;
  const [FIRST = "", WORDS = ""] = chatEvents(["Once"]);
  const response = { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [] };
  const delta = { item_id: "i", output_index: 0, content_index: 0, delta: "Once" };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage: {} };
  const picture = { type: "image_generation.partial_image", partial_image_index: 0, b64_json: "QUJD" };

  /** After the beginning of an answer: the rest of it is refused, and the backend is well. */
  const IN_STREAMS: readonly [name: string, path: string, model: string, events: string[]][] = [
    [
      "chat: invalid_request_error",
      "/v1/chat/completions",
      "generic",
      [FIRST, WORDS, sseEvent({ error: { message: "no", type: "invalid_request_error", code: "invalid_prompt" } })],
    ],
    [
      "chat: a code that is a status",
      "/v1/chat/completions",
      "vllm",
      [FIRST, WORDS, sseEvent({ error: { message: "no", type: "BadRequestError", code: 400 } })],
    ],
    [
      "chat: content_policy_violation",
      "/v1/chat/completions",
      "azure",
      [FIRST, WORDS, sseEvent({ error: { message: "no", type: null, code: "content_policy_violation" } })],
    ],
    [
      "responses: bio_policy",
      "/v1/responses",
      "openai",
      [
        typedEvent({ type: "response.created", ...{ response } }),
        typedEvent({ type: "response.output_text.delta", ...delta }),
        typedEvent({ type: "error", ...{ code: "bio_policy", message: "no", param: null } }),
      ],
    ],
    [
      "messages: invalid_request_error",
      "/v1/messages",
      "anthropic",
      [
        typedEvent({ type: "message_start", ...{ message } }),
        typedEvent({ type: "content_block_start", ...{ index: 0, content_block: { type: "text", text: "" } } }),
        typedEvent({ type: "error", ...{ error: { type: "invalid_request_error", message: "no" } } }),
      ],
    ],
    [
      "images: moderation_blocked",
      "/v1/images/generations",
      "openai",
      [
        typedEvent(picture),
        typedEvent({
          type: "error",
          ...{ error: { type: "image_generation_user_error", code: "moderation_blocked", message: "no" } },
        }),
      ],
    ],
  ];
  test.each(IN_STREAMS)("in the middle of a stream: %s", async (_name, path, model, events) => {
    for (let turn = 0; turn < 3; turn++) {
      backend.reset(eventStream(events));
      const answer = await gateway().post(path, {
        model,
        stream: true,
        max_tokens: 20,
        ...(path.includes("images") ? { prompt: "p" } : {}),
        ...(path.includes("responses") ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] }),
      });
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain('"no"');
    }
    backend.reset();
    await expectUnblamed(gateway());
  });

  const REFUSED: readonly [name: string, model: string, status: number, message: string][] = [
    [
      "an organisation that is not the key's",
      "openai",
      401,
      "OpenAI-Organization header should match organization for API key",
    ],
    [
      "a content policy, as xAI says it",
      "generic",
      403,
      "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
    ],
    [
      "a content policy, as OpenRouter says it",
      "generic",
      403,
      "openai/gpt-4o requires moderation on OpenAI. Your input was flagged",
    ],
    [
      "a picture for llama.cpp",
      "llamacpp",
      500,
      "image input is not supported - hint: you may need to provide the mmproj",
    ],
    ["a picture for Ollama", "ollama", 500, "this model is missing data required for image input"],
    ["a request too long for llama.cpp", "llamacpp", 500, "Context size has been exceeded."],
    ["a grammar for llama.cpp", "llamacpp", 500, "Failed to parse grammar"],
  ];
  test.each(REFUSED)("%s", async (_name, model, status, message) => {
    for (let turn = 0; turn < 3; turn++) {
      backend.reset({ status, body: JSON.stringify({ error: { message, type: "server_error", code: status } }) });
      const answer = await gateway().chat({ model });
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(message)]);
    }
    backend.reset();
    await expectUnblamed(gateway());
  });

  const STATUSES = [400, 404, 405, 406, 408, 409, 410, 411, 413, 414, 415, 416, 417, 421, 422, 424, 426, 428, 431, 451];
  test.each(STATUSES)("HTTP %d", async (status) => {
    for (const model of ["generic", "anthropic", "gemini"]) {
      backend.reset({ status, body: JSON.stringify({ error: { message: "scripted", type: "t" } }) });
      expect([model, (await gateway().chat({ model })).status]).toEqual([model, status]);
    }
    backend.reset();
    await expectUnblamed(gateway());
  });
});

/** Runs some of the tasks at the same time. */
async function several<Task>(tasks: Iterable<Task>, run: (task: Task) => Promise<void>): Promise<void> {
  const waiting = tasks[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) await run(next.value);
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

describe("what stands in requests", () => {
  test("in every field: an answer, or a refusal that is the client's", async () => {
    const gateway = gatewayOf("sockets");
    const troubles: string[] = [];
    await several(hostileRequests(KINDS, EVERY), async ({ path, what, body }) => {
      const answer = await gateway.post(path, body);
      await answer.text();
      if (answer.status >= 500) troubles.push(`${path}, ${what}: ${answer.status}`);
    });
    expect(troubles).toEqual([]);
    await expectUnblamed(gateway);
  });

  const CONTENT_TYPE = `Content-Type: multipart/form-data; boundary=${BOUNDARY}`;
  const FORMS: readonly [name: string, parts: FormPart[], header?: string][] = [
    ["a file name with quotes and line breaks", [file({ filename: 'a%22b"\\\r\n\x7f.mp3' })]],
    ["a file name of 10,000 characters", [file({ filename: "x".repeat(10_000) })]],
    ["a field with a name of 10,000 characters", [file(), { name: "x".repeat(10_000), content: "y" }]],
    ["a field name with control characters", [file(), { name: "a\x7f\x01b", content: "y" }]],
    ["fields that no UTF-8 is", [file(), { name: "prompt", content: new Uint8Array([0xff, 0xfe, 0x00]) }]],
    ["a type with control characters", [file({ contentType: "audio/mpeg\x7f" })]],
    ["a language of 100,000 characters", [file(), { name: "language", content: "x".repeat(100_000) }]],
    ["a boundary in the content", [file({ content: `\r\n--${BOUNDARY}--\r\n` })]],
    ["a control character behind the boundary", [file()], `${CONTENT_TYPE}; x=\x7f`],
    ["a control character in the boundary", [file()], `Content-Type: multipart/form-data; boundary=a\x7fb`],
  ];

  function file(more: Partial<FormPart> = {}): FormPart {
    return { name: "file", filename: "a.mp3", contentType: "audio/mpeg", content: "sound", ...more };
  }

  test.each(FORMS)("in forms: %s", async (_name, parts, header = CONTENT_TYPE) => {
    const gateway = gatewayOf("sockets");
    for (const [path, model] of [
      ["/v1/audio/transcriptions", "openai"],
      ["/v1/audio/translations", "generic"],
      ["/v1/images/edits", "federated"],
      ["/v1/images/variations", "openai"],
    ] as const) {
      const form = formOf([{ name: "model", content: model }, ...parts]);
      const answer = await post(gateway, path, form, [header]);
      expect([path, answer.status < 500, answer.text]).toEqual([path, true, answer.text]);
    }
    await expectUnblamed(gateway);
  });

  const BROKEN: readonly [name: string, body: string | Uint8Array, headers?: string[]][] = [
    ["no JSON", "{"],
    ["bytes that are no UTF-8", Buffer.from(chatOf("generic").replace("hi", "\xff\xfe"), "latin1")],
    ["a byte order mark", `\ufeff${chatOf("generic")}`],
    ["members that are named twice", chatOf("generic").replace("{", '{"model":"vllm",')],
    ["a model that is no text", chatOf("generic").replace('"generic"', "[]")],
    ["a model with a lone surrogate", chatOf("generic").replace('"generic"', '"\\ud800"')],
    ["a model that is a path", chatOf("gemini").replace('"gemini"', '"../../gemini"')],
    ["a model with a query", chatOf("gemini").replace('"gemini"', '"gemini?x=y#"')],
    ["a type that is none", chatOf("generic"), ["Content-Type: a\x7fb"]],
    ["Content-Encoding", chatOf("generic"), [JSON_TYPE, "Content-Encoding: gzip"]],
    ["Expect", chatOf("generic"), [JSON_TYPE, "Expect: 200-ok"]],
    ["Upgrade", chatOf("generic"), [JSON_TYPE, "Connection: upgrade", "Upgrade: websocket"]],
  ];
  test.each(BROKEN)("%s", async (_name, body, headers = [JSON_TYPE]) => {
    const gateway = gatewayOf("sockets");
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/chat/completions?x=%00&y=\x7f"]) {
      const answer = await post(gateway, path, body, headers);
      expect([path, answer.status < 500, answer.text]).toEqual([path, true, answer.text]);
    }
    await expectUnblamed(gateway);
  });
});
