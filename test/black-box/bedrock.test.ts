// Backends of type bedrock, in front of a strict fake that checks signatures: Claude nearly untouched, other models by Converse,
// embeddings, counts, model lists, errors in the right words, broken frames, takeovers and clients that leave.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { splitSse } from "../support/sse-reader.ts";
import {
  BEDROCK_KEY,
  BEDROCK_TOKEN,
  eventFrame,
  exceptionFrame,
  startStrictBedrock,
} from "../support/strict/bedrock.ts";
import { answer, call, failure, type ScriptEntry, text } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

type BackendConfig = NonNullable<ConfigDocument["backends"]>[number];

const NOVA = "us.amazon.nova-2-lite-v1:0";
const CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3";
const TITAN = "amazon.titan-embed-text-v2:0";
const COHERE = "cohere.embed-v4:0";

const bed = createTestBed();
const script: ScriptEntry[] = [];
const strict = await startStrictBedrock(() => script.shift() ?? failure(500, "the script is empty"), {
  models: [NOVA, TITAN, COHERE, "stability.image-1"],
  profiles: [CLAUDE, PROFILE, "eu.amazon.nova-pro-v1:0"],
  key: { ...BEDROCK_KEY, sessionToken: "sekret-session" },
});
afterAll(() => strict.stop());

const signed: BackendConfig = {
  name: "aws",
  type: "bedrock",
  url: strict.url,
  region: "us-east-1",
  access_key_id: BEDROCK_KEY.accessKeyId,
  secret_access_key: BEDROCK_KEY.secretAccessKey,
  session_token: "sekret-session",
};
/** Checks are requests of their own, which would be counted. */
const unchecked = {
  retry: { max_attempts: 1 },
  health_checks: { enabled: false },
  circuit_breaker: { enabled: false },
};
const gateway = await bed.gateway({ config: { ...unchecked, backends: [signed] } });

afterEach(() => {
  expect(strict.refusals).toEqual([]);
  strict.requests.length = 0;
  script.length = 0;
});

const hello = (more: object = {}) => ({
  model: CLAUDE,
  max_tokens: 20,
  messages: [{ role: "user", content: "Hi" }],
  ...more,
});

test("models are those of both lists, in pages, without those that only draw", async () => {
  const { data } = (await (await gateway.fetch("/v1/models")).json()) as { data: { id: string; owned_by: string }[] };
  const listed = [NOVA, TITAN, COHERE, CLAUDE, PROFILE, "eu.amazon.nova-pro-v1:0"];
  expect(data.map(({ id }) => id)).toEqual(listed);
  expect(data.map(({ owned_by }) => owned_by)).toEqual(listed.map((id) => (id === CLAUDE ? "anthropic" : "amazon")));
  expect(strict.probes.map(({ target }) => target)).toEqual([
    "/foundation-models?byInferenceType=ON_DEMAND",
    "/inference-profiles?maxResults=1000",
    "/inference-profiles?maxResults=1000&nextToken=2",
  ]);
});

test("a check is a request that no model answers", async () => {
  const checked = await bed.gateway({ config: { backends: [signed] } });
  expect(await checked.backend("aws")).toMatchObject({ is_healthy: true });
  expect(strict.last).toMatchObject({ target: "/model/signalbox-health-check/converse", refused: { status: 400 } });
  strict.requests.length = 0;
});

