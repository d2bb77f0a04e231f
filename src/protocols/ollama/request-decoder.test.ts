// Requests of Ollama's clients as neutral ones: conversations, prompts, options, and what only an engine could do.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { decodeRequest } from "./request-decoder.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQN";

const chat = (messages: readonly JsonObject[], more: JsonObject = {}) =>
  decodeRequest({ model: "m", messages, ...more });
const prompt = (more: JsonObject) => decodeRequest({ model: "m", ...more });
const text = (words: string) => ({ type: "text", text: words }) as const;

describe("conversations", () => {
  test("instructions, pictures, thoughts and calls", () => {
    const { system, messages } = chat([
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is it?", images: [PNG, `data:image/jpeg;base64,${JPEG}`] },
      {
        role: "assistant",
        content: "I look.",
        thinking: "Hm.",
        tool_calls: [{ id: "call_9", function: { name: "look", arguments: { at: { x: 1 } } } }],
      },
      { role: "tool", content: "a cat", tool_name: "look" },
      { role: "system", content: "Be kind." },
    ]);
    expect(system).toEqual([text("Be brief.")]);
    expect(messages).toEqual([
      {
        role: "user",
        parts: [
          { type: "image", source: { kind: "base64", mediaType: "image/png", data: PNG } },
          { type: "image", source: { kind: "base64", mediaType: "image/jpeg", data: JPEG } },
          text("What is it?"),
        ],
      },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "Hm." },
          text("I look."),
          { type: "tool-call", id: "call_9", name: "look", arguments: '{"at":{"x":1}}' },
        ],
      },
      { role: "user", parts: [{ type: "tool-result", callId: "call_9", name: "look", parts: [text("a cat")] }] },
      { role: "system", parts: [text("Be kind.")] },
    ]);
  });

  test("results find their calls by id, by the tool's name, or by their order", () => {
    const called = (name: string, id?: string) => ({ ...(id && { id }), function: { name, arguments: {} } });
    const idsOf = (calls: JsonObject[], results: JsonObject[]) => {
      const [turn, answer] = chat([
        { role: "assistant", tool_calls: calls },
        ...results.map((result) => ({ role: "tool", content: "", ...result })),
      ]).messages;
      const ids = turn?.parts.map((part) => (part.type === "tool-call" ? part.id : ""));
      return [ids, answer?.parts.map((part) => (part.type === "tool-result" ? part.callId : ""))];
    };
    const two = [called("a"), called("b")];
    expect(idsOf(two, [{ tool_name: "b" }, { tool_name: "a" }])).toEqual([
      ["tool_0", "tool_1"],
      ["tool_1", "tool_0"],
    ]);
    expect(idsOf(two, [{}, { name: "b" }])).toEqual([
      ["tool_0", "tool_1"],
      ["tool_0", "tool_1"],
    ]);
    expect(idsOf([called("a"), called("a")], [{ tool_name: "a" }, { tool_name: "a" }])).toEqual([
      ["tool_0", "tool_1"],
      ["tool_0", "tool_1"],
    ]);
    expect(idsOf([called("a", "x"), called("a", "y")], [{ tool_call_id: "y" }, { tool_name: "a" }])).toEqual([
      ["x", "y"],
      ["y", "x"],
    ]);
    // One that belongs to no call has an id of its own.
    expect(idsOf([called("a")], [{ tool_name: "c" }])).toEqual([["tool_0"], ["tool_1"]]);
    expect(idsOf([called("a", "x")], [{ tool_call_id: "z" }])).toEqual([["x"], ["z"]]);
  });

  test("ids that are given are those of the whole conversation", () => {
    const round = [
      { role: "assistant", tool_calls: [{ function: { name: "a" } }] },
      { role: "tool", content: "1" },
    ];
    const ids = chat([...round, ...round]).messages.flatMap(({ parts }) =>
      parts.map((part) => (part.type === "tool-call" ? part.id : part.type === "tool-result" ? part.callId : "")),
    );
    expect(ids).toEqual(["tool_0", "tool_0", "tool_1", "tool_1"]);
  });

  test("turns of nothing", () => {
    expect(chat([{ role: "user" }, { role: "assistant", content: "" }]).messages).toEqual([
      { role: "user", parts: [text("")] },
      { role: "assistant", parts: [text("")] },
    ]);
    expect(chat([{ role: "user", content: "", images: [PNG] }]).messages[0]?.parts).toHaveLength(1);
  });

  test("tools", () => {
    const parameters = { type: "object", properties: {} };
    const tools = [{ type: "function", function: { name: "a", description: "A.", parameters } }];
    expect(chat([], { tools }).tools).toEqual([{ kind: "function", name: "a", description: "A.", parameters }]);
  });
});

