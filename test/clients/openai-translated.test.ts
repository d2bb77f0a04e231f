// The official OpenAI SDK, chat completions and Responses, in front of a strict backend of each format.

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { BadRequestError, NotFoundError, RateLimitError } from "openai";
import type { FunctionTool, ResponseInputItem } from "openai/resources/responses/responses";
import { answer, call, failure, text, thinking } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { FORMATS, MODEL_OF, ThreeBackends } from "../support/three-backends.ts";

const three = new ThreeBackends(createTestBed());
let client: OpenAI;

beforeAll(() => {
  client = new OpenAI({ apiKey: "not-checked-here", baseURL: `${three.gateway.url}/v1`, maxRetries: 0 });
});

afterEach(() => {
  expect(three.takeRefusals()).toEqual([]);
});

const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const weather: FunctionTool = { type: "function", name: "get_weather", parameters, strict: false };

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

  describe("chat completions", () => {
    test("the stream helper, with usage", async () => {
      three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
      const runner = client.chat.completions.stream({
        model,
        messages: [{ role: "user", content: "hi" }],
        stream_options: { include_usage: true },
      });
      const final = await runner.finalChatCompletion();
      expect(final.choices[0]?.message.content).toBe("hello there");
      expect(final.choices[0]?.finish_reason).toBe("stop");
      expect((await runner.totalUsage()).total_tokens).toBe(18);
    });

    test.each([false, true])("the tool runner calls two tools at once, stream: %p", async (stream) => {
      const backend = three.script(
        format,
        answer(text("I look. "), call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Rome" })),
        answer(text("Rain in Oslo, sun in Rome.")),
      );
      const asked: string[] = [];
      const tool = {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "The weather in a city",
          parameters,
          parse: (input: string) => JSON.parse(input) as { city: string },
          function: ({ city }: { city: string }) => {
            asked.push(city);
            return city === "Oslo" ? "rain" : "sun";
          },
        },
      };
      const body = { model, messages: [{ role: "user" as const, content: "weather?" }], tools: [tool] };
      const runner = stream
        ? client.chat.completions.runTools({ ...body, stream: true })
        : client.chat.completions.runTools({ ...body, stream: false });
      expect(await runner.finalContent()).toBe("Rain in Oslo, sun in Rome.");
      expect(asked).toEqual(["Oslo", "Rome"]);
      expect(backend.requests).toHaveLength(2);
      expect(backend.last.text).toContain("rain");
    });

    test("structured output is parsed", async () => {
      three.script(format, answer(text('{"city":"Oslo"}')));
      const final = await client.chat.completions.parse({
        model,
        messages: [{ role: "user", content: "a city as json" }],
        response_format: { type: "json_schema", json_schema: { name: "place", schema: parameters, strict: true } },
      });
      expect(final.choices[0]?.message.parsed).toEqual({ city: "Oslo" } as never);
    });
  });

  describe("responses", () => {
    test("create, and the text over all items", async () => {
      three.script(format, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
      const response = await client.responses.create({ model, input: "hi", instructions: "Be brief." });
      expect(response.output_text).toBe("hello there");
      expect(response.status).toBe("completed");
      expect(response.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    });

    test("the stream helper puts the same answer together", async () => {
      three.script(format, answer(text("hello "), call("get_weather", { city: "Oslo" })));
      const stream = client.responses.stream({ model, input: "hi", tools: [weather] });
      let seen = "";
      let args = "";
      stream.on("response.output_text.delta", (event) => {
        seen += event.delta;
      });
      stream.on("response.function_call_arguments.delta", (event) => {
        args += event.delta;
      });
      const final = await stream.finalResponse();
      expect(seen).toBe("hello ");
      expect(JSON.parse(args)).toEqual({ city: "Oslo" });
      expect(final.output.map((item) => item.type)).toEqual(["message", "function_call"]);
      expect(final.output_text).toBe("hello ");
    });

    test("a tool over two turns, with the items sent back", async () => {
      const backend = three.script(
        format,
        answer(call("get_weather", { city: "Oslo" })),
        answer(text("Rain in Oslo.")),
      );
      const input: ResponseInputItem[] = [{ role: "user", content: "weather in Oslo?" }];
      const first = await client.responses.create({ model, input, tools: [weather], store: false });
      const [item] = first.output;
      if (item?.type !== "function_call") throw new Error("no call arrived");
      input.push(item, { type: "function_call_output", call_id: item.call_id, output: "rain 4711" });
      const second = await client.responses.create({ model, input, tools: [weather], store: false });
      expect(second.output_text).toBe("Rain in Oslo.");
      expect(backend.last.text).toContain("rain 4711");
    });

    test("previous_response_id over two turns", async () => {
      const backend = three.script(
        format,
        answer(text("Nice to meet you."), call("get_weather", { city: "Oslo" })),
        answer(text("Rain, Ada.")),
      );
      const first = await client.responses.create({ model, input: "I am Ada. Weather?", tools: [weather] });
      const item = first.output.find(({ type }) => type === "function_call");
      if (item?.type !== "function_call") throw new Error("no call arrived");
      const second = await client.responses.create({
        model,
        tools: [weather],
        previous_response_id: first.id,
        input: [{ type: "function_call_output", call_id: item.call_id, output: "rain" }],
      });
      expect(second.output_text).toBe("Rain, Ada.");
      expect(second.previous_response_id).toBe(first.id);
      // A backend of this format keeps the conversation itself.
      if (format === "responses") expect(backend.last.body.previous_response_id).toBe(first.id);
      else expect(backend.last.text).toContain("I am Ada");
    });

    test.each([false, true])("thoughts, sealed and sent back with the tool's result, stream: %p", async (stream) => {
      const backend = three.script(
        format,
        answer(thinking("I should look."), call("get_weather", { city: "Oslo" })),
        answer(text("Rain.")),
      );
      const body = {
        model,
        tools: [weather],
        store: false,
        include: ["reasoning.encrypted_content" as const],
        reasoning: { effort: "high" as const, summary: "auto" as const },
      };
      const input: ResponseInputItem[] = [{ role: "user", content: "weather in Oslo?" }];
      const first = stream
        ? await client.responses.stream({ ...body, input }).finalResponse()
        : await client.responses.create({ ...body, input });
      const thought = first.output.find(({ type }) => type === "reasoning");
      if (thought?.type !== "reasoning") throw new Error("no thoughts arrived");
      expect(thought.summary.map((part) => part.text).join("")).toBe("I should look.");
      for (const item of first.output) {
        // The stream helper adds what it parsed, which is not sent back.
        const { parsed_arguments: _, ...sent } = item as typeof item & { parsed_arguments?: unknown };
        input.push(sent as ResponseInputItem);
        if (item.type === "function_call") {
          input.push({ type: "function_call_output", call_id: item.call_id, output: "rain" });
        }
      }
      const second = await client.responses.create({ ...body, input });
      expect(second.output_text).toBe("Rain.");
      // The strict backends refuse thoughts that come back without their proof, or altered.
      if (format === "messages") expect(backend.last.text).toContain('"signature"');
    });

    test("structured output is parsed", async () => {
      three.script(format, answer(text('{"city":"Oslo"}')));
      const final = await client.responses.parse({
        model,
        input: "a city as json",
        text: { format: { type: "json_schema", name: "place", schema: parameters, strict: true } },
      });
      expect(final.output_parsed).toEqual({ city: "Oslo" } as never);
    });

    test("an answer that was cut off is incomplete", async () => {
      three.script(format, { ...answer(text("hel")), finish: "length" });
      const final = await client.responses.stream({ model, input: "hi" }).finalResponse();
      expect(final.status).toBe("incomplete");
      expect(final.incomplete_details?.reason).toBe("max_output_tokens");
    });

    test("a stream that fails in its middle throws", async () => {
      three.script(format, {
        ...answer(text("a long answer that is never finished")),
        breakAfterFrames: 6,
        breakWith: { status: 500, message: "out of luck" },
      });
      await expect(client.responses.stream({ model, input: "hi" }).finalResponse()).rejects.toThrow();
    });
  });

  test("errors of the backend have their class in both", async () => {
    const messages = [{ role: "user" as const, content: "hi" }];
    three.script(format, failure(429, "slow down"), failure(400, "bad words"));
    expect(await refusal(client.chat.completions.create({ model, messages }))).toBeInstanceOf(RateLimitError);
    expect(await refusal(client.responses.create({ model, input: "hi" }))).toBeInstanceOf(BadRequestError);
    expect(await refusal(client.responses.create({ model: "nothing", input: "hi" }))).toBeInstanceOf(NotFoundError);
  });
});

test("what a backend cannot hold is BadRequestError, or dropped where agents send it unasked", async () => {
  const model = MODEL_OF.chat;
  const search = { type: "web_search" as const };
  const alone = await refusal(client.responses.create({ model, input: "hi", tools: [search] }));
  expect(alone).toBeInstanceOf(BadRequestError);
  const forced = { model, input: "hi", tools: [weather, search], tool_choice: { type: "web_search_preview" as const } };
  expect(await refusal(client.responses.create(forced))).toBeInstanceOf(BadRequestError);
  const files = { type: "file_search" as const, vector_store_ids: ["vs_1"] };
  expect(await refusal(client.responses.create({ model, input: "hi", tools: [weather, files] }))).toBeInstanceOf(
    BadRequestError,
  );
  const backend = three.script("chat", answer(text("hello")));
  expect((await client.responses.create({ model, input: "hi", tools: [weather, search] })).output_text).toBe("hello");
  expect(backend.last.body.tools).toHaveLength(1);
});
