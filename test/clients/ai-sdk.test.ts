// Vercel's AI SDK with its four providers as a client of the running command, in front of a strict backend of each format.

import { afterEach, describe, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, type LanguageModel, Output, stepCountIs, streamText, tool } from "ai";
import { answer, call, failure, text, thinking } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { FORMATS, MODEL_OF, ThreeBackends } from "../support/three-backends.ts";

// What a provider cannot do with a model that it does not know is no matter here.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const three = new ThreeBackends(createTestBed());

afterEach(() => {
  expect(three.takeRefusals()).toEqual([]);
});

const PROVIDERS: [name: string, model: (base: string, id: string) => LanguageModel][] = [
  ["openai chat", (base, id) => createOpenAI({ apiKey: "none", baseURL: `${base}/v1` }).chat(id)],
  ["openai responses", (base, id) => createOpenAI({ apiKey: "none", baseURL: `${base}/v1` }).responses(id)],
  ["anthropic", (base, id) => createAnthropic({ apiKey: "none", baseURL: `${base}/anthropic/v1` })(id)],
  [
    "openai-compatible",
    (base, id) =>
      createOpenAICompatible({ name: "signalbox", apiKey: "none", baseURL: `${base}/v1`, includeUsage: true })(id),
  ],
];

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;

function weather(asked: string[]) {
  return tool({
    description: "The weather in a city",
    inputSchema: jsonSchema<{ city: string }>({ ...schema, required: ["city"] }),
    execute: ({ city }) => {
      asked.push(city);
      return { sky: city === "Oslo" ? "rain 4711" : "sun 4712" };
    },
  });
}

const OF_RESPONSES = { reasoningSummary: "auto", store: false, forceReasoning: true } as const;

const TWO_CALLS = answer(
  text("I look. "),
  call("get_weather", { city: "Oslo" }),
  call("get_weather", { city: "Rome" }),
);
const AFTER = { ...answer(text("Rain in Oslo, sun in Rome.")), usage: { input: 11, output: 7 } };

describe.each(PROVIDERS)("%s", (name, modelOf) => {
  describe.each(FORMATS)("with a %s backend", (format) => {
    const model = () => modelOf(three.gateway.url, MODEL_OF[format]);

    test("generateText runs tools over two steps", async () => {
      const backend = three.script(format, TWO_CALLS, AFTER);
      const asked: string[] = [];
      const result = await generateText({
        model: model(),
        maxRetries: 0,
        prompt: "weather?",
        tools: { get_weather: weather(asked) },
        stopWhen: stepCountIs(3),
      });
      expect(asked).toEqual(["Oslo", "Rome"]);
      expect(result.text).toBe("Rain in Oslo, sun in Rome.");
      expect(result.steps.map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
      expect(result.steps[1]?.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
      expect(backend.last.text).toContain("rain 4711");
      expect(backend.last.text).toContain("sun 4712");
    });

    test("streamText runs tools over two steps", async () => {
      const backend = three.script(format, TWO_CALLS, AFTER);
      const asked: string[] = [];
      const errors: unknown[] = [];
      const result = streamText({
        model: model(),
        maxRetries: 0,
        prompt: "weather?",
        tools: { get_weather: weather(asked) },
        stopWhen: stepCountIs(3),
        onError: ({ error }) => void errors.push(error),
      });
      let seen = "";
      for await (const piece of result.textStream) seen += piece;
      expect(errors).toEqual([]);
      expect(asked).toEqual(["Oslo", "Rome"]);
      expect(seen).toBe("I look. Rain in Oslo, sun in Rome.");
      expect((await result.steps)[1]?.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
      expect(backend.last.text).toContain("rain 4711");
    });

    test("thoughts go with the tool's result", async () => {
      three.script(
        format,
        answer(thinking("I should look."), call("get_weather", { city: "Oslo" })),
        answer(text("Rain.")),
      );
      const asked: string[] = [];
      const result = streamText({
        model: model(),
        maxRetries: 0,
        prompt: "weather?",
        tools: { get_weather: weather(asked) },
        stopWhen: stepCountIs(3),
        ...(name === "anthropic" && { maxOutputTokens: 4096 }),
        providerOptions: {
          openai: { reasoningEffort: "high", ...(name === "openai responses" && OF_RESPONSES) },
          anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } },
          signalbox: { reasoningEffort: "high" },
        },
      });
      expect(await result.text).toBe("Rain.");
      const [first] = await result.steps;
      // OpenAI's provider for chat completions reads no thoughts, and Responses shows them only when asked to, for which
      // a chat request and this one of Messages have no words.
      const isShown = name === "openai responses" || (name !== "openai chat" && format !== "responses");
      if (isShown) expect(first?.reasoningText).toBe("I should look.");
    });

    test("structured output", async () => {
      three.script(format, answer(text('{"city":"Oslo"}')));
      const { output } = await generateText({
        model: model(),
        maxRetries: 0,
        prompt: "a city as json",
        output: Output.object({ schema: jsonSchema<{ city: string }>({ ...schema, required: ["city"] }) }),
      });
      expect(output).toEqual({ city: "Oslo" });
    });

    test("errors keep their status and message", async () => {
      three.script(format, failure(429, "slow down"));
      const error = await generateText({ model: model(), maxRetries: 0, prompt: "hi" }).catch((caught) => caught);
      expect(APICallError.isInstance(error)).toBe(true);
      expect(error).toMatchObject({ statusCode: 429 });
      expect((error as Error).message).toContain("slow down");
    });

    test("a stream that fails in its middle is an error", async () => {
      three.script(format, {
        ...answer(text("a long answer that is never finished")),
        breakAfterFrames: 6,
        breakWith: { status: 500, message: "out of luck" },
      });
      const errors: unknown[] = [];
      const result = streamText({
        model: model(),
        maxRetries: 0,
        prompt: "hi",
        onError: ({ error }) => void errors.push(error),
      });
      let seen = "";
      for await (const piece of result.textStream) seen += piece;
      expect(seen).not.toBe("");
      expect(errors).toHaveLength(1);
    });
  });
});