test("a prompt is a conversation of one turn", () => {
  const { system, messages, tools } = prompt({ prompt: "hi", system: "Be brief.", images: [PNG], tools: [{}] });
  expect(system).toEqual([text("Be brief.")]);
  expect(messages).toHaveLength(1);
  expect(messages[0]?.parts.map(({ type }) => type)).toEqual(["image", "text"]);
  expect(tools).toEqual([]);
});

test("options, the form of the answer, and thinking", () => {
  const options = {
    ...{ temperature: 0.5, top_p: 0.9, top_k: 40, seed: 7, presence_penalty: 0.1, frequency_penalty: 0.2 },
    ...{ stop: ["a", "b"], num_predict: 100 },
  };
  const schema = { type: "object" };
  expect(prompt({ prompt: "x", options, format: schema, think: "low", stream: false })).toMatchObject({
    sampling: {
      ...{ temperature: 0.5, topP: 0.9, topK: 40, seed: 7, presencePenalty: 0.1, frequencyPenalty: 0.2 },
      stop: ["a", "b"],
    },
    maxOutputTokens: 100,
    responseFormat: { type: "json-schema", name: "response", schema },
    reasoning: { effort: "low", visible: true },
    stream: false,
    extensions: {},
  });
  expect(prompt({ prompt: "x", options: { stop: "a", num_predict: -1 }, format: "json", think: true })).toMatchObject({
    sampling: { stop: ["a"] },
    responseFormat: { type: "json" },
    reasoning: { enabled: true, visible: true },
    stream: true,
  });
  expect(prompt({ prompt: "x", options: { num_predict: -1 } }).maxOutputTokens).toBeUndefined();
  expect(prompt({ prompt: "x", think: false }).reasoning).toEqual({ effort: "none", visible: false });
  expect(prompt({ prompt: "x" }).reasoning).toEqual({});
});

test("what only an engine could do is listed, each option by its name", () => {
  const options = { num_ctx: 4096, mirostat: 0, min_p: null };
  expect(prompt({ prompt: "x", keep_alive: 0, template: "{{ .Prompt }}", context: [1], options }).extensions).toEqual({
    keep_alive: 0,
    template: "{{ .Prompt }}",
    context: [1],
    "options.num_ctx": 4096,
    "options.mirostat": 0,
  });
});

describe("what is refused", () => {
  const cases: [body: JsonObject, param: string][] = [
    [{ prompt: "x", suffix: "y" }, "suffix"],
    [{ prompt: "x", raw: true }, "raw"],
    [{ prompt: "x", images: ["QUJD"] }, "images[0]"],
    [{ messages: [{ role: "user", content: "", images: [PNG, "no base64!"] }] }, "messages[0].images[1]"],
    [{ messages: [{ role: "assistant", tool_calls: [{}] }] }, "messages[0].tool_calls[0].function.name"],
    [{ messages: [], tools: [{ type: "function" }] }, "tools[0].function.name"],
  ];
  test.each(cases)("%j", (body, param) => {
    let refusal: unknown;
    try {
      decodeRequest({ model: "m", ...body });
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(GatewayError);
    expect(refusal).toMatchObject({ status: 400, param });
    expect((refusal as Error).message).toStartWith(param);
  });
});
