// The official OpenAI SDK as a client of the running command, in front of scripted backends and the demo backend.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI, {
  APIConnectionError,
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
import type { Gateway } from "../support/gateway.ts";
import {
  chat,
  chatEvents,
  chatStream,
  completion,
  embeddings,
  eventStream,
  failure,
  html,
  sseEvent,
} from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ models: ["m", "org/model-1"] });
const KEY = "sk-sekret-sdk-client";
let gateway: Gateway;
let client: OpenAI;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { base_delay: "1ms", max_delay: "5ms" },
      api_keys: {
        mode: "blocking",
        keys: [
          { key: KEY, id: "sdk" },
          { key: "sk-sekret-reader", scopes: ["read"] },
        ],
      },
      backends: [
        { name: "scripted", type: "vllm", url: backend.url },
        { name: "demo", type: "demo" },
      ],
    },
  });
  client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});

beforeEach(() => backend.reset(chat("hello from the backend")));

const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "hi" }];

const weatherTool: ChatCompletionTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

/** What a call was refused with. */
async function refusal(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call was not refused");
}

async function demoModel(): Promise<string> {
  for await (const model of client.models.list()) if (model.owned_by === "signalbox") return model.id;
  throw new Error("the demo backend lists no model");
}

describe("chat", () => {
  test("a plain answer, with its request id", async () => {
    const answer = await client.chat.completions.create({ model: "m", messages });
    expect(answer.choices[0]?.message.content).toBe("hello from the backend");
    expect(answer.usage?.total_tokens).toBe(5);
    expect(answer._request_id).toMatch(/\S+/);
  });

  test("a stream", async () => {
    backend.reset(chatStream(["hel", "lo"]));
    const stream = await client.chat.completions.create({ model: "m", messages, stream: true });
    let text = "";
    let finish: string | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    expect(text).toBe("hello");
    expect(finish).toBe("stop");
  });

  test("the stream helper, with events and the final message", async () => {
    backend.reset(chatStream(["hel", "lo"]));
    const pieces: string[] = [];
    const runner = client.chat.completions.stream({ model: "m", messages });
    runner.on("content", (piece) => pieces.push(piece));
    const final = await runner.finalChatCompletion();
    expect(pieces).toEqual(["hel", "lo"]);
    expect(final.choices[0]?.message.content).toBe("hello");
    expect(final.choices[0]?.finish_reason).toBe("stop");
  });

  test("stream_options.include_usage reaches the backend, and its usage chunk the client", async () => {
    const [done, ...rest] = chatEvents(["x"]).reverse();
    const usage = sseEvent({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
    backend.reset(eventStream([...rest.reverse(), usage, done as string]));
    const runner = client.chat.completions.stream({ model: "m", messages, stream_options: { include_usage: true } });
    expect((await runner.totalUsage()).total_tokens).toBe(2);
    expect(backend.lastRequest.json().stream_options).toEqual({ include_usage: true });
  });

  test("a tool call, its result, and the answer", async () => {
    const toolCall = {
      id: "call_1",
      type: "function",
      function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
    };
    backend.queue({
      body: JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: null, tool_calls: [toolCall] },
            finish_reason: "tool_calls",
          },
        ],
      }),
    });
    const first = await client.chat.completions.create({ model: "m", messages, tools: [weatherTool] });
    const message = first.choices[0]?.message;
    const call = message?.tool_calls?.[0];
    if (!message || call?.type !== "function") throw new Error("no tool call arrived");
    expect(call.function.name).toBe("get_weather");
    const second = await client.chat.completions.create({
      model: "m",
      messages: [...messages, message, { role: "tool", tool_call_id: call.id, content: "rain" }],
      tools: [weatherTool],
    });
    expect(second.choices[0]?.message.content).toBe("hello from the backend");
    expect(backend.lastRequest.json<{ messages: unknown[] }>().messages).toHaveLength(3);
  });

  test("tool calls in a stream, put together by the helper", async () => {
    const chunk = (delta: unknown, finish: string | null = null): string =>
      sseEvent({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
    const part = (index: number, text: string): unknown => ({ tool_calls: [{ index, function: { arguments: text } }] });
    const begin = (index: number, id: string): unknown => ({
      tool_calls: [{ index, id, type: "function", function: { name: "get_weather", arguments: "" } }],
    });
    backend.reset(
      eventStream([
        chunk({ role: "assistant", content: null }),
        chunk(begin(0, "call_1")),
        chunk(begin(1, "call_2")),
        chunk(part(0, '{"city":')),
        chunk(part(1, '{"city":"Rome"}')),
        chunk(part(0, '"Oslo"}')),
        chunk({}, "tool_calls"),
        "data: [DONE]\n\n",
      ]),
    );
    const runner = client.chat.completions.stream({ model: "m", messages, tools: [weatherTool] });
    const final = await runner.finalChatCompletion();
    const calls = final.choices[0]?.message.tool_calls ?? [];
    expect(calls.map((call) => (call.type === "function" ? call.function.arguments : ""))).toEqual([
      '{"city":"Oslo"}',
      '{"city":"Rome"}',
    ]);
  });
});

