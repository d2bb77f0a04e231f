// Chat requests as neutral requests: every role and part, the deprecated forms, the extensions, and what is refused.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { ContentPart, Message } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { decodeRequest } from "./request-decoder.ts";

const user = { role: "user", content: "hi" };

function decode(more: JsonObject = {}) {
  return decodeRequest({ model: "m", messages: [user], ...more });
}

function conversation(...messages: JsonObject[]): Message[] {
  return decode({ messages }).messages;
}

function partsOf(message: JsonObject): ContentPart[] {
  return conversation(message)[0]?.parts ?? [];
}

function refusedField(more: JsonObject): string | undefined {
  try {
    decode(more);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    expect(error.message).toStartWith(`${error.param}`);
    return error.param;
  }
  throw new Error("nothing was refused");
}

describe("roles", () => {
  test("leading system and developer messages are the instructions, later ones stay in their place", () => {
    const request = decode({
      messages: [
        { role: "system", content: "a" },
        {
          role: "developer",
          content: [
            { type: "text", text: "b" },
            { type: "text", text: "c" },
          ],
        },
        user,
        { role: "developer", content: "later", name: "boss" },
      ],
    });
    expect(request.system.map((part) => part.text)).toEqual(["a", "b", "c"]);
    expect(request.messages).toEqual([
      { role: "user", parts: [{ type: "text", text: "hi" }] },
      { role: "system", parts: [{ type: "text", text: "later" }], name: "boss" },
    ]);
  });

  test("neighbouring tool messages are one message of the user, others keep them apart", () => {
    const result = (id: string, content: unknown) => ({ role: "tool", tool_call_id: id, content });
    const messages = conversation(result("a", "1"), result("b", [{ type: "text", text: "2" }]), user, result("c", "3"));
    expect(messages.map(({ role, parts }) => [role, parts.map((part) => part.type)])).toEqual([
      ["user", ["tool-result", "tool-result"]],
      ["user", ["text"]],
      ["user", ["tool-result"]],
    ]);
    expect(messages[0]?.parts[1]).toEqual({ type: "tool-result", callId: "b", parts: [{ type: "text", text: "2" }] });
  });

  test("the deprecated function messages get the id of the call they answer", () => {
    const [, call, result] = conversation(
      user,
      { role: "assistant", content: null, function_call: { name: "f", arguments: '{"a":1}' } },
      { role: "function", name: "f", content: "42" },
    );
    const [part] = call?.parts ?? [];
    expect(part).toEqual({ type: "tool-call", id: "function_1", name: "f", arguments: '{"a":1}' });
    expect(result?.parts).toEqual([
      { type: "tool-result", callId: "function_1", name: "f", parts: [{ type: "text", text: "42" }] },
    ]);
  });
});