describe("Claude by InvokeModel", () => {
  test("a Messages client's own body passes, but for what stands elsewhere here", async () => {
    script.push(answer(text("hello")));
    const body = `{"model": "${CLAUDE}", "max_tokens": 20, "metadata": {"user_id": "u-1.0"},  "messages": [{"role": "user", "content": "Hi"}], "stream": false}`;
    const response = await gateway.post("/v1/messages", body, {
      headers: { "anthropic-version": "2023-06-01", "anthropic-beta": "one-2026-01-01, two-2026-01-01" },
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ type: "message", content: [{ type: "text", text: "hello" }] });
    const { target, text: sent, headers, body: parsed } = strict.last;
    expect(target).toBe(`/model/${encodeURIComponent(CLAUDE)}/invoke`);
    expect(sent).toStartWith(
      '{"max_tokens": 20,"metadata": {"user_id": "u-1.0"},"messages": [{"role": "user", "content"',
    );
    expect(parsed).toMatchObject({
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: ["one-2026-01-01", "two-2026-01-01"],
    });
    expect([parsed.model, parsed.stream, headers["anthropic-beta"]]).toEqual([undefined, undefined, undefined]);
    expect(headers["x-amz-security-token"]).toBe("sekret-session");
  });

  test("a stream comes out of its frames as the vendor's own events", async () => {
    script.push({ ...answer(text("hello there"), call("look", { at: "Oslo" })), usage: { input: 10, output: 7 } });
    const tools = [{ name: "look", input_schema: { type: "object" } }];
    const response = await gateway.post("/v1/messages", hello({ stream: true, tools }));
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    const { events } = splitSse(await response.text());
    expect(events.every(({ event, data = "" }) => (JSON.parse(data) as { type: string }).type === event)).toBe(true);
    expect([events.at(0)?.event, events.at(-1)?.event]).toEqual(["message_start", "message_stop"]);
    expect(events.at(-2)?.data).toContain('"output_tokens":7');
    expect(strict.last.target).toEndWith("/invoke-with-response-stream");
  });

  test("pictures behind addresses are fetched, because the service fetches none", async () => {
    const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    using files = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(Buffer.from(picture, "base64"), { headers: { "content-type": "image/png" } }),
    });
    const near = await bed.gateway({
      config: {
        ...unchecked,
        server: { allowed_link_hosts: ["127.0.0.1"] },
        backends: [signed],
      },
    });
    script.push(answer(text("a pixel")));
    const source = { type: "url", url: `http://127.0.0.1:${files.port}/a.png` };
    const response = await near.post(
      "/v1/messages",
      hello({ messages: [{ role: "user", content: [{ type: "image", source }] }] }),
    );
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("a pixel")]);
    expect(strict.last.text).toContain('"type":"base64"');
  });

  test("tokens are counted by the service", async () => {
    const response = await gateway.post("/v1/messages/count_tokens", {
      ...hello({ thinking: { type: "enabled", budget_tokens: 2048 } }),
      max_tokens: undefined,
    });
    expect([response.status, await response.json()]).toEqual([200, { input_tokens: 42 }]);
    expect(strict.last.target).toEndWith("/count-tokens");
  });

  test("a name of the operator's stands for a profile whose id tells nothing", async () => {
    const named = await bed.gateway({
      config: { ...unchecked, backends: [{ ...signed, deployments: { "claude-on-a-profile": PROFILE } }] },
    });
    // The fake takes bodies of Messages for models of Anthropic only, so that it says which way was taken.
    const response = await named.chat({ model: "claude-on-a-profile" });
    expect(await response.text()).toContain("Operation not allowed");
    expect(strict.last.target).toBe(`/model/${encodeURIComponent(PROFILE)}/invoke`);
    strict.requests.length = 0;
    script.push(answer(text("from a profile")));
    const converse = await gateway.chat({ model: PROFILE });
    expect(await converse.json()).toMatchObject({ choices: [{ message: { content: "from a profile" } }] });
    expect(strict.last.target).toBe(`/model/${encodeURIComponent(PROFILE)}/converse`);
  });
});