describe("the other endpoints", () => {
  test("embeddings in the SDK's default encoding, base64", async () => {
    backend.reset((request) => {
      const { encoding_format } = request.json<{ encoding_format?: "float" | "base64" }>();
      return embeddings([[0.5, -1, 2]], encoding_format);
    });
    const answer = await client.embeddings.create({ model: "m", input: "text" });
    expect(backend.lastRequest.json().encoding_format).toBe("base64");
    expect([...(answer.data[0]?.embedding ?? [])]).toEqual([0.5, -1, 2]);
  });

  test("embeddings as floats", async () => {
    backend.reset(embeddings([[0.25], [0.75]]));
    const answer = await client.embeddings.create({ model: "m", input: ["a", "b"], encoding_format: "float" });
    expect(answer.data.map((row) => [...row.embedding])).toEqual([[0.25], [0.75]]);
  });

  test("text completions, plain and streamed", async () => {
    backend.reset(completion("once upon a time"));
    const answer = await client.completions.create({ model: "m", prompt: "tell" });
    expect(answer.choices[0]?.text).toBe("once upon a time");
    const chunk = (text: string, finish: string | null): string =>
      sseEvent({
        id: "cmpl-1",
        object: "text_completion",
        created: 1,
        model: "m",
        choices: [{ text, index: 0, finish_reason: finish, logprobs: null }],
      });
    backend.reset(eventStream([chunk("once ", null), chunk("more", "stop"), "data: [DONE]\n\n"]));
    let text = "";
    for await (const part of await client.completions.create({ model: "m", prompt: "tell", stream: true })) {
      text += part.choices[0]?.text ?? "";
    }
    expect(text).toBe("once more");
  });

  test("models.list and models.retrieve, also for an id with a slash", async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain("m");
    expect(ids).toContain("org/model-1");
    expect((await client.models.retrieve("org/model-1")).id).toBe("org/model-1");
  });
});

