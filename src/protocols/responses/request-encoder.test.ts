// Neutral requests as Responses requests for a backend.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { ContentPart, Message, ProtocolName } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BackendTarget } from "../protocol.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";

const TARGET: BackendTarget = { model: "gpt", kind: BACKEND_KINDS.openai };

function request(fields: Partial<GenerationRequest> = {}, protocol: ProtocolName = "chat"): GenerationRequest {
  return {
    model: "alias",
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol, body: {} },
    extensions: {},
    ...fields,
  };
}

const encode = (fields: Partial<GenerationRequest> = {}) => encodeRequest(request(fields), TARGET).body;
const dropped = (fields: Partial<GenerationRequest>) =>
  encodeRequest(request(fields), TARGET).dropped.map(({ feature }) => feature);

function items(...messages: Message[]): unknown {
  return encode({ messages }).input;
}
const user = (...parts: ContentPart[]): Message => ({ role: "user", parts });
const assistant = (...parts: ContentPart[]): Message => ({ role: "assistant", parts });

test("the least request", () => {
  expect(encode()).toEqual({
    model: "gpt",
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    store: false,
    stream: false,
  });
});

describe("input", () => {
  test("system texts are instructions, later ones stay in their place", () => {
    const body = encode({
      system: [
        { type: "text", text: "A" },
        { type: "text", text: "B" },
      ],
      messages: [user({ type: "text", text: "x" }), { role: "system", parts: [{ type: "text", text: "C" }] }],
    });
    expect(body.instructions).toBe("A\n\nB");
    expect((body.input as JsonObject[])[1]).toEqual({
      type: "message",
      role: "system",
      content: [{ type: "input_text", text: "C" }],
    });
  });

  test("instructions alone are an item, since an input must not be empty", () => {
    const body = encode({ system: [{ type: "text", text: "A" }], messages: [] });
    expect(body).not.toHaveProperty("instructions");
    expect(body.input).toEqual([{ type: "message", role: "system", content: [{ type: "input_text", text: "A" }] }]);
  });

  test("a turn with tools", () => {
    expect(
      items(
        assistant(
          { type: "text", text: "Let me" },
          { type: "tool-call", id: "c1", name: "f", arguments: "", itemId: "fc_1" },
          { type: "tool-call", id: "c2", name: "patch", arguments: "x", custom: true },
        ),
        user(
          { type: "tool-result", callId: "c1", parts: [{ type: "text", text: "ok" }] },
          { type: "tool-result", callId: "c2", parts: [{ type: "text", text: "no" }], isError: true },
        ),
      ),
    ).toEqual([
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Let me" }] },
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c2", name: "patch", input: "x" },
      { type: "function_call_output", call_id: "c1", output: "ok" },
      { type: "custom_tool_call_output", call_id: "c2", output: "Error: no" },
    ]);
  });

  test("the output of a tool with several parts (trap)", () => {
    const output = (parts: Extract<ContentPart, { type: "tool-result" }>["parts"]) =>
      (
        items(
          assistant({ type: "tool-call", id: "c", name: "f", arguments: "" }),
          user({ type: "tool-result", callId: "c", parts }),
        ) as JsonObject[]
      )[1]?.output;
    expect(output([])).toBe("");
    expect(
      output([
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ]),
    ).toBe("a\nb");
    expect(
      output([
        { type: "text", text: "a" },
        { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } },
      ]),
    ).toEqual([
      { type: "input_text", text: "a" },
      { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "auto" },
    ]);
  });

  const parts: [ContentPart, JsonObject][] = [
    [
      { type: "image", source: { kind: "url", url: "https://e.org/a.png" }, detail: "low" },
      { type: "input_image", image_url: "https://e.org/a.png", detail: "low" },
    ],
    [
      { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "AA==" } },
      { type: "input_file", filename: "document.pdf", file_data: "data:application/pdf;base64,AA==" },
    ],
    [
      { type: "document", source: { kind: "url", url: "https://e.org/a.pdf" }, title: "a.pdf" },
      { type: "input_file", file_url: "https://e.org/a.pdf" },
    ],
    [
      { type: "document", source: { kind: "base64", mediaType: "text/plain", data: "w6Q=" }, title: "a.txt" },
      { type: "input_text", text: "a.txt:\n\nä" },
    ],
  ];
  test.each(parts)("%j", (part, wire) => {
    expect(items(user(part))).toEqual([{ type: "message", role: "user", content: [wire] }]);
  });

  test("call ids that the service would refuse are shortened alike in call and result; lost results are given", () => {
    const id = `call_${"x".repeat(100)}`;
    const made: ContentPart = { type: "tool-call", id, name: "f", arguments: "" };
    const got: Message = {
      role: "user",
      parts: [{ type: "tool-result", callId: id, parts: [{ type: "text", text: "r" }] }],
    };
    const [call, output] = items(assistant(made), got) as JsonObject[];
    expect(String(call?.call_id).length).toBeLessThanOrEqual(64);
    expect(output?.call_id).toBe(call?.call_id);
    expect((items(assistant(made)) as JsonObject[]).map(({ type }) => type)).toEqual([
      "function_call",
      "function_call_output",
    ]);
  });

  test("only sealed thoughts of this format are replayed", () => {
    const own: ContentPart = { type: "reasoning", text: "hm", origin: "responses", sealed: "g", itemId: "rs_1" };
    expect(items(assistant(own))).toEqual([
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "g" },
    ]);
    const foreign: ContentPart = { type: "reasoning", text: "hm", origin: "messages", signature: "s" };
    expect(dropped({ messages: [assistant(foreign)] })).toEqual(["reasoning of earlier answers"]);
  });

  test("items of hosted tools come back as they were, those of others do not", () => {
    const value = { type: "web_search_call", id: "ws_1" };
    expect(items(assistant({ type: "opaque", protocol: "responses", value }))).toEqual([value]);
    expect(dropped({ messages: [assistant({ type: "opaque", protocol: "messages", value })] })).toEqual([
      "web_search_call",
    ]);
    const nameless: ContentPart = { type: "opaque", protocol: "messages", value: {} };
    expect(dropped({ messages: [assistant(nameless)] })).toEqual(["content of another format"]);
  });
});

