// Web search tools on models whose engines cannot search: a scripted chat engine, a scripted search service, and the
// official clients in front of the gateway.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Answer, RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const KEY = "sekret-search-key";
const FOUND: Answer = {
  body: JSON.stringify({
    organic: [
      { title: "Cats", link: "https://cats.test/purr", snippet: "Cats purr at 25 hertz.", date: "May 1, 2026" },
      { title: "Dogs", link: "https://dogs.test/", snippet: "Dogs do not." },
    ],
  }),
};

const bed = createTestBed();
const engine = bed.backend();
const vendor = bed.backend();
const own = bed.backend();
const service = bed.backend({ answer: FOUND });
let gateway: Gateway;
let anthropic: Anthropic;
let openai: OpenAI;

const BACKENDS = [
  { name: "engine", type: "vllm", url: engine.url, models: ["m"] },
  { name: "own", type: "vllm", protocols: ["messages" as const], url: own.url, models: ["own"] },
  { name: "vendor", type: "anthropic", url: vendor.url, models: ["claude"], api_key: "sekret-vendor" },
];

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1, base_delay: "1ms" },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: BACKENDS,
      web_search: { provider: "serper", api_key: KEY, base_url: service.url, max_rounds: 3, timeout: "5s" },
    },
  });
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: "any", maxRetries: 0 });
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "any", maxRetries: 0 });
});

beforeEach(() => {
  engine.reset(chatStream(["no more to say"]));
  vendor.reset();
  service.reset(FOUND);
});

interface Call {
  id?: string;
  name?: string;
  input?: unknown;
}

/** A stream that says something and calls tools, the arguments in two pieces. */
function calling(text: string, calls: readonly Call[], more: Answer = {}): Answer {
  const chunk = (delta: object, finish: string | null = null) =>
    sseEvent({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  const events = calls.flatMap(({ id, name = "web_search", input = { query: "purring" } }, index) => {
    const json = JSON.stringify(input);
    const started = {
      index,
      id: id ?? `call_${index}`,
      type: "function",
      function: { name, arguments: json.slice(0, 4) },
    };
    return [
      chunk({ tool_calls: [started] }),
      chunk({ tool_calls: [{ index, function: { arguments: json.slice(4) } }] }),
    ];
  });
  return eventStream(
    [
      chunk({ role: "assistant", content: "" }),
      chunk({ content: text }),
      ...events,
      chunk({}, "tool_calls"),
      sseEvent({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [],
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      }),
      "data: [DONE]\n\n",
    ],
    more,
  );
}

const TOOL = { type: "web_search_20250305", name: "web_search", max_uses: 2 } as const;
const ASKED = {
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "Do cats purr?" }],
  tools: [TOOL],
} as const;
const ASKED_IN_CHAT = {
  model: "m",
  messages: [{ role: "user", content: "Do cats purr?" }],
  web_search_options: {},
} as const;

function asked(): Anthropic.MessageCreateParamsNonStreaming {
  return structuredClone(ASKED) as unknown as Anthropic.MessageCreateParamsNonStreaming;
}

interface ChatBody {
  stream: boolean;
  messages: {
    role: string;
    content: unknown;
    tool_calls?: { id: string; function: { name: string; arguments: string } }[];
    tool_call_id?: string;
  }[];
  tools?: { type: string; function: { name: string } }[];
}

const bodyOf = (request: RecordedRequest | undefined): ChatBody => (request as RecordedRequest).json<ChatBody>();

