// Requests of Ollama's clients: which bodies are refused, at which field, and what is read from the others.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readChatRequest, readEmbedRequest, readGenerateRequest } from "./read-request.ts";

function refusal(read: () => unknown): { param: string | undefined; message: string } {
  try {
    read();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    return { param: error.param, message: error.message };
  }
  throw new Error("nothing was refused");
}

const messages = [{ role: "user", content: "hi" }];

test("a stream is what clients get who do not say", () => {
  expect(readChatRequest({ model: "m", messages })).toMatchObject({ model: "m", stream: true, choices: 1 });
  expect(readChatRequest({ model: "m", messages, stream: false }).stream).toBe(false);
  expect(readGenerateRequest({ model: "m", prompt: "x", stream: null }).stream).toBe(true);
});

test("the beginning of a conversation keeps it on one backend", () => {
  const body = { model: "m", messages: [{ role: "system", content: "s" }, ...messages, { role: "assistant" }] };
  const longer = { ...body, messages: [...body.messages, { role: "user", content: "more" }] };
  const summary = readChatRequest(body);
  expect(summary.affinity(body)).toBe(summary.affinity(longer) as string);
  expect(readGenerateRequest({ model: "m" }).affinity({})).toBeUndefined();
});

test("what only an engine knows passes, and so do nulls", () => {
  const body = {
    model: "m",
    messages: [{ role: "assistant", content: null, images: null, tool_calls: [{ function: { name: "f" } }] }],
    keep_alive: "5m",
    options: { num_ctx: 4096, mirostat: 1, temperature: null, stop: "x", num_predict: -1 },
    format: "",
    think: "high",
    future: 1,
  };
  expect(readChatRequest(body).model).toBe("m");
  expect(readGenerateRequest({ model: "m", template: "t", context: [1], raw: true, suffix: "s" }).model).toBe("m");
});

describe("what is refused in a chat", () => {
  const cases: [more: JsonObject, param: string, message: string][] = [
    [{ model: undefined }, "model", "model is required: the id of a model, see GET /v1/models."],
    [{ messages: "hi" }, "messages", "messages: expected an array, got a string."],
    [{ messages: ["hi"] }, "messages[0]", "messages[0]: expected an object, got a string."],
    [{ messages: [{}] }, "messages[0].role", "messages[0].role is required: one of system, user, assistant, tool."],
    [
      { messages: [{ role: "developer" }] },
      "messages[0].role",
      'messages[0].role: expected one of system, user, assistant, tool, got "developer".',
    ],
    [
      { messages: [{ role: "user", content: [] }] },
      "messages[0].content",
      "messages[0].content: expected a string, got an array.",
    ],
    [
      { messages: [{ role: "user", images: [1] }] },
      "messages[0].images[0]",
      "messages[0].images[0]: expected a picture in base64, got a number.",
    ],
    [{ stream: "no" }, "stream", "stream: expected true or false, got a string."],
    [{ tools: {} }, "tools", "tools: expected an array, got an object."],
    [{ format: "xml" }, "format", 'format: expected "json" or a JSON Schema object.'],
    [
      { think: "deep" },
      "think",
      'think: expected one of true, false, none, minimal, auto, low, medium, high, xhigh, max, got "deep".',
    ],
    [{ options: [] }, "options", "options: expected an object, got an array."],
    [{ options: { top_p: 2 } }, "options.top_p", "options.top_p: expected a number from 0 to 1, got 2."],
    [
      { options: { temperature: "hot" } },
      "options.temperature",
      "options.temperature: expected a number, got a string.",
    ],
    [
      { options: { num_predict: -3 } },
      "options.num_predict",
      "options.num_predict: expected an integer of at least -2, got -3.",
    ],
    [
      { options: { seed: 1.5 } },
      "options.seed",
      "options.seed: expected an integer of at least -9007199254740991, got 1.5.",
    ],
    [
      { options: { stop: [1] } },
      "options.stop",
      "options.stop: expected a string or an array of strings, got an array.",
    ],
  ];
  test.each(cases)("%j at %s", (more, param, message) => {
    expect(refusal(() => readChatRequest({ model: "m", messages, ...more }))).toEqual({ param, message });
  });
});

test.each([
  [{ prompt: 1 }, "prompt"],
  [{ system: [] }, "system"],
  [{ raw: "yes" }, "raw"],
  [{ images: "QUJD" }, "images"],
  [{ messages: [] }, "messages"],
] as [JsonObject, string][])("what is refused of a prompt: %j", (more, param) => {
  expect(refusal(() => readGenerateRequest({ model: "m", prompt: "x", ...more })).param).toBe(param);
});

test("embeddings take texts, and the older form one", () => {
  expect(readEmbedRequest({ model: "m", input: ["a"] }, "input")).toMatchObject({ model: "m", stream: false });
  expect(readEmbedRequest({ model: "m", prompt: "a" }, "prompt").model).toBe("m");
  const cases: [JsonObject, "input" | "prompt", string][] = [
    [{}, "input", "input"],
    [{ input: [1] }, "input", "input"],
    [{ input: "a", dimensions: 0 }, "input", "dimensions"],
    [{ prompt: ["a"] }, "prompt", "prompt"],
  ];
  for (const [body, field, param] of cases) {
    expect(refusal(() => readEmbedRequest({ model: "m", ...body }, field)).param).toBe(param);
  }
});