describe("tools", () => {
  const strict = (fields: object, protocol: ProtocolName) =>
    (
      encodeRequest(request({ tools: [{ kind: "function", name: "f", ...fields }] }, protocol), TARGET).body
        .tools as JsonObject[]
    )[0]?.strict;

  test("strict is said, since this format means something else by leaving it out", () => {
    expect([strict({}, "chat"), strict({ strict: true }, "chat"), strict({}, "responses")]).toEqual([
      false,
      true,
      undefined,
    ]);
  });

  test("functions are flat", () => {
    const tool = { kind: "function", name: "f", description: "d", parameters: { type: "object" } } as const;
    expect(encode({ tools: [tool] }).tools).toEqual([
      { type: "function", name: "f", description: "d", parameters: { type: "object" }, strict: false },
    ]);
  });

  test("web search of another format", () => {
    const origin = { protocol: "messages", value: {} } as const;
    const tool = {
      kind: "web-search",
      name: "web_search",
      allowedDomains: ["e.org"],
      userLocation: { city: "B" },
      origin,
    } as const;
    expect(encode({ tools: [{ ...tool, allowedDomains: ["e.org"] }] }).tools).toEqual([
      {
        type: "web_search",
        filters: { allowed_domains: ["e.org"] },
        user_location: { type: "approximate", city: "B" },
      },
    ]);
  });

  const tools: GenerationRequest["tools"] = [
    { kind: "function", name: "f" },
    { kind: "custom", name: "p" },
    { kind: "web-search", name: "web_search", origin: { protocol: "messages", value: {} } },
    { kind: "hosted", name: "mcp", origin: { protocol: "responses", value: { type: "mcp", server_label: "s" } } },
  ];
  test.each([
    [{ type: "auto" }, "auto"],
    [{ type: "required" }, "required"],
    [
      { type: "tool", name: "f" },
      { type: "function", name: "f" },
    ],
    [
      { type: "tool", name: "p" },
      { type: "custom", name: "p" },
    ],
    [{ type: "tool", name: "web_search" }, { type: "web_search" }],
    [
      { type: "tool", name: "mcp" },
      { type: "mcp", server_label: "s" },
    ],
    [
      { type: "allowed", mode: "auto", names: ["f", "p"] },
      {
        type: "allowed_tools",
        mode: "auto",
        tools: [
          { type: "function", name: "f" },
          { type: "custom", name: "p" },
        ],
      },
    ],
  ] as [NonNullable<GenerationRequest["toolChoice"]>, unknown][])("choice %j", (toolChoice, wire) => {
    expect(encode({ tools, toolChoice }).tool_choice).toEqual(wire);
  });

  test("a choice without tools is left out", () => {
    expect(encode({ toolChoice: { type: "auto" } })).not.toHaveProperty("tool_choice");
  });
});