function expectSearched(message: Anthropic.Message): void {
  expect(message.content).toMatchObject([
    { type: "text", text: "I look." },
    { type: "server_tool_use", name: "web_search", input: { query: "purring" } },
    {
      type: "web_search_tool_result",
      content: [
        { type: "web_search_result", url: "https://cats.test/purr", title: "Cats", page_age: "May 1, 2026" },
        { type: "web_search_result", url: "https://dogs.test/", title: "Dogs", page_age: null },
      ],
    },
    { type: "text", text: "Yes, they do." },
  ]);
  const [, use, result] = message.content as unknown as [
    unknown,
    { id: string },
    { tool_use_id: string; content: { encrypted_content: string }[] },
  ];
  expect(use.id).toMatch(/^srvtoolu_[0-9a-f]+$/);
  expect(result.tool_use_id).toBe(use.id);
  for (const hit of result.content) expect(hit.encrypted_content).not.toBe("");
  expect(message).toMatchObject({ model: "m", role: "assistant", stop_reason: "end_turn" });
  expect(message.usage).toMatchObject({
    input_tokens: 10,
    output_tokens: 5,
    server_tool_use: { web_search_requests: 1 },
  });
}

function expectRounds(): void {
  const [first, second] = engine.requests.map((request) => bodyOf(request)) as [ChatBody, ChatBody];
  expect(engine.requests).toHaveLength(2);
  expect(first.stream).toBe(true);
  expect(first.tools?.map(({ type, function: { name } }) => `${type} ${name}`)).toEqual(["function web_search"]);
  const [said, told] = second.messages.slice(-2);
  expect(said).toMatchObject({ role: "assistant", content: "I look." });
  expect(JSON.parse(said?.tool_calls?.[0]?.function.arguments ?? "")).toEqual({ query: "purring" });
  expect(told).toMatchObject({ role: "tool", tool_call_id: said?.tool_calls?.[0]?.id });
  expect(String(told?.content)).toContain("Cats purr at 25 hertz.");
  expect(service.requests).toHaveLength(1);
  expect(service.lastRequest.headers["x-api-key"]).toBe(KEY);
  expect(service.lastRequest.json()).toEqual({ q: "purring", num: 5 });
}

