// What is checked of a generateContent request, and what is read of it for routing.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readCountRequest } from "./count-tokens.ts";
import { readBatchRequest, readEmbedRequest } from "./embed-content.ts";
import { readContentRequest } from "./read-request.ts";

const contents = [{ parts: [{ text: "hi" }] }];
const content = contents[0] as JsonObject;

function paramOf(read: () => unknown): string | undefined {
  try {
    read();
  } catch (error) {
    if (error instanceof GatewayError) return error.param;
    throw error;
  }
  return undefined;
}

test.each<[string | undefined, JsonObject]>([
  [undefined, { contents }],
  [undefined, { contents: content }],
  [undefined, { contents, generationConfig: { temperature: 2, topP: 1, maxOutputTokens: 1, stopSequences: ["a"] } }],
  [undefined, { contents: [{ role: "function", parts: [{ functionResponse: {} }] }], tools: [{ googleSearch: {} }] }],
  ["contents", {}],
  ["contents", { contents: [] }],
  ["contents[1]", { contents: [content, 1] }],
  ["contents[0].role", { contents: [{ role: "assistant", parts: [] }] }],
  ["contents[0].parts[0]", { contents: [{ parts: ["hi"] }] }],
  ["contents.parts[0].text", { contents: { parts: [{ text: 1 }] } }],
  ["systemInstruction", { contents, system_instruction: 1 }],
  ["generationConfig", { contents, generationConfig: [] }],
  ["generationConfig.temperature", { contents, generationConfig: { temperature: 3 } }],
  ["generationConfig.maxOutputTokens", { contents, generation_config: { max_output_tokens: 1.5 } }],
  ["generationConfig.stopSequences[1]", { contents, generationConfig: { stopSequences: ["a", 1] } }],
  ["generationConfig.thinkingConfig", { contents, generationConfig: { thinkingConfig: "much" } }],
  ["tools[0]", { contents, tools: ["search"] }],
  ["tools[0].functionDeclarations[0].name", { contents, tools: [{ functionDeclarations: [{}] }] }],
  ["toolConfig", { contents, toolConfig: 1 }],
])("%p of %j", (param, body) => {
  expect(paramOf(() => readContentRequest(body, "m", false))).toBe(param);
  expect(paramOf(() => readCountRequest(body, "m"))).toBe(param);
});

test("the model and the stream stand in the path", () => {
  const summary = readContentRequest({ contents, generationConfig: { candidateCount: 2 } }, "models/a/b:c", true);
  expect(summary).toMatchObject({ model: "a/b:c", stream: true, choices: 2 });
  expect(paramOf(() => readContentRequest({ contents }, "models/", false))).toBe("model");
});

test("a conversation is known by its beginning, whatever follows", () => {
  const affinityOf = (body: JsonObject) => readContentRequest(body, "m", false).affinity(body);
  const longer = [content, { role: "model", parts: [{ text: "hello" }] }, content];
  expect(affinityOf({ contents })).toBe(affinityOf({ contents: longer }) as string);
  expect(affinityOf({ contents, systemInstruction: "s" })).not.toBe(affinityOf({ contents }));
});

describe("embeddings", () => {
  test.each<[string | undefined, JsonObject]>([
    [undefined, { content }],
    ["content", {}],
    ["content", { content: "hi" }],
    ["content.parts", { content: { parts: [] } }],
  ])("%p of %j", (param, body) => {
    expect(paramOf(() => readEmbedRequest(body, "m"))).toBe(param);
  });

  test.each<[string | undefined, JsonObject]>([
    [undefined, { requests: [{ model: "models/m", content }] }],
    ["requests", {}],
    ["requests", { requests: {} }],
    ["requests", { requests: [] }],
    ["requests", { requests: Array.from({ length: 101 }, () => ({ content })) }],
    ["requests[1].content", { requests: [{ content }, {}] }],
  ])("%p of a batch", (param, body) => {
    expect(paramOf(() => readBatchRequest(body, "m"))).toBe(param);
  });
});
