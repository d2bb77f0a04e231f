// Converse requests: what families of models take, and what the conversation needs.

import { describe, expect, test } from "bun:test";
import type { ToolResultPart } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { ENGINE_CHAT } from "../chat/quirks.ts";
import { encodeRequest } from "./request-encoder.ts";

const NOVA = "us.amazon.nova-2-lite-v1:0";
const LLAMA = "meta.llama3-3-70b-instruct-v1:0";
const OSS = "openai.gpt-oss-120b-1:0";

function encode(more: Partial<GenerationRequest>, model = NOVA) {
  const request: GenerationRequest = {
    model,
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "chat", body: {} },
    extensions: {},
    ...more,
  };
  const { body, dropped } = encodeRequest(request, {
    model,
    kind: { name: "bedrock", efforts: [], chat: ENGINE_CHAT },
  });
  return { body, dropped: dropped.map(({ feature }) => feature) };
}

const user = (...parts: GenerationRequest["messages"][number]["parts"]) => ({ role: "user", parts }) as const;
const assistant = (...parts: GenerationRequest["messages"][number]["parts"]) => ({ role: "assistant", parts }) as const;
const said = (text: string) => ({ type: "text", text }) as const;
const TOOL = { kind: "function", name: "look", parameters: { type: "object" } } as const;
const CALL = { type: "tool-call", id: "call/1 of a long kind", name: "look.up", arguments: '{"a":1}' } as const;

