// The official SDK as a client of the demo backend, over a real socket.

import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { createDemoBackend } from "../../src/demo/backend.ts";

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: createDemoBackend({ wordDelayMs: 0 }) });
const client = new OpenAI({ apiKey: "none", baseURL: `${server.url.href}v1`, maxRetries: 0 });
afterAll(() => server.stop(true));

const messages = [{ role: "user" as const, content: "What is a signal box?" }];

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 3 }, detail: { type: "boolean" } },
      required: ["city", "days"],
    },
  },
};

test("models", async () => {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual(["demo", "demo-embedding", "demo-image"]);
});

describe("chat", () => {
  test("plain and stream helper agree in text and usage", async () => {
    const plain = await client.chat.completions.create({ model: "demo", messages });
    const stream = client.chat.completions.stream({ model: "demo", messages, stream_options: { include_usage: true } });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(plain.choices[0]?.message.content as string);
    expect(final.choices[0]?.finish_reason).toBe("stop");
    expect(final.usage).toEqual(plain.usage as OpenAI.CompletionUsage);
    expect(plain.usage?.total_tokens).toBe(
      (plain.usage?.prompt_tokens as number) + (plain.usage?.completion_tokens as number),
    );
  });

  test.each(["required" as const, { type: "function" as const, function: { name: "get_weather" } }])(
    "tool_choice %j gives a well-formed call",
    async (toolChoice) => {
      const request = { model: "demo", messages, tools: [weather], tool_choice: toolChoice, n: 2 };
      const plain = await client.chat.completions.create(request);
      const streamed = await client.chat.completions.stream(request).finalChatCompletion();
      for (const answer of [plain, streamed]) {
        expect(answer.choices).toHaveLength(2);
        for (const { message, finish_reason } of answer.choices) {
          expect(finish_reason).toBe("tool_calls");
          expect(message.content).toBeNull();
          const call = message.tool_calls?.[0] as OpenAI.ChatCompletionMessageFunctionToolCall;
          expect(call).toMatchObject({ id: expect.stringMatching(/^call_/), type: "function" } as never);
          expect(call.function.name).toBe("get_weather");
          expect(JSON.parse(call.function.arguments)).toEqual({ city: "example", days: 3 });
        }
      }
    },
  );

  test("an agent loop with automatic choice ends", async () => {
    const runner = client.chat.completions.runTools({
      model: "demo",
      messages,
      tools: [{ type: "function", function: { ...weather.function, function: () => "21 degrees", parse: JSON.parse } }],
    } as never);
    expect(await runner.finalContent()).toContain("demo model");
  });

  test("custom and allowed tools", async () => {
    const custom = { type: "custom" as const, custom: { name: "shell" } };
    const answer = await client.chat.completions.create({
      model: "demo",
      messages,
      tools: [weather, custom],
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "custom", custom: { name: "shell" } }] },
      },
    });
    expect(answer.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      type: "custom",
      custom: { name: "shell", input: "example" },
    });
  });

  test("a broken request raises BadRequestError with the field", async () => {
    const request = client.chat.completions.create({ model: "demo", messages: [] });
    const error = await request.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, param: "messages", code: "invalid_value" });
  });
});

test("text completions, streamed", async () => {
  const stream = await client.completions.create({ model: "demo", prompt: "Hello", stream: true });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
  expect(text).toContain('You wrote: "Hello"');
});

describe("embeddings", () => {
  const embed = async (input: string | string[], more: object = {}) => {
    const answer = await client.embeddings.create({ model: "demo-embedding", input, ...more });
    return answer.data.map((entry) => entry.embedding);
  };
  const dot = (one: number[], other: number[]) =>
    one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);

  test("the SDK's own base64 and floats are the same unit vectors", async () => {
    const [encoded, floats] = [
      await embed(["a cat", "a dog"]),
      await embed(["a cat", "a dog"], { encoding_format: "float" }),
    ];
    expect(encoded).toEqual(floats);
    for (const vector of floats) {
      expect(vector).toHaveLength(256);
      expect(dot(vector, vector)).toBeCloseTo(1, 5);
    }
  });

  test("dimensions are honoured", async () => {
    for (const dimensions of [1, 7, 4096]) expect((await embed("x", { dimensions }))[0]).toHaveLength(dimensions);
  });

  test("texts with common words are nearer than others", async () => {
    const [cat, kitten, trains] = (await embed(["the cat sat down", "The cat sat up!", "fast green trains"])) as [
      number[],
      number[],
      number[],
    ];
    expect(dot(cat, kitten)).toBeGreaterThan(dot(cat, trains) + 0.3);
  });

  test("token ids: a flat list is one input", async () => {
    const one = await client.embeddings.create({ model: "demo-embedding", input: [1, 2, 3] });
    const two = await client.embeddings.create({ model: "demo-embedding", input: [[1, 2], [3]] });
    expect([one.data.length, two.data.length]).toEqual([1, 2]);
    expect([one.usage.prompt_tokens, two.usage.prompt_tokens]).toEqual([3, 3]);
  });
});