describe("a client of the messages format", () => {
  test("gets a stream with the search in it", async () => {
    engine.queue(calling("I look.", [{}]), chatStream(["Yes, ", "they do."]));
    const stream = anthropic.messages.stream(asked());
    expectSearched(await stream.finalMessage());
    expectRounds();
    await gateway.waitUntilIdle();
  });

  test("gets a whole answer with the search in it", async () => {
    engine.queue(calling("I look.", [{}]), chatStream(["Yes, ", "they do."]));
    expectSearched(await anthropic.messages.create(asked()));
    expectRounds();
  });

  test("brings the search back in its next request, and the model sees what was found", async () => {
    engine.queue(calling("I look.", [{}]), chatStream(["Yes, they do."]));
    const { content } = await anthropic.messages.create(asked());
    engine.reset(chatStream(["They are cats."]));
    const next = asked();
    next.messages.push(
      { role: "assistant", content: content as Anthropic.ContentBlockParam[] },
      { role: "user", content: "Why?" },
    );
    await anthropic.messages.create(next);
    const { messages } = bodyOf(engine.lastRequest);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(messages[1]?.tool_calls?.[0]?.function.name).toBe("web_search");
    expect(String(messages[2]?.content)).toContain("Cats purr at 25 hertz.");
  });

  test("is told when the service fails, and so is the model", async () => {
    service.reset(failure(500, `broken ${KEY}`));
    engine.queue(calling("I look.", [{}]), chatStream(["I could not look."]));
    const { content, usage } = await anthropic.messages.create(asked());
    expect(content).toMatchObject([
      { type: "text" },
      { type: "server_tool_use" },
      { type: "web_search_tool_result", content: { type: "web_search_tool_result_error", error_code: "unavailable" } },
      { type: "text", text: "I could not look." },
    ]);
    expect(usage.server_tool_use ?? null).toBeNull();
    const told = bodyOf(engine.lastRequest).messages.at(-1);
    expect(told?.role).toBe("tool");
    expect(String(told?.content)).toContain("not available");
    const line = await waitFor("the failure is logged", () =>
      gateway.printed.logEntries.find(({ msg }) => msg === "a search failed"),
    );
    expect(line).toMatchObject({ provider: "serper", error_code: "unavailable", reason: "HTTP 500" });
    expect(JSON.stringify(line)).not.toContain("purring");
  });

  test("max_uses and the bound of rounds hold", async () => {
    engine.reset(calling("Again.", [{}]));
    const { content, stop_reason } = await anthropic.messages.create(asked());
    expect(service.requests).toHaveLength(2);
    expect(engine.requests).toHaveLength(4);
    expect(bodyOf(engine.lastRequest).tools).toBeUndefined();
    const errors = content.flatMap((block) =>
      block.type === "web_search_tool_result" && !Array.isArray(block.content) ? [block.content] : [],
    );
    expect(errors.map(({ error_code }) => error_code)).toEqual(["max_uses_exceeded", "max_uses_exceeded"]);
    expect(stop_reason).toBe("end_turn");
  });

  test("gets the calls of its own tools behind the results", async () => {
    engine.queue(calling("Both.", [{ id: "call_s" }, { id: "call_own", name: "own", input: { x: 1 } }]));
    const body = asked();
    body.tools?.push({ name: "own", input_schema: { type: "object" } });
    const message = await anthropic.messages.stream(body).finalMessage();
    expect(message.content.map(({ type }) => type)).toEqual([
      "text",
      "server_tool_use",
      "web_search_tool_result",
      "tool_use",
    ]);
    expect(message.content.at(-1)).toMatchObject({ id: "call_own", name: "own", input: { x: 1 } });
    expect(message.stop_reason).toBe("tool_use");
    expect(engine.requests).toHaveLength(1);
  });

  test("a backend's error in the first turn is answered with its status", async () => {
    for (const stream of [false, true]) {
      engine.reset(failure(429, "busy"));
      const response = await gateway.post("/v1/messages", { ...ASKED, stream });
      expect(response.status).toBe(429);
      expect(await response.json()).toMatchObject({
        type: "error",
        error: { type: "rate_limit_error", message: "busy" },
      });
    }
  });

  test("one in a later turn is told in the stream, or answered", async () => {
    engine.queue(calling("I look.", [{}]), failure(400, "too long"));
    const reading = await readSse(await gateway.post("/v1/messages", { ...ASKED, stream: true }));
    const names = reading.events.map(({ event }) => event);
    expect(names.filter((name) => name === "message_start")).toHaveLength(1);
    expect(names.at(-1)).toBe("error");
    expect(reading.data.at(-1)).toContain("too long");
    engine.queue(calling("I look.", [{}]), failure(400, "too long"));
    const response = await gateway.post("/v1/messages", ASKED);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error", message: "too long" },
    });
    await gateway.waitUntilIdle();
  });

  test("a stream that breaks off in a later turn ends with an error", async () => {
    engine.queue(calling("I look.", [{}]), chatStream(["half"], { finishReason: null, done: false }));
    const reading = await readSse(await gateway.post("/v1/messages", { ...ASKED, stream: true }));
    expect(reading.events.at(-1)?.event).toBe("error");
    expect(reading.data.join("")).toContain("half");
    await gateway.waitUntilIdle();
  });

  test("an unknown model is refused as ever", async () => {
    const response = await gateway.post("/v1/messages", { ...ASKED, model: "unknown" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  });

  test("turns do not share the client's idempotency key", async () => {
    engine.queue(calling("I look.", [{}]), chatStream(["Yes."]));
    await gateway.post("/v1/messages", ASKED, { headers: { "Idempotency-Key": "once" } });
    expect(engine.requests.map(({ headers }) => headers["idempotency-key"])).toEqual([undefined, undefined]);
  });

  test("an engine that speaks the same format, but cannot search, is helped as well", async () => {
    const event = (data: { type: string }) => `event: ${data.type}\n${sseEvent(data)}`;
    const answer = (block: object, delta: object, reason: string): Answer =>
      eventStream(
        [
          {
            type: "message_start",
            message: {
              id: "msg_1",
              type: "message",
              role: "assistant",
              model: "own",
              content: [],
              stop_reason: null,
              usage: { input_tokens: 4, output_tokens: 1 },
            },
          },
          { type: "content_block_start", index: 0, content_block: block },
          { type: "content_block_delta", index: 0, delta },
          { type: "content_block_stop", index: 0 },
          { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 2 } },
          { type: "message_stop" },
        ].map(event),
      );
    const json = { type: "input_json_delta", partial_json: '{"query":"purring"}' };
    own.queue(
      answer({ type: "tool_use", id: "toolu_1", name: "web_search", input: {} }, json, "tool_use"),
      answer({ type: "text", text: "" }, { type: "text_delta", text: "Yes." }, "end_turn"),
    );
    const message = await anthropic.messages.stream({ ...asked(), model: "own" }).finalMessage();
    expect(message.content.map(({ type }) => type)).toEqual(["server_tool_use", "web_search_tool_result", "text"]);
    expect(message.usage).toMatchObject({ input_tokens: 8, output_tokens: 4 });
    const { tools, messages } = own.lastRequest.json<{ tools: object[]; messages: { content: object[] }[] }>();
    expect(tools).toMatchObject([{ name: "web_search", input_schema: { type: "object" } }]);
    expect(messages.slice(1)).toMatchObject([
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", input: { query: "purring" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1" }] },
    ]);
    own.reset({
      status: 400,
      body: JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: "too long" } }),
    });
    const response = await gateway.post("/v1/messages", { ...ASKED, model: "own" });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { type: "invalid_request_error", message: "too long" },
    });
  });

  test("of a vendor that searches itself passes untouched", async () => {
    const body = { ...ASKED, model: "claude" };
    const answer = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude",
      content: [],
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    vendor.reset({ body: JSON.stringify(answer) });
    expect(await (await gateway.post("/v1/messages", body)).json()).toEqual(answer);
    expect(vendor.lastRequest.json()).toEqual(body);
    expect(service.requests).toEqual([]);
  });
});