describe("how much to think", () => {
  test.each([
    [NOVA, { effort: "low" }, { reasoningConfig: { type: "enabled", maxReasoningEffort: "low" } }],
    [NOVA, { budgetTokens: 8_000 }, { reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" } }],
    [NOVA, { effort: "xhigh" }, { reasoningConfig: { type: "enabled", maxReasoningEffort: "high" } }],
    [NOVA, { enabled: false }, undefined],
    [NOVA, {}, undefined],
    [OSS, { effort: "none" }, { reasoning_effort: "low" }],
    [OSS, { effort: "high" }, { reasoning_effort: "high" }],
    [LLAMA, { effort: "high" }, undefined],
  ] as const)("%s %j", (model, reasoning, expected) => {
    expect(encode({ reasoning }, model).body.additionalModelRequestFields).toEqual(expected);
  });

  test("the highest effort of Nova 2 stands alone", () => {
    const sampling = { temperature: 0.5, topP: 0.5, topK: 5, stop: ["END"] };
    const { body, dropped } = encode({ sampling, maxOutputTokens: 10, reasoning: { effort: "high" } });
    expect(body.inferenceConfig).toEqual({ stopSequences: ["END"] });
    expect(dropped).toEqual(["temperature", "top_p", "top_k", "max_tokens"]);
  });
});

test("sampling has the words of the API, top_k those of the model", () => {
  const sampling = { temperature: 1.5, topP: 0.5, topK: 5, stop: ["END", " "], seed: 1 };
  const { body, dropped } = encode({ sampling, maxOutputTokens: 10 });
  expect(body).toMatchObject({
    inferenceConfig: { temperature: 1, topP: 0.5, maxTokens: 10, stopSequences: ["END"] },
    additionalModelRequestFields: { inferenceConfig: { topK: 5 } },
  });
  expect(dropped).toEqual(["temperature", "seed", "stop"]);
  expect(encode({ sampling: { topK: 5 } }, "cohere.command-r-v1:0").body.additionalModelRequestFields).toEqual({
    k: 5,
  });
  expect(encode({ sampling: { topK: 5 } }, LLAMA).dropped).toEqual(["top_k"]);
});

describe("the form of the answer", () => {
  const schema = { type: "object", properties: { a: { type: "number", minimum: 0 } } };
  const responseFormat = { type: "json-schema", name: "form", schema } as const;

  test("is constrained where the model can do that", () => {
    const { outputConfig } = encode({ responseFormat }, OSS).body as { outputConfig: { textFormat: object } };
    const cleaned = {
      type: "object",
      properties: { a: { type: "number", description: "(minimum: 0)" } },
      additionalProperties: false,
    };
    expect(outputConfig.textFormat).toMatchObject({ type: "json_schema", structure: { jsonSchema: { name: "form" } } });
    expect(JSON.stringify(outputConfig)).toContain(JSON.stringify(JSON.stringify(cleaned)).slice(1, 40));
  });

  test("is asked for in words otherwise", () => {
    const { body, dropped } = encode({ responseFormat });
    expect(body.outputConfig).toBeUndefined();
    expect(JSON.stringify(body.system)).toContain("JSON Schema");
    expect(dropped).toEqual(["response_format"]);
  });
});

describe("tools", () => {
  test.each([
    [NOVA, { type: "tool", name: "look" }, { tool: { name: "look" } }, 2],
    [NOVA, { type: "required" }, { any: {} }, 2],
    [NOVA, { type: "allowed", mode: "required", names: ["look"] as string[] }, { any: {} }, 1],
    [NOVA, { type: "auto" }, undefined, 2],
    [LLAMA, { type: "required" }, undefined, 2],
    [LLAMA, { type: "tool", name: "look" }, undefined, 1],
    ["mistral.mistral-large-2407-v1:0", { type: "tool", name: "look" }, { any: {} }, 1],
  ] as const)("%s %j", (model, toolChoice, expected, count) => {
    const { toolConfig } = encode({ tools: [TOOL, { ...TOOL, name: "other" }], toolChoice }, model).body as {
      toolConfig: { tools: unknown[]; toolChoice?: object };
    };
    expect([toolConfig.toolChoice, toolConfig.tools.length]).toEqual([expected, count]);
  });

  test("that may not be called are not offered, unless the conversation has calls", () => {
    expect(encode({ tools: [TOOL], toolChoice: { type: "none" } }).body.toolConfig).toBeUndefined();
    const { body, dropped } = encode({ messages: [user(said("Look.")), assistant(CALL)] });
    expect(body.toolConfig).toMatchObject({ tools: [{ toolSpec: { name: "look_up" } }] });
    expect(dropped).toEqual(["tool_calls", "tools"]);
  });

  test("of other vendors are refused by their place, or dropped where the client can do without", () => {
    const hosted = { kind: "hosted", name: "code_interpreter", origin: { protocol: "responses", value: {} } } as const;
    expect(() => encode({ tools: [TOOL, hosted] })).toThrow('tools[1]: the tool "code_interpreter"');
    expect(encode({ tools: [{ ...hosted, optional: true }] }).dropped).toEqual(["hosted tool code_interpreter"]);
    expect(() => encode({ tools: [{ ...TOOL, name: "a b" }] })).toThrow("tools[0].name");
  });

  test("are strict where the model can be", () => {
    const tools = [{ ...TOOL, strict: true }];
    expect(JSON.stringify(encode({ tools }, OSS).body.toolConfig)).toContain('"strict":true');
    expect(encode({ tools }).dropped).toEqual(["strict"]);
  });
});

describe("the conversation", () => {
  test("has calls and results under ids that the API takes", () => {
    const result: ToolResultPart = { type: "tool-result", callId: CALL.id, parts: [], isError: true };
    const messages = [user(said("Look.")), assistant(CALL), user(said("Well?"), result)];
    const { messages: sent } = encode({ messages, tools: [TOOL] }).body as { messages: { content: object[] }[] };
    const id = expect.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
    expect(sent[1]?.content).toEqual([{ toolUse: { toolUseId: id, name: "look_up", input: { a: 1 } } }]);
    expect(sent[2]?.content).toEqual([
      { toolResult: { toolUseId: id, content: [{ text: "(The tool returned nothing.)" }], status: "error" } },
      { text: "Well?" },
    ]);
  });

  test("tells errors and pictures of results in words and beside them where the model takes neither inside", () => {
    const picture = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } } as const;
    const parts = [said("Bad."), picture];
    const result: ToolResultPart = { type: "tool-result", callId: "c1", parts, isError: true };
    const messages = [user(said("Look.")), assistant({ ...CALL, id: "c1" }), user(result)];
    const { messages: sent } = encode({ messages, tools: [TOOL] }, LLAMA).body as { messages: { content: object[] }[] };
    expect(sent[2]?.content).toEqual([
      { toolResult: { toolUseId: "c1", content: [{ text: "Error:" }, { text: "Bad." }] } },
      { text: "Files that the tool returned:" },
      { image: { format: "png", source: { bytes: "AAAA" } } },
    ]);
  });

  test("begins with the user, has no blank text, and ends as the model wants it", () => {
    const messages = [assistant(said("Hello ")), user(said(" ")), assistant(said("I am "))];
    const nova = encode({ messages });
    expect(nova.body.messages).toEqual([
      { role: "user", content: [{ text: "(The conversation begins with the assistant.)" }] },
      { role: "assistant", content: [{ text: "Hello " }, { text: "I am" }] },
    ]);
    expect(encode({ messages }, LLAMA).dropped).toEqual(["messages[0]", "prefill"]);
    expect(encode({ messages: [] }).dropped).toEqual(["messages"]);
  });

  test("has thoughts only with their proof, and instructions at the beginning", () => {
    const own = { type: "reasoning", text: "Hm.", signature: "c2ln", origin: "converse" } as const;
    const messages = [
      user(said("Hi")),
      { role: "system" as const, parts: [said("Be brief.")] },
      assistant(own, { ...own, origin: "messages" }, said("Hello.")),
      user(said("Well?")),
    ];
    const { body, dropped } = encode({ messages });
    expect(body.system).toEqual([{ text: "Be brief." }]);
    expect(JSON.stringify(body.messages).split("reasoningContent").length).toBe(2);
    expect(dropped).toEqual(["system message", "reasoning of earlier answers"]);
  });
});