describe("embeddings", () => {
  test("Titan takes one text at a time, and the answer is one list", async () => {
    const response = await gateway.post("/v1/embeddings", { model: TITAN, input: ["a", "bcd"], dimensions: 256 });
    expect(response.status).toBe(200);
    const { data, usage, model } = (await response.json()) as {
      data: { index: number; embedding: number[] }[];
      usage: object;
      model: string;
    };
    expect(data.map(({ index, embedding }) => [index, embedding[0], embedding.length])).toEqual([
      [0, 1, 256],
      [1, 3, 256],
    ]);
    expect([usage, model]).toEqual([{ prompt_tokens: 2, total_tokens: 2 }, TITAN]);
    expect(strict.requests.map(({ body }) => body)).toEqual([
      { inputText: "a", dimensions: 256 },
      { inputText: "bcd", dimensions: 256 },
    ]);
  });

  test("Cohere takes 96 texts, and is told what the vectors are for", async () => {
    const input = Array.from({ length: 100 }, (_, index) => "x".repeat(index + 1));
    const response = await gateway.post("/v1/embeddings", {
      model: COHERE,
      input,
      input_type: "search_query",
      encoding_format: "base64",
    });
    const { data } = (await response.json()) as { data: { embedding: string }[] };
    const firsts = data.map(({ embedding }) => Buffer.from(embedding, "base64").readFloatLE(0));
    expect(firsts).toEqual(input.map(({ length }) => length));
    expect(strict.requests.map(({ body }) => [(body.texts as string[]).length, body.input_type])).toEqual([
      [96, "search_query"],
      [4, "search_query"],
    ]);
  });

  test("what a model cannot embed is refused by its place", async () => {
    for (const [body, param] of [
      [{ model: TITAN, input: [1, 2] }, "input[0]"],
      [{ model: COHERE, input: "a", input_type: "poetry" }, "input_type"],
    ] as const) {
      const response = await gateway.post("/v1/embeddings", body);
      expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
    }
    expect(strict.requests).toEqual([]);
  });
});

describe("errors", () => {
  const told: [status: number, exception: string, expected: number, type: string][] = [
    [429, "ThrottlingException", 429, "rate_limit_error"],
    [400, "ValidationException", 400, "invalid_request_error"],
    [400, "ServiceQuotaExceededException", 429, "rate_limit_error"],
    [404, "ResourceNotFoundException", 404, "not_found_error"],
    [408, "ModelTimeoutException", 504, "timeout_error"],
    [424, "ModelErrorException", 502, "api_error"],
    [429, "ModelNotReadyException", 503, "overloaded_error"],
    [500, "InternalServerException", 500, "api_error"],
    [503, "ServiceUnavailableException", 503, "overloaded_error"],
  ];

  test.each(told)("%i %s is %i for every client", async (status, type, expected, word) => {
    for (const model of [NOVA, CLAUDE]) {
      script.push(failure(status, "As AWS says it.", { type }));
      const chat = await gateway.chat({ model });
      expect([chat.status, await chat.json()]).toMatchObject([
        expected,
        { error: { type: word, message: "As AWS says it." } },
      ]);
      script.push(failure(status, "As AWS says it.", { type }));
      const messages = await gateway.post("/v1/messages", hello({ model }));
      expect([messages.status, await messages.json()]).toMatchObject([
        expected,
        { type: "error", error: { type: word, message: "As AWS says it." } },
      ]);
    }
  });

  test("a refused key is the operator's business", async () => {
    const other = await bed.gateway({
      config: { backends: [{ ...signed, secret_access_key: "sekret-wrong", models: [NOVA] }] },
    });
    const response = await other.chat({ model: NOVA });
    const body = await response.text();
    expect(body).toContain("does not accept the gateway's own credential");
    expect(body).not.toMatch(/sekret|AKID|Signature/);
    expect(JSON.stringify(await other.backend("aws"))).toContain("the credential is refused");
    expect(strict.last.refused?.code).toBe("InvalidSignatureException");
    strict.requests.length = 0;
  });

  test("a bearer token is sent as it is", async () => {
    const bearer = await bed.gateway({
      config: {
        ...unchecked,
        backends: [{ name: "aws", type: "bedrock", url: strict.url, region: "us-east-1", api_key: BEDROCK_TOKEN }],
      },
    });
    script.push(answer(text("hello")));
    expect((await bearer.chat({ model: NOVA })).status).toBe(200);
    expect(strict.last.headers.authorization).toBe(`Bearer ${BEDROCK_TOKEN}`);
    expect(strict.last.headers["x-amz-date"]).toBeUndefined();
  });

  test.each([
    [{ region: undefined }, "region", "is required for a backend of type bedrock"],
    [{ region: "Frankfurt" }, "region", "expected a region of AWS"],
    [{ secret_access_key: undefined, session_token: undefined }, "secret_access_key", "beside access_key_id"],
    [{ profile: "dev" }, "profile", "remove one"],
    [{ type: "openai" }, "region", "belongs to backends of type bedrock"],
  ])("a configuration with %j names the key and what helps", async (change, key, message) => {
    const entry = JSON.parse(JSON.stringify({ ...signed, ...change })) as BackendConfig;
    const starting = bed.gateway({ config: { backends: [entry] } });
    const words = await starting.then(
      () => "it has started",
      (error: unknown) => String(error),
    );
    expect(words).toMatch(new RegExp(`"backends",0,"${key}"|backends\\[0\\]\\.${key}:`));
    expect(words).toContain(message);
  });
});

