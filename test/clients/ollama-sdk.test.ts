// Ollama's own client as a client of the running gateway, in front of a strict backend of each format.

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type ChatRequest, type Message, Ollama, type Tool } from "ollama";
import { answer, call, failure, text, thinking } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { FORMATS, MODEL_OF, ThreeBackends } from "../support/three-backends.ts";

const three = new ThreeBackends(createTestBed());
let client: Ollama;

beforeAll(() => {
  client = new Ollama({ host: three.gateway.url });
});

afterEach(() => {
  expect(three.takeRefusals()).toEqual([]);
});

const weather: Tool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const messages: Message[] = [{ role: "user", content: "hi" }];
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function refusal(
  asked: PromiseLike<unknown>,
): Promise<{ error?: string; status_code?: number; message: string }> {
  try {
    await asked;
  } catch (error) {
    return error as Error;
  }
  throw new Error("the call was not refused");
}

describe.each(FORMATS)("a %s backend", (format) => {
  const model = MODEL_OF[format];

  test("a conversation, with counts and durations", async () => {
    const backend = three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
    const told = await client.chat({
      model,
      messages: [{ role: "system", content: "Be brief." }, ...messages],
      options: { num_predict: 2000 },
    });
    expect(told).toMatchObject({
      model,
      message: { role: "assistant", content: "hello there" },
      done: true,
      done_reason: "stop",
      prompt_eval_count: 11,
      eval_count: 7,
    });
    expect(told.total_duration).toBeGreaterThan(0);
    expect(Number.isInteger(told.total_duration)).toBe(true);
    expect(new Date(told.created_at).getTime()).toBeGreaterThan(Date.now() - 60_000);
    expect(backend.last.text).toContain("Be brief.");
    expect(backend.last.body).toMatchObject(
      format === "responses" ? { max_output_tokens: 2000 } : { max_tokens: 2000 },
    );
  });

  test("a stream: text as it comes, then the end with counts and durations", async () => {
    three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
    let seen = "";
    let last: Awaited<ReturnType<typeof client.chat>> | undefined;
    for await (const part of await client.chat({ model, messages, stream: true })) {
      seen += part.message.content;
      last = part;
    }
    expect(seen).toBe("hello there");
    expect(last).toMatchObject({ done: true, done_reason: "stop", prompt_eval_count: 11, eval_count: 7 });
    const { total_duration, prompt_eval_duration, eval_duration } = last as NonNullable<typeof last>;
    expect(prompt_eval_duration).toBeGreaterThan(0);
    expect(prompt_eval_duration + (eval_duration ?? 0)).toBe(total_duration);
  });

  test.each([false, true])("calls of tools and their results, stream: %p", async (stream) => {
    const backend = three.script(
      format,
      answer(text("I look. "), call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Rome" })),
      answer(text("Rain in Oslo.")),
    );
    const told = await whole({ model, messages, tools: [weather], stream });
    expect(told.content).toBe("I look. ");
    expect(told.tool_calls?.map((each) => each.function)).toMatchObject([
      { name: "get_weather", arguments: { city: "Oslo" } },
      { name: "get_weather", arguments: { city: "Rome" } },
    ]);
    const results = ["rain in Oslo", "sun in Rome"].map(
      (content): Message => ({ role: "tool", content, tool_name: "get_weather" }),
    );
    const next = await whole({ model, messages: [...messages, told, ...results], tools: [weather], stream });
    expect(next.content).toBe("Rain in Oslo.");
    expect(backend.requests).toHaveLength(2);
    expect(backend.last.text).toContain("rain in Oslo");
  });

  test.each([false, true])("thoughts, stream: %p", async (stream) => {
    three.script(format, answer(thinking("I should look."), text("Rain.")), answer(text("Rain.")));
    const told = await whole({ model, messages, think: true, stream });
    expect(told).toMatchObject({ content: "Rain.", thinking: "I should look." });
    expect((await whole({ model, messages, think: false, stream })).thinking).toBeUndefined();
  });

  test("a picture", async () => {
    const backend = three.script(format, answer(text("A dot.")));
    const told = await client.chat({ model, messages: [{ role: "user", content: "what?", images: [PNG] }] });
    expect(told.message.content).toBe("A dot.");
    expect(backend.last.text).toContain(PNG);
    expect(backend.last.text).toContain("image/png");
  });

  test("a structured answer", async () => {
    const backend = three.script(format, answer(text('{"age":22}')));
    const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
    const told = await client.chat({ model, messages, format: schema });
    expect(JSON.parse(told.message.content)).toEqual({ age: 22 });
    expect(backend.last.text).toContain('"age"');
  });

  test.each([false, true])("a prompt, stream: %p", async (stream) => {
    const backend = three.script(format, { ...answer(text("hello there")), usage: { input: 3, output: 2 } });
    const asked = { model, prompt: "Say hello", system: "Be brief.", images: [PNG] };
    let seen = "";
    let end = {};
    if (stream) {
      for await (const part of await client.generate({ ...asked, stream })) {
        seen += part.response;
        end = part;
      }
    } else {
      end = await client.generate(asked);
      seen = (end as { response: string }).response;
    }
    expect(seen).toBe("hello there");
    expect(end).toMatchObject({ model, done: true, done_reason: "stop", prompt_eval_count: 3, eval_count: 2 });
    expect(backend.last.text).toContain("Say hello");
    expect(backend.last.text).toContain("Be brief.");
  });

  test("errors of a backend, whole and in front of a stream", async () => {
    three.script(format, failure(400, "the prompt is odd"), failure(400, "the prompt is odd"));
    expect(await refusal(client.chat({ model, messages }))).toMatchObject({
      error: expect.stringContaining("the prompt is odd"),
      status_code: 400,
    });
    const streamed = await refusal(client.chat({ model, messages, stream: true }));
    expect(streamed).toMatchObject({ error: expect.stringContaining("the prompt is odd"), status_code: 400 });
  });

  /** One answer as a client puts it together. */
  async function whole({ stream, ...asked }: ChatRequest): Promise<Message> {
    if (stream !== true) return (await client.chat(asked)).message;
    const told: Message = { role: "assistant", content: "" };
    for await (const { message } of await client.chat({ ...asked, stream: true })) {
      told.content += message.content;
      if (message.thinking !== undefined) told.thinking = (told.thinking ?? "") + message.thinking;
      if (message.tool_calls !== undefined) told.tool_calls = [...(told.tool_calls ?? []), ...message.tool_calls];
    }
    return told;
  }
});

describe("what does not depend on a backend", () => {
  test("models: the list, running ones, and what is known of one", async () => {
    const { models } = await client.list();
    expect(models.map(({ name }) => name).toSorted()).toEqual(Object.values(MODEL_OF).toSorted());
    expect(new Set(models.map(({ digest }) => digest)).size).toBe(models.length);
    expect(models[0]?.digest).toMatch(/^[0-9a-f]{64}$/);
    expect((await client.list()).models).toEqual(models);
    expect((await client.ps()).models.map(({ name }) => name)).toEqual(models.map(({ name }) => name));
    const shown = (await client.show({ model: MODEL_OF.messages })) as unknown as {
      capabilities: string[];
      model_info: Record<string, unknown>;
    };
    expect(shown.capabilities).toEqual(["completion", "vision", "tools", "thinking"]);
    expect(shown.model_info["general.basename"]).toBe("Claude Sonnet 4.5");
  });

  test("the version, and a model that is only to be loaded", async () => {
    expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
    const loaded = await client.generate({ model: MODEL_OF.chat, prompt: "", keep_alive: 0 });
    expect(loaded).toMatchObject({ response: "", done: true, done_reason: "unload" });
    let lines = 0;
    for await (const part of await client.chat({ model: MODEL_OF.chat, stream: true })) {
      lines++;
      expect(part).toMatchObject({ message: { content: "" }, done: true, done_reason: "load" });
    }
    expect(lines).toBe(1);
  });

  test("what is not offered is told in Ollama's words", async () => {
    for (const asked of [
      () => client.pull({ model: "llama3" }),
      () => client.delete({ model: "llama3" }),
      () => client.create({ model: "llama3", from: "x" }),
      () => client.copy({ source: "a", destination: "b" }),
    ]) {
      const refused = await refusal(asked());
      expect(refused).toMatchObject({
        status_code: 404,
        error: expect.stringContaining("models belong to the backends"),
      });
    }
    expect(await refusal(client.chat({ model: "no-such-model", messages }))).toMatchObject({
      status_code: 404,
      error: expect.stringContaining("no-such-model"),
    });
    expect(await refusal(client.generate({ model: MODEL_OF.chat, prompt: "x", suffix: "y" }))).toMatchObject({
      status_code: 400,
      error: expect.stringMatching(/^suffix: /),
    });
  });
});
