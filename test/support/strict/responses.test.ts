import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { ResponseCreateParamsNonStreaming, ResponseInputItem } from "openai/resources/responses/responses";
import { testRefusals } from "./refused-bodies.ts";
import { startStrictResponses } from "./responses.ts";
import { answer, call, failure, type JsonObject, refusal, type Script, text, thinking } from "./script.ts";
import type { StrictBackend } from "./server.ts";

async function clientOf(script: Script) {
  const backend = await startStrictResponses(script);
  const client = new OpenAI({ apiKey: "sekret", baseURL: `${backend.url}/v1`, maxRetries: 0 });
  return { backend, client, [Symbol.dispose]: () => backend.stop() };
}

const create: ResponseCreateParamsNonStreaming = { model: "gpt-5", input: "hi" };
const shown: ResponseCreateParamsNonStreaming = {
  ...create,
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
};

describe("the official client reads", () => {
  const script = {
    ...answer(thinking("hmm"), text("Hello, wörld 🎉!"), call("get", { city: "Köln" }), call("ping")),
    usage: { input: 20, cacheRead: 8, output: 9, reasoning: 3 },
  };
  const response = {
    status: "completed",
    output: [
      { type: "reasoning", summary: [{ text: "hmm" }], encrypted_content: expect.any(String) },
      { type: "message", status: "completed", content: [{ type: "output_text", text: "Hello, wörld 🎉!" }] },
      {
        type: "function_call",
        id: expect.stringMatching(/^fc_/),
        call_id: expect.stringMatching(/^call_/),
        name: "get",
        arguments: '{"city":"Köln"}',
      },
      { type: "function_call", name: "ping", arguments: "{}" },
    ],
    usage: { input_tokens: 20, input_tokens_details: { cached_tokens: 8 }, output_tokens: 9, total_tokens: 29 },
  };

  test("a whole answer", async () => {
    using bed = await clientOf([script]);
    expect(await bed.client.responses.create(shown)).toMatchObject(response as never);
  });

  test.each([false, true])("a stream, calls interleaved: %s", async (interleaved) => {
    using bed = await clientOf([{ ...script, interleaved }]);
    const stream = bed.client.responses.stream(shown as never);
    const numbers: number[] = [];
    let streamed = "";
    stream.on("event", (event) => void numbers.push((event as { sequence_number: number }).sequence_number));
    stream.on("response.output_text.delta", ({ delta }) => {
      streamed += delta;
    });
    expect(await stream.finalResponse()).toMatchObject(response as never);
    expect(streamed).toBe("Hello, wörld 🎉!");
    expect(numbers).toEqual(numbers.map((_, index) => index));
  });

  test("thoughts only where they are asked for", async () => {
    using bed = await clientOf([script]);
    const [first] = (await bed.client.responses.create(create)).output;
    expect(first).toEqual({ type: "reasoning", id: expect.any(String), summary: [] } as never);
  });

  test("a refusal, the limit, a search with citations", async () => {
    const citation = { url: "https://a.example", title: "A", citedText: "x", start: 0, end: 1 };
    const searched = answer({ type: "search", query: "q", results: [] }, text("x", [citation]));
    using bed = await clientOf([
      answer(refusal("no")),
      { ...answer(text("cut")), finish: "length" },
      searched,
      searched,
    ]);
    expect((await bed.client.responses.create(create)).output).toMatchObject([{ content: [{ refusal: "no" }] }]);
    expect(await bed.client.responses.create(create)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
    const expected = [
      { type: "web_search_call", action: { query: "q" } },
      { content: [{ text: "x", annotations: [{ type: "url_citation", url: "https://a.example" }] }] },
    ];
    expect((await bed.client.responses.create(create)).output).toMatchObject(expected as never);
    expect((await bed.client.responses.stream(create as never).finalResponse()).output).toMatchObject(
      expected as never,
    );
  });

  test("errors before, inside and instead of the end of a stream", async () => {
    const broken = { ...answer(text("Hello there")), breakAfterFrames: 5 };
    using bed = await clientOf([
      failure(503, "busy"),
      { ...broken, breakWith: { status: 500, message: "gone" } },
      { ...broken, breakWith: "cut" },
    ]);
    const read = async () => {
      let seen = "";
      try {
        for await (const event of await bed.client.responses.create({ ...create, stream: true })) {
          if (event.type === "response.output_text.delta") seen += event.delta;
        }
        return { seen, error: undefined };
      } catch (error) {
        return { seen, error };
      }
    };
    expect(await read()).toMatchObject({ error: { status: 503 } });
    expect(await read()).toMatchObject({ seen: "Hello", error: { message: expect.stringContaining("gone") } });
    const cut = await read();
    expect(cut.seen).toBe("Hello");
    expect(cut.error).toBeInstanceOf(Error);
  });
});

describe("the next turn", () => {
  async function secondTurn(change: (items: JsonObject[]) => JsonObject[], more: JsonObject = {}) {
    using bed = await clientOf([answer(thinking("hmm"), call("get")), answer(text("done"))]);
    const stateless = { ...shown, store: false };
    const { output, id } = await bed.client.responses.create(stateless);
    const items = output as unknown as JsonObject[];
    const result = { type: "function_call_output", call_id: items[1]?.call_id, output: "r" };
    const input = change([{ role: "user", content: "hi" }, ...items, result]) as unknown as ResponseInputItem[];
    const outcome = await bed.client.responses
      .create({ ...stateless, input, ...more })
      .catch((error: unknown) => error);
    return { outcome, refusals: bed.backend.refusals, id };
  }

  test("its own items come back unaltered", async () => {
    expect((await secondTurn((items) => items)).refusals).toEqual([]);
  });

  const altered = (at: number, change: JsonObject) => (items: JsonObject[]) =>
    items.map((item, index) => (index === at ? { ...item, ...change } : item));
  const without = (at: number) => (items: JsonObject[]) => items.filter((_, index) => index !== at);

  test.each([
    ["altered encrypted content", altered(1, { encrypted_content: "AAAA" }), "input[1].encrypted_content"],
    ["no encrypted content", altered(1, { encrypted_content: undefined }), "input[1]"],
    ["encrypted content under another id", altered(1, { id: "rs_other" }), "input[1].encrypted_content"],
    ["a call without its reasoning", without(1), "input[1]"],
    ["reasoning without its call", without(2), "input[1]"],
    ["a call without its output", without(3), "input"],
    ["the item id as the call id", altered(3, { call_id: "fc_000000000003" }), "input[3].call_id"],
  ])("%s", async (_what, change, field) => {
    const { refusals } = await secondTurn(change);
    expect(refusals).toHaveLength(1);
    expect(refusals[0]).toStartWith(`${field}:`);
  });

  test("previous_response_id finds what was stored, and only that", async () => {
    using bed = await clientOf([answer(call("get")), answer(text("done")), answer(text("kept nowhere"))]);
    const first = await bed.client.responses.create(create);
    const callId = (first.output[0] as { call_id: string }).call_id;
    const input: ResponseInputItem[] = [{ type: "function_call_output", call_id: callId, output: "r" }];
    const second = await bed.client.responses.create({ ...create, input, previous_response_id: first.id });
    expect(second.output_text).toBe("done");
    const third = await bed.client.responses.create({ ...create, store: false });
    const lost = await bed.client.responses
      .create({ ...create, previous_response_id: third.id })
      .catch((error: unknown) => error);
    expect(lost).toMatchObject({ status: 400, code: "previous_response_not_found" });
  });
});

let backend: StrictBackend;
beforeAll(async () => {
  backend = await startStrictResponses(() => answer(text("ok")));
});
afterAll(() => backend.stop());

const user = { role: "user", content: "hi" };
const called = { type: "function_call", call_id: "a", name: "f", arguments: "{}" };
const outcome = { type: "function_call_output", call_id: "a", output: "r" };
const f = { type: "function", name: "f", parameters: {}, strict: false };

testRefusals({
  backend: () => backend,
  path: "/v1/responses",
  headers: { authorization: "Bearer sekret" },
  good: { model: "gpt-5", input: [user] },
  cases: [
    ["an unknown member", { messages: [] }, "messages"],
    ["include_reasoning", { include_reasoning: true }, "include_reasoning"],
    ["effort auto", { reasoning: { effort: "auto" } }, "reasoning.effort"],
    ["effort of a plain model", { model: "gpt-4o", reasoning: { effort: "low" } }, "reasoning.effort"],
    ["no input", { input: [] }, "input"],
    ["chat parts", { input: [{ role: "user", content: [{ type: "text", text: "x" }] }] }, "input[0].content[0].type"],
    [
      "input parts of an assistant",
      { input: [{ role: "assistant", content: [{ type: "input_text", text: "x" }] }, user] },
      "input[0].content[0].type",
    ],
    [
      "an image as chat writes it",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: { url: "https://a.example/" } }] }] },
      "input[0].content[0].image_url",
    ],
    [
      "invalid base64",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:image/png;base64,%" }] }] },
      "input[0].content[0].image_url",
    ],
    ["a tool role", { input: [{ role: "tool", content: "x" }] }, "input[0].role"],
    ["a nested tool", { tools: [{ type: "function", function: { name: "f" } }] }, "tools[0].function"],
    [
      "an open strict schema",
      { tools: [{ ...f, strict: true, parameters: { type: "object" } }] },
      "tools[0].parameters",
    ],
    [
      "a nested choice",
      { tools: [f], tool_choice: { type: "function", function: { name: "f" } } },
      "tool_choice.function",
    ],
    ["an unknown choice", { tools: [f], tool_choice: { type: "function", name: "g" } }, "tool_choice"],
    ["a call without an output", { input: [user, called] }, "input"],
    ["an output without a call", { input: [user, outcome] }, "input[1].call_id"],
    ["a call twice", { input: [user, called, called, outcome] }, "input[2].call_id"],
    ["arguments as an object", { input: [user, { ...called, arguments: {} }, outcome] }, "input[1].arguments"],
    ["a foreign item id", { input: [user, { ...called, id: "call_1" }, outcome] }, "input[1].id"],
    ["a nested schema", { text: { format: { type: "json_schema", json_schema: {} } } }, "text.format.json_schema"],
    ["response_format", { response_format: { type: "text" } }, "response_format"],
    ["a small limit", { max_output_tokens: 15 }, "max_output_tokens"],
    ["temperature of a reasoning model", { temperature: 0.5 }, "temperature"],
    ["stream_options of chat", { stream_options: { include_usage: true } }, "stream_options.include_usage"],
    ["an unknown response", { previous_response_id: "resp_x" }, "previous_response_id"],
  ],
  accepted: [
    ["a text", { input: "hi" }],
    ["a call with its output", { input: [user, called, outcome] }],
    ["parts as output", { input: [user, called, { ...outcome, output: [{ type: "input_text", text: "r" }] }] }],
    ["tools", { tools: [f, { type: "web_search" }], tool_choice: { type: "function", name: "f" } }],
  ],
});
