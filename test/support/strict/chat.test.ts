import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { startStrictChat } from "./chat.ts";
import { testRefusals } from "./refused-bodies.ts";
import { answer, call, failure, refusal, type Script, text, thinking } from "./script.ts";
import type { StrictBackend } from "./server.ts";

const user: ChatCompletionMessageParam = { role: "user", content: "hi" };
const PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==";

async function clientOf(script: Script, options?: Parameters<typeof startStrictChat>[1]) {
  const backend = await startStrictChat(script, options);
  const client = new OpenAI({ apiKey: "sekret", baseURL: `${backend.url}/v1`, maxRetries: 0 });
  return { backend, client, [Symbol.dispose]: () => backend.stop() };
}

describe("the official client reads", () => {
  const script = {
    ...answer(thinking("hmm"), text("Hello, wörld 🎉!"), call("get", { city: "Köln" }), call("ping")),
    usage: { input: 20, cacheRead: 8, output: 9, reasoning: 3 },
  };
  const usage = {
    prompt_tokens: 20,
    completion_tokens: 9,
    total_tokens: 29,
    prompt_tokens_details: { cached_tokens: 8 },
    completion_tokens_details: { reasoning_tokens: 3 },
  };
  const message = {
    content: "Hello, wörld 🎉!",
    tool_calls: [
      { id: "call_000000000002", type: "function", function: { name: "get", arguments: '{"city":"Köln"}' } },
      { id: "call_000000000003", type: "function", function: { name: "ping", arguments: "{}" } },
    ],
  };

  test("a whole answer", async () => {
    using bed = await clientOf([script]);
    const completion = await bed.client.chat.completions.create({ model: "gpt-5", messages: [user] });
    expect(completion).toMatchObject({ choices: [{ message, finish_reason: "tool_calls" }], usage });
    expect(JSON.stringify(completion)).not.toContain("hmm");
  });

  test.each([false, true])("a stream, calls interleaved: %s", async (interleaved) => {
    using bed = await clientOf([{ ...script, interleaved }]);
    const options = { stream_options: { include_usage: true } };
    const stream = bed.client.chat.completions.stream({ model: "gpt-5", messages: [user], ...options });
    expect(await stream.finalChatCompletion()).toMatchObject({
      choices: [{ message, finish_reason: "tool_calls" }],
      usage,
    });
  });

  test("a refusal, the limit, and citations", async () => {
    const citation = { url: "https://a.example", title: "A", citedText: "x", start: 0, end: 1 };
    using bed = await clientOf([
      answer(refusal("no")),
      { ...answer(text("cut")), finish: "length" },
      answer(text("x", [citation])),
    ]);
    const create = () => bed.client.chat.completions.create({ model: "gpt-5", messages: [user] });
    expect((await create()).choices[0]).toMatchObject({
      message: { content: null, refusal: "no" },
      finish_reason: "stop",
    });
    expect((await create()).choices[0]).toMatchObject({ message: { content: "cut" }, finish_reason: "length" });
    expect((await create()).choices[0]?.message.annotations).toMatchObject([
      { url_citation: { url: "https://a.example", end_index: 1 } },
    ]);
  });

  test("errors before, inside and instead of the end of a stream", async () => {
    using bed = await clientOf([
      failure(429, "slow down", { retryAfter: "3" }),
      { ...answer(text("Hello there")), breakAfterFrames: 2, breakWith: { status: 500, message: "gone" } },
      { ...answer(text("Hello there")), breakAfterFrames: 2, breakWith: "cut" },
    ]);
    const read = async () => {
      let seen = "";
      try {
        const stream = await bed.client.chat.completions.create({ model: "gpt-5", messages: [user], stream: true });
        for await (const chunk of stream) seen += chunk.choices[0]?.delta.content ?? "";
        return { seen, error: undefined };
      } catch (error) {
        return { seen, error };
      }
    };
    const limited = (await read()).error as InstanceType<typeof OpenAI.APIError>;
    expect(limited).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
    expect(limited.headers?.get("retry-after")).toBe("3");
    expect(await read()).toMatchObject({ seen: "Hello", error: { message: expect.stringContaining("gone") } });
    const cut = await read();
    expect(cut.seen).toBe("Hello");
    expect(cut.error).toBeInstanceOf(Error);
  });

  test("models", async () => {
    using bed = await clientOf([], { models: ["a", "b"] });
    expect((await bed.client.models.list()).data.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(bed.backend.probes.map(({ path }) => path)).toEqual(["/v1/models"]);
  });
});

test("a local engine shows its thoughts under either name, needs no key, and is asked for its health", async () => {
  for (const reasoningField of ["reasoning", "reasoning_content"] as const) {
    using backend = await startStrictChat([answer(thinking("hmm"), text("hi"))], {
      dialect: "local",
      models: ["m"],
      reasoningField,
    });
    const body = JSON.stringify({ model: "m", messages: [user], stream: true });
    const response = await fetch(`${backend.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(await response.text()).toContain(`"${reasoningField}":"hmm"`);
    expect((await fetch(`${backend.url}/health`)).status).toBe(200);
  }
});

test("the script decides by the body, and ends", async () => {
  using bed = await clientOf([answer(text("only"))]);
  const create = () => bed.client.chat.completions.create({ model: "gpt-5", messages: [user] });
  await create();
  expect(await create().catch(String)).toContain("no answer left");
  using other = await clientOf((body) => answer(text(String(body.model))));
  const completion = await other.client.chat.completions.create({ model: "gpt-4o", messages: [user] });
  expect(completion.choices[0]?.message.content).toBe("gpt-4o");
});

describe("hosted", () => {
  let backend: StrictBackend;
  beforeAll(async () => {
    backend = await startStrictChat(() => answer(text("ok")));
  });
  afterAll(() => backend.stop());

  const assistant = (...ids: string[]) => ({
    role: "assistant",
    content: null,
    tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
  });
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "r" });
  const f = { type: "function", function: { name: "f" } };

  testRefusals({
    backend: () => backend,
    path: "/v1/chat/completions",
    headers: { authorization: "Bearer sekret" },
    good: { model: "gpt-5", messages: [user] },
    cases: [
      ["an unknown member", { thinking: {} }, "thinking"],
      ["no messages", { messages: [] }, "messages"],
      ["an unknown role", { messages: [{ role: "model", content: "x" }] }, "messages[0].role"],
      [
        "thoughts in a message",
        { messages: [user, { role: "assistant", content: "x", reasoning_content: "y" }] },
        "messages[1].reasoning_content",
      ],
      [
        "an assistant message of nothing",
        { messages: [user, { role: "assistant", content: null }] },
        "messages[1].content",
      ],
      ["a result without a call", { messages: [user, result("a")] }, "messages[1].tool_call_id"],
      ["a call without a result", { messages: [user, assistant("a", "b"), result("a"), user] }, "messages[3]"],
      ["a call at the end", { messages: [user, assistant("a")] }, "messages[1]"],
      [
        "two results of one call",
        { messages: [user, assistant("a"), result("a"), result("a")] },
        "messages[3].tool_call_id",
      ],
      ["duplicate ids", { messages: [user, assistant("a", "a"), result("a")] }, "messages[1].tool_calls"],
      [
        "invalid base64",
        {
          messages: [
            { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,%%" } }] },
          ],
        },
        "messages[0].content[0].image_url.url",
      ],
      [
        "an image of another type",
        {
          messages: [
            { role: "user", content: [{ type: "image_url", image_url: { url: PNG.replace("png", "jpeg") } }] },
          ],
        },
        "messages[0].content[0].image_url.url",
      ],
      [
        "a file without a name",
        {
          messages: [
            { role: "user", content: [{ type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=" } }] },
          ],
        },
        "messages[0].content[0].file.filename",
      ],
      ["a tool name", { tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name"],
      ["two tools of one name", { tools: [f, f] }, "tools"],
      ["flat tools", { tools: [{ type: "function", name: "f" }] }, "tools[0].name"],
      ["no tools", { tools: [] }, "tools"],
      ["a choice without tools", { tool_choice: "auto" }, "tool_choice"],
      [
        "a choice of an unknown tool",
        { tools: [f], tool_choice: { type: "function", function: { name: "g" } } },
        "tool_choice",
      ],
      ["parallel_tool_calls without tools", { parallel_tool_calls: false }, "parallel_tool_calls"],
      [
        "an open strict schema",
        { tools: [{ type: "function", function: { name: "f", strict: true, parameters: { type: "object" } } }] },
        "tools[0].function.parameters",
      ],
      ["max_tokens of a reasoning model", { max_tokens: 5 }, "max_tokens"],
      ["temperature of a reasoning model", { temperature: 0.5 }, "temperature"],
      ["effort of a plain model", { model: "gpt-4o", reasoning_effort: "low" }, "reasoning_effort"],
      ["effort auto", { reasoning_effort: "auto" }, "reasoning_effort"],
      ["stream_options without a stream", { stream_options: { include_usage: true } }, "stream_options"],
      ["top_logprobs without logprobs", { top_logprobs: 2 }, "top_logprobs"],
      ["five stop sequences", { stop: ["a", "b", "c", "d", "e"] }, "stop"],
      ["JSON mode without the word", { response_format: { type: "json_object" } }, "messages"],
      ["a flat schema", { response_format: { type: "json_schema", name: "a", schema: {} } }, "response_format.name"],
      ["a long metadata value", { metadata: { a: "x".repeat(513) } }, "metadata.a"],
    ],
    accepted: [
      ["calls with results", { messages: [user, assistant("a", "b"), result("b"), result("a"), user] }],
      ["an image", { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: PNG } }] }] }],
      [
        "a forced tool",
        { tools: [f], tool_choice: { type: "function", function: { name: "f" } }, parallel_tool_calls: false },
      ],
      ["temperature of a plain model", { model: "gpt-4o", temperature: 0.5, max_tokens: 5 }],
    ],
  });

  test("no key, an unknown model, another path", async () => {
    const post = (path: string, headers: Record<string, string>, model = "gpt-5") =>
      fetch(backend.url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ model, messages: [user] }),
      });
    const key = { authorization: "Bearer sekret" };
    expect((await post("/v1/chat/completions", {})).status).toBe(401);
    expect((await post("/v1/chat/completions", key, "nope")).status).toBe(404);
    expect((await post("/v1/v1/chat/completions", key)).status).toBe(404);
  });
});

describe("local", () => {
  let backend: StrictBackend;
  beforeAll(async () => {
    backend = await startStrictChat(() => answer(text("ok")), { dialect: "local", models: ["m"] });
  });
  afterAll(() => backend.stop());

  testRefusals({
    backend: () => backend,
    path: "/v1/chat/completions",
    headers: {},
    good: { model: "m", messages: [user] },
    cases: [
      ["the role developer", { messages: [{ role: "developer", content: "x" }] }, "messages[0].role"],
      ["max_completion_tokens", { max_completion_tokens: 5 }, "max_completion_tokens"],
      ["store", { store: false }, "store"],
      ["metadata", { metadata: {} }, "metadata"],
      ["effort xhigh", { reasoning_effort: "xhigh" }, "reasoning_effort"],
      ["effort auto", { reasoning_effort: "auto" }, "reasoning_effort"],
    ],
    accepted: [
      ["max_tokens and temperature", { max_tokens: 5, temperature: 0.5 }],
      [
        "thoughts under both names",
        { messages: [user, { role: "assistant", content: "x", reasoning_content: "y", reasoning: "y" }, user] },
      ],
    ],
  });
});