describe("errors", () => {
  test("a missing or wrong key is AuthenticationError", async () => {
    const stranger = new OpenAI({ apiKey: "sk-sekret-stranger", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const error = await refusal(stranger.chat.completions.create({ model: "m", messages }));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect((error as APIError).code).toBe("invalid_api_key");
    expect((error as APIError).type).toBe("authentication_error");
  });

  test("a missing scope is PermissionDeniedError", async () => {
    const reader = new OpenAI({ apiKey: "sk-sekret-reader", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    expect(await refusal(reader.chat.completions.create({ model: "m", messages }))).toBeInstanceOf(
      PermissionDeniedError,
    );
  });

  test("an unknown model is NotFoundError with code and request id", async () => {
    const error = await refusal(client.chat.completions.create({ model: "nothing", messages }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect((error as APIError).code).toBe("model_not_found");
    expect((error as APIError).requestID).toMatch(/\S+/);
    expect(await refusal(client.models.retrieve("nothing"))).toBeInstanceOf(NotFoundError);
  });

  test("a number out of range is BadRequestError with param", async () => {
    const error = await refusal(client.chat.completions.create({ model: "m", messages, temperature: 3 }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect((error as APIError).param).toBe("temperature");
  });

  test("a 400 of the backend keeps message and code", async () => {
    backend.reset(failure(400, "too long", { type: "invalid_request_error", code: "context_length_exceeded" }));
    const error = await refusal(client.chat.completions.create({ model: "m", messages }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect((error as APIError).code).toBe("context_length_exceeded");
    expect((error as APIError).message).toContain("too long");
  });

  test("a backend that stays at 429 is RateLimitError, after the gateway's retries and without the SDK's own", async () => {
    backend.reset(failure(429, "slow down", { code: "rate_limit_exceeded" }));
    const patient = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 2 });
    expect(await refusal(patient.chat.completions.create({ model: "m", messages }))).toBeInstanceOf(RateLimitError);
    expect(backend.requests).toHaveLength(3);
  });

  test("a backend in trouble is InternalServerError", async () => {
    for (const answer of [failure(500), failure(503), html(502), { breakWith: "reset" as const }]) {
      backend.reset(answer);
      const error = await refusal(client.chat.completions.create({ model: "m", messages }));
      expect(error).toBeInstanceOf(InternalServerError);
    }
  });

  test("a stream that breaks is APIError in the middle of the loop, and in the helper", async () => {
    const events = chatEvents(["one", "two"]);
    const cut = eventStream(events, {
      breakAfterBytes: Buffer.byteLength(events.slice(0, 2).join("")) + 7,
      betweenChunksMs: 10,
    });
    backend.reset(cut);
    let text = "";
    const stream = await client.chat.completions.create({ model: "m", messages, stream: true });
    const error = await refusal(
      (async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      })(),
    );
    expect(text).toBe("one");
    expect(error).toBeInstanceOf(APIError);
    expect(error).not.toBeInstanceOf(APIConnectionError);
    backend.reset(cut);
    expect(
      await refusal(client.chat.completions.stream({ model: "m", messages }).finalChatCompletion()),
    ).toBeInstanceOf(APIError);
  });

  test("a stream that fails before its first event is an ordinary error of the call", async () => {
    backend.reset(eventStream([]));
    const error = await refusal(client.chat.completions.create({ model: "m", messages, stream: true }));
    expect(error).toBeInstanceOf(InternalServerError);
  });
});

describe("leaving", () => {
  test("an aborted stream frees the backend", async () => {
    backend.reset(
      chatStream(["one", "two"], {}, { beforeChunk: (i) => (i === 2 ? new Promise(() => {}) : undefined) }),
    );
    const stream = await client.chat.completions.create({ model: "m", messages, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content === "one") stream.controller.abort();
    }
    await within("the backend's connection closes", backend.lastRequest.closed);
    await gateway.waitUntilIdle();
  });

  test("an aborted call frees the backend and is APIUserAbortError", async () => {
    backend.reset({ hang: true });
    const controller = new AbortController();
    const refused = refusal(client.chat.completions.create({ model: "m", messages }, { signal: controller.signal }));
    await waitFor("the backend has the request", () => backend.requests.length === 1);
    controller.abort();
    expect(await refused).toBeInstanceOf(APIUserAbortError);
    await within("the backend's connection closes", backend.lastRequest.closed);
    await gateway.waitUntilIdle();
  });

  test("the helper's abort frees the backend", async () => {
    backend.reset(chatStream(["one"], {}, { beforeChunk: (i) => (i === 1 ? new Promise(() => {}) : undefined) }));
    const runner = client.chat.completions.stream({ model: "m", messages });
    const ended = refusal(runner.done());
    await waitFor("the backend has the request", () => backend.requests.length === 1);
    runner.abort();
    expect(await ended).toBeInstanceOf(APIUserAbortError);
    await within("the backend's connection closes", backend.lastRequest.closed);
  });
});

describe("the demo backend", () => {
  test("answers a chat, a stream through the helper, and tells the usage", async () => {
    const model = await demoModel();
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer.choices[0]?.message.content).toMatch(/\S/);
    expect(answer.usage?.total_tokens).toBeGreaterThan(0);
    const runner = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]?.message.content).toMatch(/\S/);
    expect(final.choices[0]?.finish_reason).toBe("stop");
    expect((await runner.totalUsage()).total_tokens).toBeGreaterThan(0);
  });

  test("calls a tool when it must, plain and streamed", async () => {
    const model = await demoModel();
    const request = { model, messages, tools: [weatherTool], tool_choice: "required" as const };
    const plain = await client.chat.completions.create(request);
    expect(plain.choices[0]?.finish_reason).toBe("tool_calls");
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    for (const message of [plain.choices[0]?.message, streamed.choices[0]?.message]) {
      const call = message?.tool_calls?.[0];
      if (call?.type !== "function") throw new Error("no tool call arrived");
      expect(call.function.name).toBe("get_weather");
      expect(JSON.parse(call.function.arguments)).toHaveProperty("city");
    }
  });

  test("makes embeddings and text completions", async () => {
    const model = await demoModel();
    const vectors = await client.embeddings.create({ model, input: ["a", "b"] });
    expect(vectors.data).toHaveLength(2);
    expect(vectors.data[0]?.embedding.length).toBeGreaterThan(0);
    expect(vectors.data[0]?.embedding.every((value) => Number.isFinite(value))).toBe(true);
    const text = await client.completions.create({ model, prompt: "once" });
    expect(text.choices[0]?.text).toMatch(/\S/);
  });
});

describe("the SDK's own retries", () => {
  /** A client that counts the answers it gets. */
  function countingClient(url: string): { client: OpenAI; statuses: number[]; answered: (status: number) => void } {
    const statuses: number[] = [];
    const counting = {
      statuses,
      answered: (_status: number) => {},
      client: new OpenAI({
        apiKey: "none",
        baseURL: `${url}/v1`,
        maxRetries: 5,
        async fetch(input, init) {
          const response = await fetch(input, init);
          statuses.push(response.status);
          counting.answered(response.status);
          return response;
        },
      }),
    };
    return counting;
  }

  test("ask again for a model whose backend is away, and get the answer when it is back", async () => {
    const away = bed.backend({ answer: chat("back again") });
    const other = bed.backend();
    away.stop();
    const pool = await bed.gateway({
      config: {
        health_checks: { unhealthy_threshold: 1, healthy_threshold: 1 },
        backends: [
          { name: "away", url: away.url, models: ["m"] },
          { name: "other", url: other.url, models: ["n"] },
        ],
      },
    });
    const counting = countingClient(pool.url);
    counting.answered = () => away.start();
    const answer = await counting.client.chat.completions.create({ model: "m", messages });
    expect(answer.choices[0]?.message.content).toBe("back again");
    expect(counting.statuses[0]).toBe(404);
    expect(counting.statuses.at(-1)).toBe(200);
  });

  test("do not ask again for a model that does not exist", async () => {
    const counting = countingClient(gateway.url);
    const client = counting.client.withOptions({ apiKey: KEY });
    const error = await refusal(client.chat.completions.create({ model: "org/model-2", messages }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect((error as APIError).message).toContain("did you mean 'org/model-1'?");
    expect(counting.statuses).toEqual([404]);
  });
});
