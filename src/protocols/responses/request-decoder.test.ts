// Responses requests as neutral ones: items, parts, tools and options.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { Message } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { sealToken } from "./reasoning-seal.ts";
import { decodeRequest } from "./request-decoder.ts";

function decode(fields: JsonObject): ReturnType<typeof decodeRequest> {
  return decodeRequest({ model: "m", input: "Hello", ...fields });
}

function messages(...input: JsonObject[]): Message[] {
  return decode({ input }).messages;
}

function param(fields: JsonObject): string | undefined {
  try {
    decode(fields);
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return error.param;
    throw error;
  }
  throw new Error("nothing was refused");
}

const call = (id: string) => ({ type: "function_call", id: `fc_${id}`, call_id: id, name: "f", arguments: '{"a":1}' });
const neutralCall = (id: string) =>
  ({ type: "tool-call", id, name: "f", arguments: '{"a":1}', itemId: `fc_${id}` }) as const;
const output = (id: string, value: unknown = "ok") => ({ type: "function_call_output", call_id: id, output: value });

describe("input", () => {
  test("a text is a message of the user", () => {
    expect(decode({}).messages).toEqual([{ role: "user", parts: [{ type: "text", text: "Hello" }] }]);
  });

  test("instructions come before leading items of system and developer", () => {
    const request = decode({
      instructions: "A",
      input: [
        { role: "system", content: "B" },
        { role: "developer", content: [{ type: "input_text", text: "C" }] },
        { role: "user", content: "x" },
        { role: "developer", content: "D" },
      ],
    });
    expect(request.system.map((part) => part.text)).toEqual(["A", "B", "C"]);
    expect(request.messages.map(({ role }) => role)).toEqual(["user", "system"]);
  });

  test("parallel calls and the text before them are one turn, their outputs one message", () => {
    const decoded = messages(
      { role: "user", content: "x" },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        content: [{ type: "output_text", text: "Let me", annotations: [] }],
      },
      call("c1"),
      call("c2"),
      output("c1"),
      output("c2", [
        { type: "input_text", text: "two" },
        { type: "input_image", image_url: "data:image/png;base64,AA==" },
      ]),
    );
    expect(decoded).toEqual([
      { role: "user", parts: [{ type: "text", text: "x" }] },
      { role: "assistant", parts: [{ type: "text", text: "Let me" }, neutralCall("c1"), neutralCall("c2")] },
      {
        role: "user",
        parts: [
          { type: "tool-result", callId: "c1", parts: [{ type: "text", text: "ok" }] },
          {
            type: "tool-result",
            callId: "c2",
            parts: [
              { type: "text", text: "two" },
              { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } },
            ],
          },
        ],
      },
    ]);
  });

  test("the id of a call is call_id, never the item's", () => {
    const [turn] = messages(call("call_9"));
    expect(turn?.parts[0]).toMatchObject({ id: "call_9", itemId: "fc_call_9" });
  });

  test("a later message of the user does not join outputs of tools", () => {
    expect(messages(call("c"), output("c"), { role: "user", content: "go on" }).map(({ role }) => role)).toEqual([
      "assistant",
      "user",
      "user",
    ]);
  });

  test("free-form calls keep their input", () => {
    const decoded = messages(
      { type: "custom_tool_call", call_id: "c", name: "apply_patch", input: "*** Begin" },
      { type: "custom_tool_call_output", call_id: "c", output: "done" },
    );
    expect(decoded[0]?.parts).toEqual([
      { type: "tool-call", id: "c", name: "apply_patch", arguments: "*** Begin", custom: true },
    ]);
    expect(decoded[1]?.parts).toEqual([{ type: "tool-result", callId: "c", parts: [{ type: "text", text: "done" }] }]);
  });

  test("items of hosted tools are kept as they are", () => {
    const item = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } };
    expect(messages(item)[0]?.parts).toEqual([{ type: "opaque", protocol: "responses", value: item }]);
  });

  test("items may bring tools", () => {
    const item = { type: "additional_tools", role: "developer", tools: [{ type: "function", name: "late" }] };
    const { tools } = decode({
      input: [item, { role: "user", content: "x" }],
      tools: [{ type: "function", name: "f" }],
    });
    expect(tools.map(({ name }) => name)).toEqual(["f", "late"]);
  });

  test("of a tool that is declared again the later declaration counts", () => {
    const declared = (name: string, description: string) => ({ type: "function", name, description });
    const { tools } = decode({
      input: [
        { type: "additional_tools", tools: [declared("f", "second"), declared("g", "first")] },
        { type: "additional_tools", tools: [declared("f", "third"), { type: "web_search" }] },
        { role: "user", content: "x" },
      ],
      tools: [declared("f", "first"), declared("h", "first")],
    });
    expect(tools.map((tool) => [tool.name, "description" in tool ? tool.description : undefined])).toEqual([
      ["h", "first"],
      ["g", "first"],
      ["f", "third"],
      ["web_search", undefined],
    ]);
  });
});