describe("the admin API", () => {
  test("shows no secret, and sends the credentials of this machine nowhere", async () => {
    const admin = new AdminClient(gateway);
    const { text: shown } = await admin.send("GET", "/admin/config/backends");
    expect(shown).toContain(BEDROCK_KEY.accessKeyId);
    expect(shown).not.toContain("sekret");
    const elsewhere = { name: "evil", type: "bedrock", region: "us-east-1", url: "http://127.0.0.1:9", models: ["m"] };
    const refused = await admin.send("POST", "/admin/backends", { body: elsewhere });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("credentials of this machine")]);
  });

  test("changes keys while the gateway runs", async () => {
    const wrong = { ...signed, secret_access_key: "sekret-wrong", models: [NOVA] };
    const changing = await bed.gateway({ config: { ...unchecked, backends: [wrong] } });
    expect((await changing.chat({ model: NOVA })).status).toBe(403);
    const right = { ...wrong, secret_access_key: BEDROCK_KEY.secretAccessKey };
    const changed = await new AdminClient(changing).send("PUT", "/admin/backends/aws", { body: right });
    expect([changed.status, changed.text]).toEqual([200, expect.not.stringContaining("sekret")]);
    script.push(answer(text("hello")));
    expect((await changing.chat({ model: NOVA })).status).toBe(200);
    strict.requests.length = 0;
  });
});

/** A stream of Converse from a scripted server that can do everything wrong. */
const frames = (...all: Uint8Array[]): Answer => ({
  headers: { "Content-Type": "application/vnd.amazon.eventstream" },
  body: all,
});
const START = eventFrame(["messageStart", { role: "assistant" }]);
const delta = (words: string) => eventFrame(["contentBlockDelta", { delta: { text: words }, contentBlockIndex: 0 }]);
const END = [
  eventFrame(["contentBlockStop", { contentBlockIndex: 0 }]),
  eventFrame(["messageStop", { stopReason: "end_turn" }]),
  eventFrame(["metadata", { usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 }, metrics: { latencyMs: 1 } }]),
];

async function streamed(of: Gateway, model = NOVA): Promise<string> {
  const response = await of.chat({ model, stream: true });
  return await response.text();
}