describe("a client of the chat format", () => {
  const SAYS = "Yes: see https://cats.test/purr.";
  const annotation = {
    type: "url_citation",
    url_citation: { url: "https://cats.test/purr", title: "Cats", start_index: 16, end_index: 38 },
  };

  test("gets the text, and annotations of what it names", async () => {
    engine.queue(calling("I look. ", [{}]), chatStream([SAYS]));
    const { choices } = await openai.chat.completions.create(structuredClone(ASKED_IN_CHAT) as never);
    expect(choices[0]?.finish_reason).toBe("stop");
    const { message } = choices[0] as OpenAI.ChatCompletion.Choice;
    expect(message.content).toBe(`I look. ${SAYS}`);
    expect(message.tool_calls).toBeUndefined();
    const [cited] = message.annotations ?? [];
    expect(message.content?.slice(cited?.url_citation.start_index, cited?.url_citation.end_index)).toBe(
      "https://cats.test/purr",
    );
    expect(message.annotations).toMatchObject([{ type: "url_citation", url_citation: { title: "Cats" } }]);
    expect(engine.requests).toHaveLength(2);
    expect(bodyOf(engine.requests[0])).not.toHaveProperty("web_search_options");
  });

  test("gets a stream of the same", async () => {
    engine.queue(calling("I look. ", [{}]), chatStream([SAYS.slice(0, 9), SAYS.slice(9)]));
    const body = { ...ASKED_IN_CHAT, stream: true, stream_options: { include_usage: true } };
    let text = "";
    const annotations: unknown[] = [];
    let last: OpenAI.ChatCompletionChunk | undefined;
    for await (const chunk of (await openai.chat.completions.create(
      body as never,
    )) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>) {
      const delta = chunk.choices[0]?.delta as { content?: string; annotations?: unknown[] } | undefined;
      text += delta?.content ?? "";
      annotations.push(...(delta?.annotations ?? []));
      last = chunk;
    }
    expect(text).toBe(`I look. ${SAYS}`);
    expect(annotations).toEqual([
      { ...annotation, url_citation: { ...annotation.url_citation, start_index: 17, end_index: 39 } },
    ]);
    expect(last?.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
  });

  test("may ask by a tool as well", async () => {
    engine.queue(calling("", [{}]), chatStream([SAYS]));
    const { web_search_options: _none, ...body } = ASKED_IN_CHAT;
    const response = await gateway.post("/v1/chat/completions", { ...body, tools: [{ type: "web_search" }] });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-signalbox-backend")).toBe("engine");
    expect(service.requests).toHaveLength(1);
  });

  test("that wants no search is not touched", async () => {
    engine.reset(chat("hello"));
    const response = await gateway.chat({ tools: [{ type: "function", function: { name: "f" } }] });
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "hello" } }] });
    expect(bodyOf(engine.lastRequest).tools).toEqual([{ type: "function", function: { name: "f" } } as never]);
  });
});

