// Which requests and which answers may be cached.

import { describe, expect, test } from "bun:test";
import type { Operation } from "../backends/operations.ts";
import { keptAnswers } from "../protocols/registry.ts";
import { bypassReason, isCacheablePlain, isCacheableStream } from "./policy.ts";

const chat = keptAnswers("chat")!;

const encoder = new TextEncoder();
const LIMITS = { max_response_size: 400, max_stream_buffer_size: 600 };

describe("requests", () => {
  const isCacheable = (operation: Operation, body: Record<string, unknown>) =>
    bypassReason(keptAnswers(operation)!, body) === undefined;

  test.each(["chat", "completions", "responses", "messages"] as const)("of %s by their temperature", (operation) => {
    for (const temperature of [undefined, null, 0]) expect(isCacheable(operation, { temperature })).toBe(true);
    for (const temperature of [0.1, 1, "0"]) expect(isCacheable(operation, { temperature })).toBe(false);
  });

  test("of generate-content by theirs", () => {
    const isKept = (config: Record<string, unknown>) => isCacheable("generate-content", { generationConfig: config });
    expect([isKept({}), isKept({ temperature: 0 }), isKept({ temperature: 0.1 })]).toEqual([true, true, false]);
    expect(isCacheable("generate-content", { generation_config: { temperature: 1 } })).toBe(false);
  });

  const tools = (...types: (string | undefined)[]) => ({ tools: types.map((type) => ({ type, name: "t" })) });

  test.each([
    ["chat", { store: true }],
    ["chat", { web_search_options: {} }],
    ["chat", tools("function", "web_search")],
    ["responses", { background: true }],
    ["responses", { conversation: "conv_1" }],
    ["responses", { prompt: { id: "pmpt_1" } }],
    ["responses", tools("web_search_preview")],
    ["responses", tools("function", "code_interpreter")],
    ["responses", tools("mcp")],
    ["responses", tools("a_tool_of_tomorrow")],
    ["responses", { input: [{ type: "additional_tools", ...tools("file_search") }] }],
    ["responses", { tools: [{ type: "namespace", name: "n", ...tools("mcp") }] }],
    ["generate-content", { cachedContent: "cachedContents/1" }],
    ["generate-content", { tools: [{ googleSearch: {} }] }],
    ["generate-content", { tools: [{ codeExecution: {} }] }],
    ["generate-content", { store: true }],
    ["messages", { container: "c" }],
    ["messages", { mcp_servers: [{ type: "url", url: "https://h" }] }],
    ["messages", tools("web_search_20250305")],
    ["messages", tools("code_execution_20250825")],
  ] as const)("of %s with a side effect, or whose answer may change: %p", (operation, body) => {
    expect(isCacheable(operation, body)).toBe(false);
  });

  test.each([
    ["chat", { store: false, ...tools("function") }],
    ["responses", { store: true }],
    ["responses", { store: false, background: false, conversation: null, ...tools("function", "custom") }],
    ["responses", { tools: [{ type: "namespace", name: "n", ...tools("function") }] }],
    ["messages", { container: null, mcp_servers: [], ...tools(undefined, "custom", "bash_20250124") }],
  ] as const)("of %s without: %p", (operation, body) => {
    expect(isCacheable(operation, body)).toBe(true);
  });

  test("in formats that are never kept", () => {
    for (const format of ["images", "audio", undefined]) expect(keptAnswers(format)).toBeUndefined();
  });
});

describe("plain answers", () => {
  const choice = (finish: unknown) => ({ message: { content: "x" }, finish_reason: finish });
  test.each([
    ["finished", { choices: [choice("stop")] }, true],
    ["one of two with an error", { choices: [choice("stop"), choice("error")] }, false],
    ["unfinished", { choices: [choice(null)] }, false],
    ["no choice", { choices: [] }, false],
    ["an error", { error: { message: "x" }, choices: [choice("stop")] }, false],
    ["too large", { choices: [choice("stop")], more: "x".repeat(400) }, false],
    ["no object", [], false],
  ])("%s", (_name, answer, expected) => {
    expect(isCacheablePlain(chat, encoder.encode(JSON.stringify(answer)), LIMITS)).toBe(expected);
  });
});

describe("streams", () => {
  const text = 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":null}]}\n\n';
  const done = "data: [DONE]\n\n";
  test.each([
    ["complete", text + done, true],
    ["complete with other line ends", `${text}data:[DONE]\r\n\r\n`, true],
    ["without its end", text, false],
    ["the end marker inside a text only", 'data: {"a":"data: [DONE]"}\n\n', false],
    ["finished with an error", `data: {"choices":[{"finish_reason":"error"}]}\n\n${done}`, false],
    ["an error event", `data: {"error":{"message":"x"}}\n\n${done}`, false],
    ["the word in a text", `data: {"choices":[{"delta":{"content":"\\"error\\""}}]}\n\n${done}`, true],
    ["the word as an argument", `data: {"choices":[{"delta":{"content":"error"},"type":"error"}]}\n\n${done}`, true],
    ["too long", text.repeat(10) + done, false],
    ["empty", "", false],
  ])("%s", (_name, body, expected) => {
    expect(isCacheableStream(chat, encoder.encode(body), LIMITS)).toBe(expected);
  });
});