describe("parts", () => {
  const cases: [title: string, part: JsonObject, expected: ContentPart][] = [
    ["text", { type: "text", text: "x" }, { type: "text", text: "x" }],
    [
      "a hint for the cache",
      { type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "1h" } },
      { type: "text", text: "x", cache: { ttl: "1h" } },
    ],
    [
      "an image by address",
      { type: "image_url", image_url: { url: "https://x/a.png", detail: "low" } },
      { type: "image", source: { kind: "url", url: "https://x/a.png" }, detail: "low" },
    ],
    [
      "an image by data",
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } },
    ],
    [
      "an image as a bare address",
      { type: "image_url", image_url: "https://x/a.png" },
      { type: "image", source: { kind: "url", url: "https://x/a.png" } },
    ],
    [
      "data that is not base64",
      { type: "image_url", image_url: { url: "data:image/svg+xml,%3Csvg%2F%3E" } },
      { type: "image", source: { kind: "base64", mediaType: "image/svg+xml", data: btoa("<svg/>") } },
    ],
    [
      "audio",
      { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
      { type: "audio", source: { kind: "base64", mediaType: "audio/mpeg", data: "AAAA" } },
    ],
    [
      "a file by id",
      { type: "file", file: { file_id: "file-1" } },
      { type: "document", source: { kind: "file", fileId: "file-1" } },
    ],
    [
      "a file by data",
      { type: "file", file: { file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" } },
      { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "AAAA" }, title: "a.pdf" },
    ],
    [
      "a file by bare base64",
      { type: "file", file: { file_data: "AAAA", filename: "a.TXT" } },
      { type: "document", source: { kind: "base64", mediaType: "text/plain", data: "AAAA" }, title: "a.TXT" },
    ],
    [
      "a video",
      { type: "video_url", video_url: { url: "https://x/a.mp4" } },
      { type: "video", source: { kind: "url", url: "https://x/a.mp4" } },
    ],
    [
      "what nobody knows",
      { type: "hologram", data: 1 },
      { type: "opaque", protocol: "chat", value: { type: "hologram", data: 1 } },
    ],
  ];
  test.each(cases)("%s", (_title, part, expected) => {
    expect(partsOf({ role: "user", content: [part] })).toEqual([expected]);
  });

  test("a hint for the cache on the message goes to its last part", () => {
    const parts = partsOf({ role: "user", content: "x", cache_control: { type: "ephemeral" } });
    expect(parts).toEqual([{ type: "text", text: "x", cache: {} }]);
  });
});