describe("media", () => {
  const file = (mediaType: string, title?: string) =>
    ({ type: "document", source: { kind: "base64", mediaType, data: "AAAA" }, ...(title && { title }) }) as const;

  test("documents have names of their own, and a text beside them", () => {
    const messages = [user(file("application/pdf", "a_b.pdf"), file("text/csv", "a b.csv"), file("text/x-python"))];
    const { messages: sent } = encode({ messages }).body as { messages: { content: object[] }[] };
    expect(sent[0]?.content).toEqual([
      { document: { format: "pdf", source: { bytes: "AAAA" }, name: "a b" } },
      { document: { format: "csv", source: { bytes: "AAAA" }, name: "a b (2)" } },
      { document: { format: "txt", source: { bytes: "AAAA" }, name: "document" } },
      { text: "(See the attached files.)" },
    ]);
  });

  test("S3 is read by the vendor, other addresses are not, and unknown types are named", () => {
    const image = (source: object) => ({ messages: [user({ type: "image", source } as never)] });
    expect(encode(image({ kind: "url", url: "s3://bucket/a.png", mediaType: "image/png" })).body.messages).toEqual([
      { role: "user", content: [{ image: { format: "png", source: { s3Location: { uri: "s3://bucket/a.png" } } } }] },
    ]);
    expect(() => encode(image({ kind: "url", url: "https://a/b.png", mediaType: "image/png" }))).toThrow("addresses");
    expect(() => encode(image({ kind: "file", fileId: "file_1" }))).toThrow("another vendor");
    expect(() => encode({ messages: [user(file("application/zip"))] })).toThrow("application/zip are not supported");
  });
});

test("cache points: the last four, not on tools, and only where the model has them", () => {
  const cached = (text: string) => ({ ...said(text), cache: { ttl: "1h" as const } });
  const more = {
    system: [cached("a"), cached("b")],
    messages: [user(cached("c"), cached("d"), cached("e"))],
    tools: [{ ...TOOL, cache: {} }],
  };
  const { body, dropped } = encode(more);
  expect(JSON.stringify(body).split("cachePoint").length - 1).toBe(4);
  expect(body.system).toEqual([{ text: "a" }, { text: "b" }, { cachePoint: { type: "default" } }]);
  expect(dropped).toEqual(["cache_control.ttl", "cache_control on tools", "cache_control"]);
  expect(JSON.stringify(encode(more, LLAMA).body)).not.toContain("cachePoint");
});
