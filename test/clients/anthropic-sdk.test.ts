// The official Anthropic SDK as a client of the running command, in front of a strict backend of each format.

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import Anthropic, {
  APIError,
  APIUserAbortError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import type { MessageParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import { answer, call, failure, text, thinking } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { FORMATS, MODEL_OF, ThreeBackends } from "../support/three-backends.ts";

const three = new ThreeBackends(createTestBed());
let client: Anthropic;

beforeAll(() => {
  client = new Anthropic({ apiKey: "not-checked-here", baseURL: `${three.gateway.url}/anthropic`, maxRetries: 0 });
});

afterEach(() => {
  expect(three.takeRefusals()).toEqual([]);
});

const inputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const;
const weather: Tool = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: { ...inputSchema, required: ["city"] },
};
const messages: MessageParam[] = [{ role: "user", content: "hi" }];

async function refusal(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call was not refused");
}

describe.each(FORMATS)("a %s backend", (format) => {
  const model = MODEL_OF[format];
  const asked = { model, max_tokens: 2048 };

  test("a message, with usage and request id", async () => {
    three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
    const message = await client.messages.create({ ...asked, system: "Be brief.", messages });
    expect(message.content).toMatchObject([{ type: "text", text: "hello there" }]);
    expect(message.model).toBe(model);
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 });
    expect(message._request_id).toMatch(/\S+/);
  });

  test("the stream helper: text as it comes, and the final message", async () => {
    three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
    let seen = "";
    const stream = client.messages.stream({ ...asked, messages }).on("text", (delta) => {
      seen += delta;
    });
    const final = await stream.finalMessage();
    expect(seen).toBe("hello there");
    expect(final.stop_reason).toBe("end_turn");
    expect(final.usage).toMatchObject({ input_tokens: 11, output_tokens: 7 });
    expect(await stream.finalText()).toBe("hello there");
  });

  test("the stream helper: several tool calls", async () => {
    three.script(
      format,
      answer(text("I look. "), call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Rome" })),
    );
    const final = await client.messages.stream({ ...asked, messages, tools: [weather] }).finalMessage();
    expect(final.stop_reason).toBe("tool_use");
    const calls = final.content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
    expect(calls.map(({ input }) => input)).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  test.each([false, true])("the tool runner, one of its tools failing, stream: %p", async (stream) => {
    const backend = three.script(
      format,
      answer(call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Nowhere" })),
      answer(text("Rain in Oslo.")),
    );
    const tool = betaTool({
      name: "get_weather",
      description: "The weather in a city",
      inputSchema,
      run: ({ city }) => {
        if (city === "Nowhere") throw new Error("no such city 4711");
        return `rain in ${city}`;
      },
    });
    // The runner makes threads, which a strict backend does not keep; others must do without unasked.
    const threads = format === "messages" ? { thread: false as const } : {};
    const question = [{ role: "user" as const, content: "weather?" }];
    const body = { ...asked, ...threads, messages: question, tools: [tool] };
    const final = stream
      ? await client.beta.messages.toolRunner({ ...body, stream: true }).runUntilDone()
      : await client.beta.messages.toolRunner({ ...body, stream: false }).runUntilDone();
    expect(final.content).toMatchObject([{ type: "text", text: "Rain in Oslo." }]);
    expect(backend.requests).toHaveLength(2);
    expect(backend.last.text).toContain("rain in Oslo");
    expect(backend.last.text).toContain("no such city 4711");
  });

  test.each([false, true])("thoughts come back over two turns, stream: %p", async (stream) => {
    const backend = three.script(
      format,
      answer(thinking("I should look."), call("get_weather", { city: "Oslo" })),
      answer(thinking("Rain, then."), text("Take an umbrella.")),
    );
    const conversation: MessageParam[] = [{ role: "user", content: "weather in Oslo?" }];
    const turn = async () => {
      const body = {
        ...asked,
        messages: conversation,
        tools: [weather],
        thinking: { type: "enabled" as const, budget_tokens: 1024, display: "summarized" as const },
      };
      return stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    };
    const first = await turn();
    expect(first.content.map(({ type }) => type)).toEqual(["thinking", "tool_use"]);
    const [thought, use] = first.content;
    if (thought?.type !== "thinking" || use?.type !== "tool_use") throw new Error("no thoughts and call arrived");
    expect(thought.thinking).toBe("I should look.");
    conversation.push(
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "rain 4711" }] },
    );
    const second = await turn();
    expect(second.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
    expect(backend.last.text).toContain("rain 4711");
    // The strict backend refuses thoughts without the signature that it gave them.
    if (format === "messages") expect(backend.last.text).toContain(thought.signature);
  });

  test("an answer that was cut off", async () => {
    three.script(format, { ...answer(text("hel")), finish: "length" });
    expect((await client.messages.create({ ...asked, messages })).stop_reason).toBe("max_tokens");
  });

  test("errors have their class, type and request id", async () => {
    three.script(
      format,
      failure(429, "slow down"),
      failure(400, "bad words"),
      failure(404, "gone"),
      failure(500, "out of luck"),
    );
    const errors: unknown[] = [];
    for (let count = 0; count < 4; count++) errors.push(await refusal(client.messages.create({ ...asked, messages })));
    expect(errors[0]).toBeInstanceOf(RateLimitError);
    expect(errors[1]).toBeInstanceOf(BadRequestError);
    expect(errors[2]).toBeInstanceOf(NotFoundError);
    expect(errors[3]).toBeInstanceOf(InternalServerError);
    const [limited, bad] = errors as APIError[];
    expect(limited?.error).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
    expect(bad?.error).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    expect(bad?.message).toContain("bad words");
    expect(bad?.requestID).toMatch(/\S+/);
  });

  test("a stream that fails in its middle is APIError", async () => {
    three.script(format, {
      ...answer(text("a long answer that is never finished")),
      breakAfterFrames: 6,
      breakWith: { status: 529, message: "out of luck", type: "overloaded_error" },
    });
    let seen = "";
    const stream = client.messages.stream({ ...asked, messages }).on("text", (delta) => {
      seen += delta;
    });
    const error = await refusal(stream.finalMessage());
    expect(error).toBeInstanceOf(APIError);
    expect(error).not.toBeInstanceOf(APIUserAbortError);
    expect(seen).not.toBe("");
  });

  test("count_tokens", async () => {
    const few = await client.messages.countTokens({ model, messages });
    const many = await client.messages.countTokens({
      model,
      messages: [{ role: "user", content: "hello ".repeat(200) }],
    });
    expect(few.input_tokens).toBeGreaterThan(0);
    expect(many.input_tokens).toBeGreaterThan(few.input_tokens + 100);
  });
});

test("count_tokens for a model that does not exist is not found", async () => {
  expect(await refusal(client.messages.countTokens({ model: "nothing", messages }))).toBeInstanceOf(NotFoundError);
});

test("errors of the gateway itself", async () => {
  const unknown = await refusal(client.messages.create({ model: "nothing", max_tokens: 10, messages }));
  expect(unknown).toBeInstanceOf(NotFoundError);
  expect((unknown as APIError).error).toMatchObject({ type: "error", error: { type: "not_found_error" } });
  const bad = await refusal(client.messages.create({ model: MODEL_OF.chat, max_tokens: 10, messages: [] }));
  expect(bad).toBeInstanceOf(BadRequestError);
  expect((bad as APIError).message).toContain("messages");
});

test("a tool that only the vendor runs is BadRequestError elsewhere, and names the tool", async () => {
  const error = await refusal(
    client.messages.create({
      model: MODEL_OF.chat,
      max_tokens: 10,
      messages,
      tools: [weather, { type: "web_search_20250305", name: "web_search" }],
    }),
  );
  expect(error).toBeInstanceOf(BadRequestError);
  expect((error as APIError).message).toContain("web_search");
});

test("models.list and models.retrieve", async () => {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  for (const model of Object.values(MODEL_OF)) expect(ids).toContain(model);
  expect((await client.models.retrieve(MODEL_OF.chat)).type).toBe("model");
});