describe("assistant messages", () => {
  const call = (more: JsonObject = {}) => ({ id: "c1", type: "function", function: { name: "f" }, ...more });
  const cases: [title: string, message: JsonObject, expected: ContentPart[]][] = [
    ["text", { content: "x" }, [{ type: "text", text: "x" }]],
    ["nothing", { content: "" }, [{ type: "text", text: "" }]],
    ["refusal", { content: null, refusal: "no" }, [{ type: "refusal", text: "no" }]],
    ["refusal part", { content: [{ type: "refusal", refusal: "no" }] }, [{ type: "refusal", text: "no" }]],
    [
      "thoughts, text and calls",
      { content: "x", reasoning_content: "hm", tool_calls: [call()] },
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "x" },
        { type: "tool-call", id: "c1", name: "f", arguments: "" },
      ],
    ],
    ["the other name of thoughts", { content: "", reasoning: "hm" }, [{ type: "reasoning", text: "hm" }]],
    [
      "a signed call",
      { content: "", tool_calls: [call({ extra_content: { google: { thought_signature: "sig" } } })] },
      [{ type: "tool-call", id: "c1", name: "f", arguments: "", signature: "sig" }],
    ],
    [
      "signed text",
      { content: "x", extra_content: { google: { thought_signature: "sig" } } },
      [{ type: "text", text: "x", signature: "sig" }],
    ],
    [
      "a custom call",
      { content: null, tool_calls: [{ id: "c1", type: "custom", custom: { name: "f", input: "free" } }] },
      [{ type: "tool-call", id: "c1", name: "f", arguments: "free", custom: true }],
    ],
    [
      "arguments as an object",
      { content: null, tool_calls: [call({ function: { name: "f", arguments: { a: 1 } } })] },
      [{ type: "tool-call", id: "c1", name: "f", arguments: '{"a":1}' }],
    ],
    [
      "a signed thought",
      {
        content: "x",
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.text", format: "anthropic-claude-v1", text: "hm", signature: "s" }],
      },
      [
        { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
        { type: "text", text: "x" },
      ],
    ],
    [
      "a signed thought as it was streamed",
      {
        content: "x",
        reasoning_content: "m", // of which some clients keep the last piece alone
        reasoning_details: [
          { type: "reasoning.text", format: "anthropic-claude-v1", proved_text: "hm", signature: "s" },
        ],
      },
      [
        { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
        { type: "text", text: "x" },
      ],
    ],
    [
      "a sealed thought beside a readable one",
      {
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.encrypted", format: "openai-responses-v1", data: "d", id: "rs_1" }],
      },
      [
        { type: "reasoning", text: "hm" },
        { type: "reasoning", text: "", sealed: "d", itemId: "rs_1", origin: "responses" },
      ],
    ],
    [
      "a proof of a format that only chat engines know",
      { reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s", format: "unknown" }] },
      [
        {
          type: "reasoning",
          text: "hm",
          origin: "chat",
          signature: '{"type":"reasoning.text","signature":"s","format":"unknown"}',
        },
      ],
    ],
    [
      "annotations",
      {
        content: "x",
        annotations: [{ type: "url_citation", url_citation: { url: "u", title: "t", start_index: 0, end_index: 1 } }],
      },
      [{ type: "text", text: "x", citations: [{ url: "u", title: "t", startIndex: 0, endIndex: 1 }] }],
    ],
    ["audio", { audio: { id: "a" } }, [{ type: "opaque", protocol: "chat", value: { audio: { id: "a" } } }]],
  ];
  test.each(cases)("%s", (_title, message, expected) => {
    expect(partsOf({ role: "assistant", ...message })).toEqual(expected);
  });
});

describe("failed tools", () => {
  const cases: [content: unknown, more: JsonObject, isError: true | undefined, texts: string[]][] = [
    ["fine", {}, undefined, ["fine"]],
    ["bad", { is_error: true }, true, ["bad"]],
    ["fine", { is_error: false }, undefined, ["fine"]],
    ["[tool error] bad", {}, true, ["bad"]],
    ["[tool error]", {}, true, []],
    [
      [
        { type: "text", text: "[tool error] a" },
        { type: "text", text: "b" },
      ],
      {},
      true,
      ["a", "b"],
    ],
    ["not a [tool error]", {}, undefined, ["not a [tool error]"]],
  ];
  test.each(cases)("%j %j", (content, more, isError, texts) => {
    const [part] = partsOf({ role: "tool", tool_call_id: "t", content, ...more });
    if (part?.type !== "tool-result") throw new Error("no tool result");
    expect(part.isError).toBe(isError);
    expect(part.parts.map((piece) => (piece.type === "text" ? piece.text : ""))).toEqual(texts);
  });
});

describe("tools", () => {
  test("functions, custom tools, searches and what others run", () => {
    const parameters = { type: "object", properties: {} };
    const { tools } = decode({
      tools: [
        { type: "function", function: { name: "f", description: "d", parameters, strict: false } },
        { type: "custom", custom: { name: "c", format: { type: "text" } } },
        { type: "web_search_preview", user_location: { type: "approximate", approximate: { city: "B" } } },
        { type: "code_interpreter" },
      ],
    });
    expect(tools).toMatchObject([
      { kind: "function", name: "f", description: "d", parameters, strict: false },
      { kind: "custom", name: "c", format: { type: "text" } },
      { kind: "web-search", name: "web_search", userLocation: { city: "B" } },
      { kind: "hosted", name: "code_interpreter", origin: { protocol: "chat" } },
    ]);
  });

  test("the deprecated functions are tools, one call at a time", () => {
    const request = decode({ functions: [{ name: "f" }], function_call: { name: "f" } });
    expect(request.tools).toEqual([{ kind: "function", name: "f" }]);
    expect(request.toolChoice).toEqual({ type: "tool", name: "f" });
    expect(request.parallelToolCalls).toBe(false);
    expect(request.extensions).toEqual({});
  });

  const choices: [value: unknown, expected: unknown][] = [
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [
      { type: "function", function: { name: "f" } },
      { type: "tool", name: "f" },
    ],
    [
      { type: "custom", custom: { name: "c" } },
      { type: "tool", name: "c" },
    ],
    [
      {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
      },
      { type: "allowed", mode: "required", names: ["f"] },
    ],
    [null, undefined],
  ];
  test.each(choices)("tool_choice %j", (value, expected) => {
    expect(decode({ tool_choice: value }).toolChoice as unknown).toEqual(expected);
  });

  test("web_search_options is a search", () => {
    const { tools } = decode({ web_search_options: { user_location: { approximate: { city: "B" } } } });
    expect(tools).toMatchObject([{ kind: "web-search", userLocation: { city: "B" } }]);
  });
});

describe("settings", () => {
  test("all of them", () => {
    const request = decode({
      stream: true,
      max_tokens: 5,
      max_completion_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 3,
      frequency_penalty: 1,
      presence_penalty: -1,
      seed: 4,
      stop: "x",
      n: 2,
      logprobs: true,
      top_logprobs: 2,
      logit_bias: { "1": 1 },
      verbosity: "low",
      user: "u",
      metadata: { a: "b" },
      prompt_cache_key: "k",
      parallel_tool_calls: false,
      response_format: { type: "json_object" },
      stream_options: { include_usage: true },
      service_tier: "flex",
      store: null,
      future: 1,
    });
    expect(request).toMatchObject({
      stream: true,
      maxOutputTokens: 7,
      verbosity: "low",
      user: "u",
      metadata: { a: "b" },
      promptCacheKey: "k",
      parallelToolCalls: false,
      responseFormat: { type: "json" },
    });
    expect(request.sampling).toEqual({
      temperature: 0.5,
      topP: 0.9,
      topK: 3,
      frequencyPenalty: 1,
      presencePenalty: -1,
      seed: 4,
      stop: ["x"],
      choices: 2,
      logprobs: true,
      topLogprobs: 2,
      logitBias: { "1": 1 },
    });
    expect(request.extensions).toEqual({ service_tier: "flex", future: 1 });
  });

  test("effort: its own field, the nested one, and the former before the latter", () => {
    const effortOf = (more: JsonObject) => decode(more).reasoning.effort;
    expect(effortOf({ reasoning_effort: "xhigh" })).toBe("xhigh");
    expect(effortOf({ reasoning: { effort: "auto" } })).toBe("auto");
    expect(effortOf({ reasoning_effort: "low", reasoning: { effort: "high" } })).toBe("low");
    expect(effortOf({ reasoning_effort: null })).toBeUndefined();
    expect(decode({ reasoning: { max_tokens: 9, exclude: true } }).reasoning).toEqual({
      budgetTokens: 9,
      visible: false,
    });
  });

  test("a JSON schema keeps strict as it was said, or unsaid", () => {
    const formatOf = (more: JsonObject) =>
      decode({ response_format: { type: "json_schema", json_schema: { name: "n", schema: { a: 1 }, ...more } } })
        .responseFormat;
    expect(formatOf({})).toEqual({ type: "json-schema", name: "n", schema: { a: 1 } });
    expect(formatOf({ strict: false })).toMatchObject({ strict: false });
  });
});

describe("refused", () => {
  const cases: [field: string, more: JsonObject][] = [
    ["messages", { messages: [] }],
    ["messages[0].role", { messages: [{ role: "narrator", content: "x" }] }],
    ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
    ["messages[0].name", { messages: [{ role: "function", name: "f", content: "x" }] }],
    ["messages[0].content[0].text", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
    ["messages[0].content[0].image_url.url", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }],
    ["messages[0].content[0].file", { messages: [{ role: "user", content: [{ type: "file" }] }] }],
    [
      "messages[0].content[0].type",
      { messages: [{ role: "system", content: [{ type: "image_url", image_url: "u" }] }] },
    ],
    ["messages[0].tool_calls[0].function.name", { messages: [{ role: "assistant", tool_calls: [{ id: "x" }] }] }],
    ["tools[0].function", { tools: [{ type: "function" }] }],
    ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
    ["tools[0].function.parameters", { tools: [{ type: "function", function: { name: "f", parameters: "x" } }] }],
    ["tools[0].type", { tools: [{}] }],
    ["tool_choice", { tool_choice: "sometimes" }],
    ["reasoning_effort", { reasoning_effort: "ultra" }],
    ["reasoning.effort", { reasoning: { effort: "ultra" } }],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
    ["modalities", { modalities: ["text", "audio"] }],
  ];
  test.each(cases)("%s", (field, more) => {
    expect(refusedField(more)).toBe(field);
  });
});
