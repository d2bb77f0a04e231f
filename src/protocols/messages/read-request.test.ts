// Messages requests: which bodies are refused, at which field, and what is read from the others.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readCountTokensRequest, readMessagesRequest } from "./read-request.ts";

const messages = [{ role: "user", content: "hi" }];
const valid = { model: "m", max_tokens: 5, messages };

function refusal(body: JsonObject): string | undefined {
  try {
    readMessagesRequest(body);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    expect(error.message).toStartWith(error.param as string);
    return error.param;
  }
  throw new Error(`nothing was refused in ${JSON.stringify(body)}`);
}

describe("what is refused", () => {
  const withMessage = (message: unknown) => ({ ...valid, messages: [...messages, message] });
  const withBlock = (block: unknown) => withMessage({ role: "assistant", content: [block] });
  const cases: [field: string, body: JsonObject][] = [
    ["model", { ...valid, model: undefined }],
    ["model", { ...valid, model: "" }],
    ["max_tokens", { ...valid, max_tokens: undefined }],
    ["max_tokens", { ...valid, max_tokens: 1.5 }],
    ["max_tokens", { ...valid, max_tokens: -1 }],
    ["max_tokens", { ...valid, max_tokens: "9" }],
    ["temperature", { ...valid, temperature: 1.1 }],
    ["top_p", { ...valid, top_p: "x" }],
    ["top_k", { ...valid, top_k: 0.5 }],
    ["stream", { ...valid, stream: "yes" }],
    ["messages", { ...valid, messages: undefined }],
    ["messages", { ...valid, messages: {} }],
    ["messages", { ...valid, messages: [] }],
    ["messages[1]", withMessage("x")],
    ["messages[1].role", withMessage({ content: "x" })],
    ["messages[1].role", withMessage({ role: "tool", content: "x" })],
    ["messages[1].content", withMessage({ role: "user" })],
    ["messages[1].content", withMessage({ role: "user", content: 5 })],
    ["messages[1].content[0]", withBlock("x")],
    ["messages[1].content[0].type", withBlock({})],
    ["messages[1].content[0].text", withBlock({ type: "text" })],
    ["messages[1].content[0].id", withBlock({ type: "tool_use", name: "f" })],
    ["messages[1].content[0].tool_use_id", withBlock({ type: "tool_result" })],
    ["system", { ...valid, system: 5 }],
    ["system[0].text", { ...valid, system: [{ type: "text", text: 1 }] }],
    ["stop_sequences", { ...valid, stop_sequences: "x" }],
    ["stop_sequences[1]", { ...valid, stop_sequences: ["a", 1] }],
    ["tools", { ...valid, tools: {} }],
    ["tools[0]", { ...valid, tools: [null] }],
    ["tools[0].name", { ...valid, tools: [{ input_schema: {} }] }],
    ["tools[0].input_schema", { ...valid, tools: [{ type: "custom", name: "f" }] }],
    ["tool_choice", { ...valid, tool_choice: "auto" }],
    ["tool_choice.type", { ...valid, tool_choice: {} }],
    ["thinking", { ...valid, thinking: true }],
    ["output_config", { ...valid, output_config: [] }],
    ["metadata", { ...valid, metadata: "u" }],
  ];
  test.each(cases)("%s", (field, body) => {
    expect(refusal(body)).toBe(field);
  });
});

test("unknown members, blocks and tools pass, and null counts as left out", () => {
  const body = {
    ...valid,
    max_tokens: 0,
    system: null,
    stream: null,
    tools: [
      { type: "web_search_20990101", name: "web_search" },
      { type: null, name: "f", input_schema: {} },
    ],
    client_metadata: { a: 1 },
    messages: [...messages, { role: "system", content: [{ type: "future" }] }, { role: "assistant", content: [] }],
  };
  expect(readMessagesRequest(body)).toMatchObject({ model: "m", stream: false, choices: 1 });
  expect(readMessagesRequest({ ...valid, stream: true }).stream).toBe(true);
});

test("a request to count needs no max_tokens", () => {
  expect(readCountTokensRequest({ model: "m", messages })).toEqual({ model: "m" });
  expect(() => readCountTokensRequest({ model: "m" })).toThrow(GatewayError);
});

describe("the affinity", () => {
  const affinity = (more: JsonObject) => readMessagesRequest(valid).affinity({ ...valid, ...more });

  test("is the user or session that the client names", () => {
    expect(affinity({ metadata: { user_id: "u" } })).toBe("u");
    expect(affinity({ metadata: { user_id: "" } })).toBe(affinity({}));
  });

  test("is else the start, which stays the same in every turn", () => {
    const later = [...messages, { role: "assistant", content: "a" }, { role: "user", content: "b" }];
    expect(affinity({ messages: later })).toBe(affinity({}));
    const others = [{}, { system: "s" }, { messages: [{ role: "user", content: "ho" }] }];
    expect(new Set(others.map(affinity)).size).toBe(3);
    expect(affinity({ messages: [{ role: "assistant", content: "x" }] })).toBeUndefined();
    expect((affinity({ system: "x".repeat(100_000) }) as string).length).toBeLessThan(9_000);
  });
});