describe("reasoning items", () => {
  const summary = [
    { type: "summary_text", text: "One" },
    { type: "summary_text", text: "Two" },
  ];
  const reasoning = (fields: JsonObject) => messages({ type: "reasoning", id: "rs_1", ...fields })[0]?.parts[0];

  test("without a proof", () => {
    expect(reasoning({ summary })).toEqual({ type: "reasoning", text: "One\n\nTwo", itemId: "rs_1" });
  });

  test("raw thoughts stand in for a missing summary", () => {
    expect(reasoning({ summary: [], content: [{ type: "reasoning_text", text: "raw" }] })).toMatchObject({
      text: "raw",
    });
  });

  test("sealed by a Responses backend", () => {
    expect(reasoning({ summary, encrypted_content: "gAAA" })).toMatchObject({ origin: "responses", sealed: "gAAA" });
  });

  test("sealed by the gateway for another protocol", () => {
    const token = sealToken({ origin: "messages", signature: "sig" });
    expect(reasoning({ summary, encrypted_content: token })).toEqual({
      type: "reasoning",
      text: "One\n\nTwo",
      origin: "messages",
      signature: "sig",
      itemId: "rs_1",
    });
  });

  test("thoughts that were not shown come back out of the token", () => {
    const token = sealToken({ origin: "messages", signature: "sig" }, "secret thought");
    expect(reasoning({ summary: [], encrypted_content: token })).toMatchObject({ text: "secret thought" });
  });
});

describe("parts", () => {
  const part = (value: JsonObject) => messages({ role: "user", content: [value] })[0]?.parts[0];
  const cases: [JsonObject, unknown][] = [
    [
      { type: "text", text: "a" },
      { type: "text", text: "a" },
    ],
    [
      { type: "input_text", text: "a" },
      { type: "text", text: "a" },
    ],
    [
      { type: "input_image", image_url: "https://e.org/a.png", detail: "low" },
      { type: "image", source: { kind: "url", url: "https://e.org/a.png" }, detail: "low" },
    ],
    [
      { type: "input_image", image_url: { url: "https://e.org/a.png" } },
      { type: "image", source: { kind: "url", url: "https://e.org/a.png" } },
    ],
    [
      { type: "image_url", image_url: { url: "data:image/jpeg;base64,AA==", detail: "high" } },
      { type: "image", source: { kind: "base64", mediaType: "image/jpeg", data: "AA==" }, detail: "high" },
    ],
    [
      { type: "image_url", image_url: "https://e.org/a.png" },
      { type: "image", source: { kind: "url", url: "https://e.org/a.png" } },
    ],
    [
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
      { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "AA==" }, title: "a.pdf" },
    ],
    [
      { type: "input_file", file_url: "https://e.org/a.pdf" },
      { type: "document", source: { kind: "url", url: "https://e.org/a.pdf" } },
    ],
    [
      { type: "input_file", file_data: "data:image/png;base64,AA==" },
      { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } },
    ],
    [
      { type: "input_audio", input_audio: { data: "AA==", format: "mp3" } },
      { type: "audio", source: { kind: "base64", mediaType: "audio/mpeg", data: "AA==" } },
    ],
    [
      { type: "refusal", refusal: "no" },
      { type: "refusal", text: "no" },
    ],
  ];
  test.each(cases)("%j", (wire, neutral) => {
    expect(part(wire)).toEqual(neutral as never);
  });
});

describe("tools", () => {
  const cases: [JsonObject, unknown][] = [
    [
      { type: "function", name: "f", description: "d", parameters: { type: "object" }, strict: true },
      { kind: "function", name: "f", description: "d", parameters: { type: "object" }, strict: true },
    ],
    [
      { type: "function", name: "f" },
      { kind: "function", name: "f" },
    ],
    [
      { type: "custom", name: "p", format: { type: "text" } },
      { kind: "custom", name: "p", format: { type: "text" } },
    ],
  ];
  test.each(cases)("%j", (wire, neutral) => {
    expect(decode({ tools: [wire] }).tools).toEqual([neutral] as never);
  });

  test.each(["web_search", "web_search_preview", "web_search_2025_08_26"])("%s searches the web", (type) => {
    const value = {
      type,
      filters: { allowed_domains: ["e.org"] },
      user_location: { type: "approximate", city: "Berne", country: null },
    };
    expect(decode({ tools: [value] }).tools).toEqual([
      {
        kind: "web-search",
        name: "web_search",
        allowedDomains: ["e.org"],
        userLocation: { city: "Berne" },
        origin: { protocol: "responses", value },
      },
    ]);
  });

  test("other tools are hosted ones", () => {
    const value = { type: "code_interpreter", container: { type: "auto" } };
    expect(decode({ tools: [value] }).tools).toEqual([
      { kind: "hosted", name: "code_interpreter", origin: { protocol: "responses", value } },
    ]);
  });

  const choices: [unknown, unknown][] = [
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [
      { type: "function", name: "f" },
      { type: "tool", name: "f" },
    ],
    [
      { type: "custom", name: "p" },
      { type: "tool", name: "p" },
    ],
    [{ type: "web_search_preview" }, { type: "tool", name: "web_search" }],
    [{ type: "file_search" }, { type: "tool", name: "file_search" }],
    [
      { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }, { type: "web_search" }] },
      { type: "allowed", mode: "required", names: ["f", "web_search"] },
    ],
  ];
  test.each(choices)("choice %j", (wire, neutral) => {
    expect(decode({ tool_choice: wire }).toolChoice).toEqual(neutral as never);
  });
});