describe("a client of Gemini's format", () => {
  const SAYS = "Yes: see https://cats.test/purr.";
  const body = { contents: [{ parts: [{ text: "Do cats purr?" }] }], tools: [{ googleSearch: {} }] };

  interface Grounded {
    candidates: { content: { parts: { text: string }[] }; groundingMetadata?: Record<string, unknown> }[];
  }

  const sources = {
    webSearchQueries: ["purring"],
    groundingChunks: [
      { web: { uri: "https://cats.test/purr", title: "Cats" } },
      { web: { uri: "https://dogs.test/" } },
    ],
  };

  interface Support {
    segment: { startIndex: number; endIndex: number };
  }

  test("gets the sources as grounding metadata, whole and as a stream", async () => {
    engine.queue(calling("I lööök. ", [{}]), chatStream([SAYS]));
    const response = await gateway.post("/v1beta/models/m:generateContent", body);
    const [candidate] = ((await response.json()) as Grounded).candidates;
    const { content, groundingMetadata } = candidate as Grounded["candidates"][number];
    expect(content.parts).toEqual([{ text: `I lööök. ${SAYS}` }]);
    // Places count in bytes: each ö has two.
    const [support] = (groundingMetadata?.groundingSupports ?? []) as Support[];
    const { startIndex, endIndex } = support?.segment ?? { startIndex: 0, endIndex: 0 };
    const words = Buffer.from(content.parts[0]?.text ?? "")
      .subarray(startIndex, endIndex)
      .toString();
    expect(words).toBe("https://cats.test/purr");
    expect(groundingMetadata).toMatchObject(sources);

    engine.queue(calling("I look. ", [{}]), chatStream([SAYS.slice(0, 9), SAYS.slice(9)]));
    const { data } = await readSse(await gateway.post("/v1beta/models/m:streamGenerateContent?alt=sse", body));
    const chunks = data.map((each) => JSON.parse(each) as Grounded);
    const text = chunks.flatMap(({ candidates }) => candidates[0]?.content.parts[0]?.text ?? "").join("");
    expect(text).toBe(`I look. ${SAYS}`);
    const told = chunks.at(-1)?.candidates[0]?.groundingMetadata;
    expect(told).toMatchObject(sources);
    const [place] = (told?.groundingSupports ?? []) as Support[];
    expect(text.slice(place?.segment.startIndex, place?.segment.endIndex)).toBe("https://cats.test/purr");
  });
});

describe("a client that leaves", () => {
  for (const stream of [false, true]) {
    const what = stream ? "a stream" : "a whole answer";
    const bytes = () => postBytes("/v1/messages", JSON.stringify({ ...ASKED, stream }));

    test(`frees the service (${what})`, async () => {
      service.reset({ hang: true });
      engine.queue(calling("I look.", [{}]));
      const connection = await RawConnection.open(gateway.port);
      connection.write(bytes());
      await waitFor("the service is asked", () => service.requests.length === 1);
      connection.abort();
      await within("the service's connection closes", service.lastRequest.closed);
      await gateway.waitUntilIdle();
      expect(engine.requests).toHaveLength(1);
    });

    test(`frees the engine in a later turn (${what})`, async () => {
      const never = new Promise(() => {});
      engine.queue(
        calling("I look.", [{}]),
        chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? never : undefined) }),
      );
      const connection = await RawConnection.open(gateway.port);
      connection.write(bytes());
      await waitFor("the second turn has begun", () => engine.requests.length === 2);
      if (stream) await waitFor("its text arrives", () => connection.received.includes("one"));
      connection.abort();
      await within("the engine's connection closes", engine.lastRequest.closed);
      await gateway.waitUntilIdle();
    });
  }
});