describe("options", () => {
  test("a schema is flat (trap)", () => {
    const responseFormat = { type: "json-schema", name: "n", schema: { type: "object" }, strict: true } as const;
    expect(encode({ responseFormat, verbosity: "low" }).text).toEqual({
      format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true },
      verbosity: "low",
    });
  });

  test.each([
    [{ effort: "high", visible: true }, { effort: "high", summary: "auto" }, true],
    [{ effort: "low" }, { effort: "low" }, true],
    [{ effort: "none" }, { effort: "none" }, false],
    [{ enabled: false }, { effort: "none" }, false],
    [{ enabled: true }, undefined, true],
    [{ sealed: true }, undefined, true],
    [{}, undefined, false],
  ] as [GenerationRequest["reasoning"], unknown, boolean][])("reasoning %j", (reasoning, wire, isSealed) => {
    const body = encode({ reasoning });
    expect(body.reasoning).toEqual(wire);
    expect(body.include).toEqual(isSealed ? ["reasoning.encrypted_content"] : undefined);
  });

  test.each([
    [1, "openai", undefined, 16],
    [1, "vllm", undefined, 1],
    [5000, "openai", 4096, 4096],
    [undefined, "openai", 4096, undefined],
  ] as const)("at most %p tokens at %s with a limit of %p", (maxOutputTokens, kind, limit, expected) => {
    const target = { model: "m", kind: BACKEND_KINDS[kind], ...(limit !== undefined && { maxOutputTokens: limit }) };
    const fields = maxOutputTokens === undefined ? {} : { maxOutputTokens };
    expect(encodeRequest(request(fields), target).body.max_output_tokens).toBe(expected as never);
  });

  test("what the format cannot say is listed", () => {
    const sampling = { topK: 1, seed: 2, stop: ["x"], frequencyPenalty: 1, presencePenalty: 1, logprobs: true };
    const features = dropped({ sampling, extensions: { logit: 1 }, reasoning: { budgetTokens: 5 } });
    expect(features).toEqual([
      "top_k",
      "frequency_penalty",
      "presence_penalty",
      "seed",
      "stop",
      "logprobs",
      "thinking budget",
      "logit",
    ]);
    expect(encode({ extensions: { logit: 1 } })).not.toHaveProperty("logit");
  });

  test("a request of this format comes out as it came in", () => {
    const body = {
      model: "gpt",
      instructions: "Be brief",
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "x" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "ok" },
        { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
      ],
      tools: [
        { type: "function", name: "f", parameters: { type: "object" } },
        { type: "web_search", search_context_size: "low" },
        { type: "code_interpreter", container: { type: "auto" } },
      ],
      tool_choice: "auto",
      include: ["file_search_call.results", "reasoning.encrypted_content"],
      reasoning: { effort: "high", summary: "auto" },
      client_metadata: { a: 1 },
      store: false,
      stream: true,
    };
    const { body: encoded, dropped } = encodeRequest(decodeRequest(body), TARGET);
    expect(encoded).toEqual(body);
    expect(dropped).toEqual([]);
  });
});

describe("is refused", () => {
  const hosted = { kind: "hosted", name: "bash_20250124", origin: { protocol: "messages", value: {} } } as const;
  const cases: [string, Partial<GenerationRequest>, string][] = [
    ["several choices", { sampling: { choices: 2 } }, "n"],
    ["a hosted tool of another format", { tools: [hosted] }, "tools[0]"],
    [
      "blocked domains",
      { tools: [{ kind: "web-search", name: "web_search", blockedDomains: ["a"], origin: hosted.origin }] },
      "tools[0]",
    ],
    [
      "audio",
      { messages: [user({ type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "" } })] },
      "messages",
    ],
    [
      "a file of another vendor",
      { messages: [user({ type: "image", source: { kind: "file", fileId: "f" } })] },
      "messages",
    ],
  ];
  test.each(cases)("%s", (_name, fields, param) => {
    try {
      encode(fields);
      throw new Error("nothing was refused");
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      expect([error.status, error.param]).toEqual([400, param]);
    }
  });
});