describe("options", () => {
  test("every option has its place", () => {
    const body = {
      model: "m",
      input: "x",
      max_output_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 3,
      reasoning: { effort: "high", summary: "auto" },
      text: { format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true }, verbosity: "low" },
      parallel_tool_calls: false,
      metadata: { a: "b" },
      safety_identifier: "s",
      user: "u",
      prompt_cache_key: "k",
      include: ["reasoning.encrypted_content"],
      stream: true,
      store: false,
    };
    const { system, messages, tools, origin, ...rest } = decodeRequest(body);
    expect(origin).toEqual({ protocol: "responses", body });
    expect({ system, tools, count: messages.length }).toEqual({ system: [], tools: [], count: 1 });
    expect(rest).toEqual({
      model: "m",
      maxOutputTokens: 9,
      sampling: { temperature: 0.5, topP: 0.9, logprobs: true, topLogprobs: 3 },
      reasoning: { effort: "high", visible: true, sealed: true },
      responseFormat: { type: "json-schema", name: "n", schema: { type: "object" }, strict: true },
      verbosity: "low",
      parallelToolCalls: false,
      metadata: { a: "b" },
      user: "s",
      promptCacheKey: "k",
      stream: true,
      extensions: {},
    });
  });

  test.each([
    [{ include_reasoning: true }, { visible: true }],
    [{ include_reasoning: false, reasoning: { summary: "auto" } }, { visible: false }],
    [{ reasoning: { generate_summary: "concise" } }, { visible: true }],
    [{ reasoning: { effort: "low" } }, { effort: "low" }],
    [{}, {}],
  ] as [JsonObject, JsonObject][])("reasoning of %j", (fields, reasoning) => {
    expect(decode(fields).reasoning).toEqual(reasoning);
  });

  test.each([
    [{ type: "text" }, { type: "text" }],
    [{ type: "json_object" }, { type: "json" }],
  ] as [JsonObject, unknown][])("format %j", (format, expected) => {
    expect(decode({ text: { format } }).responseFormat).toEqual(expected as never);
  });

  test("unknown members are extensions, those that say nothing are not", () => {
    const { extensions } = decode({
      client_metadata: { a: 1 },
      service_tier: "flex",
      truncation: "disabled",
      background: false,
      max_tool_calls: null,
      stream_options: { include_obfuscation: false },
      include: ["file_search_call.results", "reasoning.encrypted_content"],
    });
    expect(extensions).toEqual({
      client_metadata: { a: 1 },
      service_tier: "flex",
      include: ["file_search_call.results"],
    });
  });
});

describe("cannot be converted", () => {
  const cases: [JsonObject, string][] = [
    [{ conversation: "conv_1" }, "conversation"],
    [{ background: true }, "background"],
    [{ prompt: { id: "p" } }, "prompt"],
    [{ input: [{ type: "item_reference", id: "rs_1" }] }, "input[0].id"],
    [{ input: [{ id: "rs_1" }] }, "input[0].id"],
    [{ input: [{ type: "compaction", encrypted_content: "x" }] }, "input[0].type"],
    [{ input: [{ role: "user", content: [{ type: "input_hologram" }] }] }, "input[0].content[0].type"],
    [
      { input: [{ role: "system", content: [{ type: "input_image", image_url: "https://e.org" }] }] },
      "input[0].content[0].type",
    ],
    [{ input: [{ type: "reasoning", encrypted_content: "signalbox.1.e30" }] }, "input[0].encrypted_content"],
    [{ input: [{ type: "additional_tools", tools: [{ type: "function" }] }] }, "input[0].tools[0].name"],
    [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] }, "input[0].content[0].file_id"],
    [{ input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] }, "input[0].content[0].file_id"],
    [{ input: [output("c", [{ type: "input_file", file_id: "f" }])] }, "input[0].output[0].file_id"],
    [{ text: { format: { type: "json_schema", json_schema: { schema: {} } } } }, "text.format.schema"],
    [{ text: { format: { type: "grammar" } } }, "text.format.type"],
    [{ tool_choice: { type: "allowed_tools", mode: "any", tools: [{ type: "web_search" }] } }, "tool_choice.mode"],
    [{ reasoning: { effort: "huge" } }, "reasoning.effort"],
  ];
  test.each(cases)("%j", (fields, expected) => {
    expect(param(fields)).toBe(expected);
  });

  test("audio as the output of a tool", () => {
    const item = output("c", [{ type: "input_audio", input_audio: { data: "A", format: "wav" } }]);
    expect(param({ input: [item] })).toBe("input[0].output[0].type");
  });
});