test("text of every turn arrives while the model still writes", async () => {
  const gate = Promise.withResolvers<void>();
  engine.queue(calling("I look.", [{}], { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) }));
  const connection = await RawConnection.open(gateway.port);
  connection.write(postBytes("/v1/messages", JSON.stringify({ ...ASKED, stream: true })));
  await waitFor("the first text arrives", () => connection.received.includes("I look."));
  expect(service.requests).toEqual([]);
  gate.resolve();
  await waitFor("the answer ends", () => connection.received.includes("message_stop"));
  connection.close();
});

test("a chain leads to another model, which goes on with the answer", async () => {
  const second = bed.backend();
  const chained = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      fallback: { enabled: true, fallback_chains: { m: ["other"] } },
      backends: [
        { name: "engine", url: engine.url, models: ["m"] },
        { name: "second", url: second.url, models: ["other"] },
      ],
      web_search: { provider: "serper", base_url: service.url },
    },
  });
  engine.reset(failure(503));
  second.queue(calling("I look.", [{}]), chatStream(["done"]));
  const response = await chained.post("/v1/messages", ASKED);
  expect(response.status).toBe(200);
  expect(response.headers.get("x-fallback-model")).toBe("other");
  expect(engine.requests).toHaveLength(1);
  expect(second.requests.map((request) => request.json().model)).toEqual(["other", "other"]);
  expect(service.lastRequest.headers["x-api-key"]).toBe("");
});

test("later turns go to the backend that has the conversation", async () => {
  const twins = [bed.backend(), bed.backend()];
  const pair = await bed.gateway({
    config: {
      routing: { selection_strategy: "RoundRobin" },
      health_checks: { enabled: false },
      backends: twins.map(({ url }, index) => ({ name: `twin-${index}`, url, models: ["m"] })),
      web_search: { provider: "serper", base_url: service.url },
    },
  });
  for (const twin of twins) twin.queue(calling("I look.", [{}]), chatStream(["done"]));
  for (let round = 0; round < twins.length; round++) expect((await pair.post("/v1/messages", ASKED)).status).toBe(200);
  // The turns of an answer grow by what was found; a twin that got another's second turn would have two long ones.
  for (const twin of twins) expect(twin.requests.map((request) => bodyOf(request).messages.length)).toEqual([1, 3]);
});

test("without the section a search tool is refused by name", async () => {
  const plain = await bed.gateway({ config: { health_checks: { enabled: false }, backends: BACKENDS } });
  engine.reset(chat("never"));
  const response = await plain.post("/v1/messages", ASKED);
  expect(response.status).toBe(400);
  expect(JSON.stringify(await response.json())).toContain("web_search");
  expect(engine.requests).toEqual([]);
});

test("events of the stream have the order that the format asks for", async () => {
  engine.queue(calling("I look.", [{}]), eventStream([chatEvents(["done"]).join("")]));
  const reading = await readSse(await gateway.post("/v1/messages", { ...ASKED, stream: true }));
  const seen = reading.data.map(
    (data) => JSON.parse(data) as { type: string; index?: number; content_block?: { type: string } },
  );
  const blocks = seen.filter(({ type }) => type === "content_block_start");
  expect(blocks.map(({ index, content_block }) => `${index} ${content_block?.type}`)).toEqual([
    "0 text",
    "1 server_tool_use",
    "2 web_search_tool_result",
    "3 text",
  ]);
  let open: number | undefined;
  for (const { type, index } of seen) {
    if (type === "content_block_start") {
      expect(open).toBeUndefined();
      open = index;
    } else if (type === "content_block_stop") {
      expect(open).toBe(index as number);
      open = undefined;
    }
  }
  expect(seen.at(0)?.type).toBe("message_start");
  expect(seen.slice(-2).map(({ type }) => type)).toEqual(["message_delta", "message_stop"]);
});