describe("streams that break", async () => {
  const first = bed.backend();
  const second = bed.backend();
  const config = (name: string, url: string): BackendConfig => ({
    name,
    type: "bedrock",
    url,
    region: "us-east-1",
    api_key: BEDROCK_TOKEN,
    models: [NOVA],
  });
  const both = await bed.gateway({
    config: {
      ...unchecked,
      retry: { max_attempts: 2, base_delay: "1ms", max_delay: "1ms" },
      backends: [config("first", first.url), { ...config("second", second.url), weight: 0 }],
    },
  });
  const lone = await bed.gateway({
    config: { ...unchecked, backends: [config("first", first.url)] },
  });
  afterEach(() => {
    first.reset();
    second.reset();
  });

  test("a stream cut into pieces of any size is the same", async () => {
    first.answer = frames(START, delta("Hello "), delta("there."), ...END);
    const expected = (await streamed(lone)).replaceAll(/"(id|created)":[^,]+,/g, "");
    expect(expected).toContain("there.");
    for (const chunkBytes of [1, 3, 7, 64]) {
      first.answer = { ...frames(START, delta("Hello "), delta("there."), ...END), chunkBytes };
      expect((await streamed(lone)).replaceAll(/"(id|created)":[^,]+,/g, "")).toBe(expected);
    }
  });

  const broken = delta("changed on its way");
  broken[broken.length - 1] = (broken.at(-1) as number) ^ 1;

  test("before its first word, another backend answers unseen", async () => {
    for (const bad of [
      [START, broken],
      [START, exceptionFrame("ThrottlingException", "Slow down.")],
    ]) {
      first.answer = frames(...bad);
      second.answer = frames(START, delta("From the second."), ...END);
      expect(await streamed(both)).toContain("From the second.");
      expect(first.requests.length).toBe(1);
      first.reset();
      second.reset();
    }
  });

  test.each([
    ["a wrong checksum", [START, delta("Hello "), broken]],
    ["an exception", [START, delta("Hello "), exceptionFrame("ModelStreamErrorException", "It fell over.")]],
    ["half a frame", [START, delta("Hello "), delta("there.").subarray(0, 20)]],
  ])("after some words, another backend goes on behind %s", async (_, pieces) => {
    first.answer = frames(...pieces);
    second.answer = frames(START, delta("there."), ...END);
    const body = await streamed(both);
    const { events } = splitSse(body);
    const words = events.flatMap(({ data = "" }) =>
      data === "[DONE]"
        ? []
        : ((JSON.parse(data) as { choices?: { delta?: { content?: string } }[] }).choices ?? []).map(
            ({ delta }) => delta?.content ?? "",
          ),
    );
    expect(words.join("")).toBe("Hello there.");
    expect(body).toEndWith("data: [DONE]\n\n");
    const { messages } = second.lastRequest.json<{ messages: { role: string; content: { text: string }[] }[] }>();
    expect(messages.at(-1)).toEqual({ role: "assistant", content: [{ text: "Hello" }] });
  });

  test("without another backend the client is told", async () => {
    first.answer = frames(START, delta("Hello "), exceptionFrame("ModelStreamErrorException", "It fell over."));
    const body = await streamed(lone);
    expect(body).toContain("Hello ");
    expect(body).toContain("It fell over.");
    expect(body).not.toContain("[DONE]");
    first.answer = frames(START, delta("Hello "), broken);
    expect(await streamed(lone)).toContain("a frame with a wrong checksum");
    await waitFor("the broken connection is closed", () => first.busyConnections === 0);
  });

  test("what is no stream of frames is told as such", async () => {
    first.answer = {
      headers: { "Content-Type": "application/vnd.amazon.eventstream" },
      body: "<html>Bad Gateway</html>",
    };
    expect(await streamed(lone)).toContain("broke the connection");
    first.answer = { status: 502, headers: { "Content-Type": "text/html" }, body: "<html>Bad Gateway</html>" };
    const response = await lone.chat({ model: NOVA, stream: true });
    expect([response.status, await response.text()]).toMatchObject([502, expect.stringContaining("502")]);
  });

  test("a refusal is told by its header where its body says nothing", async () => {
    const headers = { "x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/" };
    for (const broken of [
      { body: "<html>Slow down</html>" },
      { body: '{"message":"Slow down."}', breakAfterBytes: 5 },
      { body: " ".repeat(2 * 1024 * 1024) },
    ]) {
      first.answer = { status: 400, headers, ...broken };
      const response = await lone.chat({ model: NOVA });
      expect(response.status).toBe(429);
      expect(await response.text()).not.toContain("html");
    }
  });

  test("a client that leaves frees the backend", async () => {
    const held = Promise.withResolvers<void>();
    first.answer = {
      ...frames(START, delta("Hello "), ...END),
      beforeChunk: (index) => (index === 2 ? held.promise : undefined),
    };
    const leaving = new AbortController();
    const response = await lone.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: NOVA, stream: true, messages: [{ role: "user", content: "Hi" }] }),
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();
    await waitFor("the backend is free", () => first.busyConnections === 0);
    held.resolve();
  });
});
