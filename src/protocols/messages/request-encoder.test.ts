// Requests for Messages backends, as other clients' wishes become them.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { ContentPart, Message } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";

const hi: Message = { role: "user", parts: [{ type: "text", text: "hi" }] };

function request(more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: "alias",
    system: [],
    messages: [hi],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "chat", body: {} },
    extensions: {},
    ...more,
  };
}

const OLD = "claude-sonnet-4-5-20250929";
const NEW = "claude-opus-4-8";

function encode(more: Partial<GenerationRequest> = {}, model = OLD) {
  const { body, dropped, headers } = encodeRequest(request(more), { model, kind: BACKEND_KINDS.anthropic });
  return { body, dropped: dropped.map(({ feature }) => feature), headers };
}

function messages(...list: Message[]) {
  return encode({ messages: list }).body.messages as { role: string; content: JsonObject[] }[];
}

const user = (...parts: ContentPart[]): Message => ({ role: "user", parts });
const assistant = (...parts: ContentPart[]): Message => ({ role: "assistant", parts });
const text = (value: string): ContentPart => ({ type: "text", text: value });
const call = (id: string, args = "{}"): ContentPart => ({ type: "tool-call", id, name: "f", arguments: args });
const result = (callId: string, value = "r"): ContentPart => ({
  type: "tool-result",
  callId,
  parts: [{ type: "text", text: value }],
});

function refusal(more: Partial<GenerationRequest>): GatewayError {
  try {
    encode(more);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    return error;
  }
  throw new Error("nothing was refused");
}

test("the least request", () => {
  expect(encode()).toEqual({
    body: { model: OLD, max_tokens: 64_000, messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }] },
    dropped: [],
    headers: undefined,
  });
});

test("max_tokens: the client's, the operator's, the model's", () => {
  expect(encode({ maxOutputTokens: 7 }).body.max_tokens).toBe(7);
  expect(encode({ maxOutputTokens: 900_000 })).toMatchObject({ body: { max_tokens: 64_000 }, dropped: ["max_tokens"] });
  const of = (model: string, maxOutputTokens?: number) =>
    encodeRequest(request(), { model, kind: BACKEND_KINDS.generic, ...(maxOutputTokens && { maxOutputTokens }) }).body
      .max_tokens;
  expect([of("some-model"), of("some-model", 99), of("claude-3-haiku-20240307"), of(NEW)]).toEqual([
    4096, 99, 4096, 128_000,
  ]);
  expect(encode({ maxOutputTokens: 9_000 }, "some-model").body.max_tokens).toBe(9_000);
});

describe("turns", () => {
  test("the results of parallel calls stand in one user turn, before its text, with the calls' ids", () => {
    const got = messages(
      hi,
      assistant(text("ok"), call("a"), call("b")),
      user(result("b", "B")),
      user(result("a", "A")),
      user(text("and?")),
    );
    expect(got).toHaveLength(3);
    expect(got[2]?.content.map(({ type, tool_use_id }) => [type, tool_use_id])).toEqual([
      ["tool_result", "b"],
      ["tool_result", "a"],
      ["text", undefined],
    ]);
  });

  test("a result that stands behind text is moved before it", () => {
    const got = messages(hi, assistant(call("a")), user(text("x"), result("a")));
    expect(got[2]?.content.map(({ type }) => type)).toEqual(["tool_result", "text"]);
  });

  test("lost results become errors, wherever the conversation goes on", () => {
    const lost = { type: "tool_result", is_error: true };
    expect(messages(hi, assistant(call("a"), call("b")), user(result("b")))[2]?.content).toMatchObject([
      { tool_use_id: "b" },
      { ...lost, tool_use_id: "a" },
    ]);
    expect(messages(hi, assistant(call("a")))[2]).toMatchObject({
      role: "user",
      content: [{ ...lost, tool_use_id: "a" }],
    });
    expect(encode({ messages: [hi, assistant(call("a"))] }).dropped).toEqual(["tool_calls"]);
  });

  test("results without a call, and second ones, are told as text", () => {
    const got = messages(hi, assistant(call("a")), user(result("a"), result("a", "again"), result("z", "Z")));
    expect(got[2]?.content.map(({ type, text }) => text ?? type)).toEqual([
      "tool_result",
      "Result of the tool call a:",
      "again",
      "Result of the tool call z:",
      "Z",
    ]);
  });

  test("an id that comes again gets a number, and so does its result", () => {
    const got = messages(
      hi,
      assistant(call("a")),
      user(result("a")),
      assistant(call("a"), call("a"), call("a_2")),
      user(result("a"), result("a_2"), result("a")),
    );
    const ids = got.map(({ content }) => content.flatMap(({ id, tool_use_id }) => id ?? tool_use_id ?? []));
    expect(ids).toEqual([[], ["a"], ["a"], ["a_2", "a_3", "a_2_2"], ["a_2", "a_2_2", "a_3"]]);
  });

  test("is_error, empty results, images and hints of results", () => {
    const image = { type: "image", source: { kind: "url", url: "https://x" } } as const;
    const parts = [{ type: "text", text: "x", cache: {} } as const, image];
    const got = messages(
      hi,
      assistant(call("a"), call("b")),
      user(
        { type: "tool-result", callId: "a", parts: [{ type: "text", text: "" }], isError: true },
        { type: "tool-result", callId: "b", parts, cache: { ttl: "1h" } },
      ),
    );
    expect(got[2]?.content).toEqual([
      { type: "tool_result", tool_use_id: "a", is_error: true },
      {
        type: "tool_result",
        tool_use_id: "b",
        content: [
          { type: "text", text: "x" },
          { type: "image", source: { type: "url", url: "https://x" } },
        ],
        cache_control: { type: "ephemeral", ttl: "1h" },
      },
    ]);
  });

  test("neighbours are joined, empty texts and empty turns left out", () => {
    expect(messages(user(text("a")), user(text(" ")), assistant(text("")), user(text("b")))).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ]);
  });

  test("the end of a beginning of the answer is trimmed; newer models are asked in words", () => {
    const prefill = [hi, assistant(text("So \n"))];
    expect(messages(...prefill)[1]?.content).toEqual([{ type: "text", text: "So" }]);
    const { body, dropped } = encode({ messages: prefill }, NEW);
    expect((body.messages as Message[]).map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(dropped).toEqual(["prefill"]);
  });

  test("a conversation that begins with the assistant gets a line before it", () => {
    expect(messages(assistant(text("a")), hi).map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  test("instructions alone get a line behind them", () => {
    const { body, dropped } = encode({ messages: [], system: [{ type: "text", text: "s" }] });
    expect((body.messages as Message[]).map(({ role }) => role)).toEqual(["user"]);
    expect(dropped).toEqual(["messages"]);
  });

  test("a paused turn of a server-side tool is sent back as it is", () => {
    const paused = assistant({
      type: "tool-call",
      id: "srvtoolu_1",
      name: "web_search",
      arguments: "{}",
      serverSide: true,
    });
    const got = encode({ messages: [hi, paused] }, NEW).body.messages as Message[];
    expect(got.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("instructions in the middle", () => {
    const rule: Message = { role: "system", parts: [{ type: "text", text: "rule" }] };
    const list = [hi, assistant(call("a")), rule, user(result("a"))];
    const newer = encode({ messages: list }, NEW);
    expect((newer.body.messages as Message[]).map(({ role }) => role)).toEqual(["user", "assistant", "user", "system"]);
    expect(newer.headers).toEqual({ "anthropic-beta": "mid-conversation-system-2026-04-07" });
    const older = encode({ messages: list, system: [{ type: "text", text: "first" }] });
    expect(older.body.system).toEqual([
      { type: "text", text: "first" },
      { type: "text", text: "rule" },
    ]);
    expect(older.dropped).toEqual(["system message"]);
    expect(encode({ messages: [rule, hi] }, NEW)).toMatchObject({
      body: { system: [{ text: "rule" }] },
      headers: undefined,
    });
  });

  test("any conversation becomes one that the API takes", () => {
    const id = fc.constantFrom("a", "b", "c:1");
    const part = fc.oneof(
      fc.constantFrom("", " ", "x ").map(text),
      id.map((value) => call(value)),
      id.map((value) => result(value)),
    );
    const message = fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const, "system" as const),
      parts: fc.array(part, { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), fc.constantFrom(OLD, NEW), (list, model) => {
        const turns = encode({ messages: list }, model).body.messages as { role: string; content: JsonObject[] }[];
        expect(turns[0]?.role).toBe("user");
        for (const [index, { role, content }] of turns.entries()) {
          expect(content.length).toBeGreaterThan(0);
          expect(turns[index + 1]?.role).not.toBe(role);
          const calls = content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
          const next = turns[index + 1]?.content ?? [];
          const results = next.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
          if (role === "assistant") {
            expect(new Set(results)).toEqual(new Set(calls));
            expect(next.slice(0, results.length).every(({ type }) => type === "tool_result")).toBe(true);
          }
        }
      }),
    );
  });
});

describe("calls", () => {
  const inputs: [args: string, input: JsonObject][] = [
    ["", {}],
    [" ", {}],
    ['{"a":1}', { a: 1 }],
    ["{oops", { INVALID_JSON: "{oops" }],
    ["[1]", { INVALID_JSON: "[1]" }],
  ];
  test.each(inputs)("arguments %j", (args, input) => {
    expect(messages(hi, assistant(call("a", args)))[1]?.content[0]?.input).toEqual(input);
  });

  test("ids keep to the allowed letters, call and result alike, and stay apart", () => {
    const got = messages(
      hi,
      assistant(call("call:1"), call("call/1"), call("ok_-1")),
      user(result("call/1"), result("call:1"), result("ok_-1")),
    );
    const calls = got[1]?.content.map(({ id }) => id) as string[];
    for (const id of calls) expect(id).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(new Set(calls).size).toBe(3);
    expect(calls[2]).toBe("ok_-1");
    expect(new Set(got[2]?.content.map(({ tool_use_id }) => tool_use_id))).toEqual(new Set(calls));
    expect(got[2]?.content.some(({ is_error }) => is_error)).toBe(false);
  });

  test("free-form input is a member", () => {
    const custom: ContentPart = { type: "tool-call", id: "a", name: "patch", arguments: "*** x", custom: true };
    expect(messages(hi, assistant(custom))[1]?.content[0]).toMatchObject({ name: "patch", input: { input: "*** x" } });
  });
});

describe("content", () => {
  const first = (part: ContentPart) => messages(user(part))[0]?.content[0];
  const base64 = (mediaType: string, data: string) => ({ kind: "base64", mediaType, data }) as const;

  test("images and documents", () => {
    expect(first({ type: "image", source: base64("image/png", "AA"), cache: {} })).toEqual({
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "AA" },
      cache_control: { type: "ephemeral" },
    });
    expect(first({ type: "document", source: base64("application/pdf", "AA"), title: "a.pdf" })).toEqual({
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "AA" },
      title: "a.pdf",
    });
    const data = Buffer.from("é").toString("base64");
    expect(first({ type: "document", source: base64("text/plain", data), context: "c", citations: true })).toEqual({
      type: "document",
      source: { type: "text", media_type: "text/plain", data: "é" },
      context: "c",
      citations: { enabled: true },
    });
    expect(first({ type: "document", source: { kind: "url", url: "https://x" } })?.source).toEqual({
      type: "url",
      url: "https://x",
    });
  });

  const refused: [feature: string, part: ContentPart][] = [
    ["input_audio", { type: "audio", source: base64("audio/wav", "AA") }],
    ["video", { type: "video", source: base64("video/mp4", "AA") }],
    ["image", { type: "image", source: base64("image/tiff", "AA") }],
    ["file", { type: "document", source: base64("application/zip", "AA") }],
    ["file_id", { type: "document", source: { kind: "file", fileId: "f" } }],
  ];
  test.each(refused)("%s is refused by name", (feature, part) => {
    expect(refusal({ messages: [user(part)] }).message).toContain(`${feature}:`);
  });

  test("files of the vendor's own pass for its own clients", () => {
    const own = encode({
      messages: [user({ type: "document", source: { kind: "file", fileId: "f" } })],
      origin: { protocol: "messages", body: {} },
    });
    expect(own.body.messages).toMatchObject([{ content: [{ source: { type: "file", file_id: "f" } }] }]);
  });

  test("only thoughts of this backend go back, redacted ones too", () => {
    const { body, dropped } = encode({
      messages: [
        hi,
        assistant(
          { type: "reasoning", text: "a", signature: "s", origin: "messages" },
          { type: "reasoning", text: "", sealed: "d", origin: "messages" },
          { type: "reasoning", text: "b", signature: "g", origin: "generate-content" },
          { type: "reasoning", text: "c" },
          text("x"),
        ),
        hi,
      ],
    });
    expect((body.messages as { content: unknown }[])[1]?.content).toEqual([
      { type: "thinking", thinking: "a", signature: "s" },
      { type: "redacted_thinking", data: "d" },
      { type: "text", text: "x" },
    ]);
    expect(dropped).toEqual(["reasoning"]);
  });

  test("a search of this backend goes back as it was, another's as text", () => {
    const search = (id: string, encryptedContent?: string): ContentPart[] => [
      { type: "tool-call", id, name: "web_search", arguments: "{}", serverSide: true } as const,
      {
        type: "search-result",
        callId: id,
        results: [{ url: "u", title: "t", snippet: "s", ...(encryptedContent && { encryptedContent }) }],
      } as const,
    ];
    const got = messages(
      hi,
      assistant(...search("srvtoolu_1", "E"), ...search("srvtoolu_2"), ...search("ws_3", "E"), text("x")),
      hi,
    );
    expect(got[1]?.content).toEqual([
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "u", title: "t", encrypted_content: "E", page_age: null }],
      },
      { type: "text", text: "Results of a web search:\n- t (u): s" },
      { type: "text", text: "Results of a web search:\n- t (u): s" },
      { type: "text", text: "x" },
    ]);
  });

  test("what other protocols keep for themselves is listed", () => {
    const { body, dropped } = encode({
      messages: [
        { ...hi, name: "bob" },
        assistant(
          text("a"),
          { type: "opaque", protocol: "responses", value: { type: "computer_call" } },
          { type: "image", source: { kind: "url", url: "u" } },
          { type: "text", text: "b", citations: [{ url: "u" }] },
          { type: "opaque", protocol: "messages", value: { type: "container_upload", file_id: "f" } },
        ),
        user({ type: "image", source: { kind: "url", url: "u" }, detail: "high" }),
      ],
    });
    expect(dropped).toEqual([
      "messages[].name",
      "computer_call",
      "image in an assistant message",
      "citations",
      "image_url.detail",
    ]);
    expect((body.messages as { content: unknown }[])[1]?.content).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
      { type: "container_upload", file_id: "f" },
    ]);
  });
});

describe("tools", () => {
  const f = { kind: "function", name: "f" } as const;
  const g = { kind: "function", name: "g" } as const;

  test("functions have a flat form and a schema of an object", () => {
    const tools = [
      { ...f, description: "d", parameters: { type: "object", properties: { a: { type: "string" } } }, cache: {} },
      g,
      { kind: "function", name: "h", parameters: {} } as const,
    ];
    expect(encode({ tools }).body.tools).toEqual([
      {
        name: "f",
        description: "d",
        input_schema: { type: "object", properties: { a: { type: "string" } } },
        cache_control: { type: "ephemeral" },
      },
      { name: "g", input_schema: { type: "object", properties: {} } },
      { name: "h", input_schema: { type: "object" } },
    ]);
  });

  test("strict only where schemas are obeyed", () => {
    const parameters = { type: "object", properties: { a: { type: "string", minLength: 1 } } };
    const tools = [{ ...f, strict: true, parameters }];
    expect(encode({ tools }).body.tools).toEqual([
      {
        name: "f",
        strict: true,
        input_schema: {
          type: "object",
          properties: { a: { type: "string", description: "(minLength: 1)" } },
          additionalProperties: false,
        },
      },
    ]);
    const old = encode({ tools }, "claude-sonnet-4-20250514");
    expect(old.body.tools).toEqual([{ name: "f", input_schema: parameters }]);
    expect(old.dropped).toEqual(["strict"]);
  });

  test("names that the format does not allow, and tools of other vendors, are refused", () => {
    expect(refusal({ tools: [f, { kind: "function", name: "a.b" }] }).param).toBe("tools[1].name");
    const hosted = { kind: "hosted", name: "code_interpreter", origin: { protocol: "responses", value: {} } } as const;
    const error = refusal({ tools: [hosted] });
    expect([error.param, error.message]).toEqual(["tools[0]", expect.stringContaining("code_interpreter")]);
  });

  test("web search, free-form tools, and the vendor's own", () => {
    const origin = { protocol: "responses", value: { type: "web_search" } } as const;
    const own = { type: "bash_20250124", name: "bash" };
    const servers = [{ name: "s" }];
    const { body } = encode({
      tools: [
        {
          kind: "web-search",
          name: "web_search",
          maxUses: 2,
          allowedDomains: ["a"],
          blockedDomains: ["b"],
          userLocation: { city: "X" },
          origin,
        },
        { kind: "custom", name: "patch", description: "d", format: { type: "grammar", syntax: "lark" } },
        { kind: "hosted", name: "bash_20250124", origin: { protocol: "messages", value: own } },
        { kind: "hosted", name: "mcp_servers", origin: { protocol: "messages", value: { mcp_servers: servers } } },
      ],
    });
    expect(body.mcp_servers).toEqual(servers);
    expect(body.tools).toMatchObject([
      {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 2,
        allowed_domains: ["a"],
        user_location: { type: "approximate", city: "X" },
      },
      {
        name: "patch",
        description: 'd\n\nFormat: {"type":"grammar","syntax":"lark"}',
        input_schema: { required: ["input"] },
      },
      own,
    ]);
    expect((body.tools as JsonObject[])[0]).not.toHaveProperty("blocked_domains");
  });

  const choices: [
    title: string,
    more: Partial<GenerationRequest>,
    model: string,
    choice: unknown,
    names: string[],
    dropped: string[],
  ][] = [
    ["none said", {}, OLD, undefined, ["f", "g"], []],
    ["auto", { toolChoice: { type: "auto" } }, OLD, { type: "auto" }, ["f", "g"], []],
    ["none", { toolChoice: { type: "none" }, parallelToolCalls: false }, OLD, { type: "none" }, ["f", "g"], []],
    ["required", { toolChoice: { type: "required" } }, OLD, { type: "any" }, ["f", "g"], []],
    ["named", { toolChoice: { type: "tool", name: "g" } }, OLD, { type: "tool", name: "g" }, ["f", "g"], []],
    [
      "one at a time",
      { parallelToolCalls: false },
      OLD,
      { type: "auto", disable_parallel_tool_use: true },
      ["f", "g"],
      [],
    ],
    ["allowed", { toolChoice: { type: "allowed", mode: "required", names: ["g"] } }, OLD, { type: "any" }, ["g"], []],
    [
      "named while thinking",
      { toolChoice: { type: "tool", name: "g" }, reasoning: { effort: "low" } },
      OLD,
      { type: "auto" },
      ["g"],
      ["tool_choice"],
    ],
    [
      "required while thinking",
      { toolChoice: { type: "required" }, reasoning: { effort: "low" } },
      NEW,
      { type: "auto" },
      ["f", "g"],
      ["tool_choice"],
    ],
    [
      "named where never forced",
      { toolChoice: { type: "tool", name: "f" } },
      "claude-opus-5-5",
      { type: "auto" },
      ["f"],
      ["tool_choice"],
    ],
  ];
  test.each(choices)("choice: %s", (_title, more, model, choice, names, dropped) => {
    const encoded = encode({ tools: [f, g], ...more }, model);
    expect(encoded.body.tool_choice).toEqual(choice);
    expect((encoded.body.tools as JsonObject[]).map(({ name }) => name as string)).toEqual(names);
    expect(encoded.dropped).toEqual(dropped);
  });

  test("a choice without tools is left out", () => {
    expect(encode({ toolChoice: { type: "auto" }, parallelToolCalls: false }).body).not.toHaveProperty("tool_choice");
  });
});

describe("settings", () => {
  const cases: [title: string, more: Partial<GenerationRequest>, model: string, body: JsonObject, dropped: string[]][] =
    [
      ["temperature above 1", { sampling: { temperature: 1.7 } }, OLD, { temperature: 1 }, ["temperature"]],
      ["temperature and top_p", { sampling: { temperature: 0.2, topP: 0.9 } }, OLD, { temperature: 0.2 }, ["top_p"]],
      [
        "the same for another vendor",
        { sampling: { temperature: 0.2, topP: 0.9 } },
        "mini",
        { temperature: 0.2, top_p: 0.9 },
        [],
      ],
      ["top_p and top_k", { sampling: { topP: 0.9, topK: 5 } }, OLD, { top_p: 0.9, top_k: 5 }, []],
      [
        "a model without sampling",
        { sampling: { temperature: 0.2, topP: 0.9, topK: 5 } },
        NEW,
        {},
        ["temperature", "top_p", "top_k"],
      ],
      ["the defaults for such a model", { sampling: { temperature: 1, topP: 1 } }, NEW, {}, []],
      [
        "while thinking",
        { sampling: { temperature: 0.2 }, reasoning: { effort: "auto" } },
        "claude-opus-4-6",
        {},
        ["temperature"],
      ],
      ["stop", { sampling: { stop: ["X", " \n"] } }, OLD, { stop_sequences: ["X"] }, ["stop"]],
      [
        "what the format has not",
        {
          sampling: { frequencyPenalty: 1, presencePenalty: 1, seed: 1, logprobs: true, logitBias: {} },
          verbosity: "low",
          promptCacheKey: "k",
          metadata: { a: 1 },
          extensions: { store: true },
        },
        OLD,
        {},
        [
          "frequency_penalty",
          "presence_penalty",
          "seed",
          "logprobs",
          "logit_bias",
          "metadata",
          "verbosity",
          "prompt_cache_key",
          "store",
        ],
      ],
      ["the user and streaming", { user: "u", stream: true }, OLD, { metadata: { user_id: "u" }, stream: true }, []],
    ];
  test.each(cases)("%s", (_title, more, model, expected, dropped) => {
    const encoded = encode(more, model);
    const { model: _model, max_tokens: _max, messages: _messages, thinking: _thinking, ...rest } = encoded.body;
    expect(rest).toEqual(expected);
    expect(encoded.dropped).toEqual(dropped);
  });

  test("several choices are refused", () => {
    expect(refusal({ sampling: { choices: 2 } }).param).toBe("n");
    expect(encode({ sampling: { choices: 1 } }).dropped).toEqual([]);
  });

  test("formats of the answer", () => {
    const schema = { type: "object", properties: { a: { type: "integer", minimum: 1 } } };
    const format = { type: "json-schema", name: "n", schema } as const;
    expect(encode({ responseFormat: format }).body.output_config).toEqual({
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          properties: { a: { type: "integer", description: "(minimum: 1)" } },
          additionalProperties: false,
        },
      },
    });
    const old = encode({ responseFormat: format, system: [{ type: "text", text: "s" }] }, "claude-opus-4-0");
    expect(old.body).not.toHaveProperty("output_config");
    expect((old.body.system as JsonObject[])[1]?.text).toContain(JSON.stringify(schema));
    expect(old.dropped).toEqual(["response_format"]);
    expect((encode({ responseFormat: { type: "json" } }).body.system as JsonObject[])[0]?.text).toContain("JSON");
    expect(encode({ responseFormat: { type: "text" } })).toEqual(encode());
  });
});

describe("the prompt cache", () => {
  test("six places take hints, and the last four stay", () => {
    const cache = {};
    const { body, dropped } = encode({
      tools: [{ kind: "function", name: "f", cache }],
      system: [{ type: "text", text: "s", cache }],
      messages: [
        user({ type: "text", text: "t", cache }, { type: "image", source: { kind: "url", url: "u" }, cache }),
        assistant({ type: "tool-call", id: "a", name: "f", arguments: "", cache }),
        user({ type: "tool-result", callId: "a", parts: [], cache }),
      ],
    });
    const marked = (blocks: unknown) =>
      (blocks as JsonObject[]).map(({ cache_control }) => cache_control !== undefined);
    expect(marked(body.tools)).toEqual([false]);
    expect(marked(body.system)).toEqual([false]);
    expect((body.messages as { content: unknown }[]).map(({ content }) => marked(content))).toEqual([
      [true, true],
      [true],
      [true],
    ]);
    expect(dropped).toEqual(["cache_control"]);
  });

  test("the client's own definitions are not changed by it", () => {
    const value = { type: "bash_20250124", name: "bash", cache_control: { type: "ephemeral" } };
    const hinted: Message = {
      role: "user",
      parts: Array.from({ length: 4 }, () => ({ type: "text", text: "x", cache: {} })),
    };
    const tools = [{ kind: "hosted", name: "bash", origin: { protocol: "messages", value } } as const];
    expect((encode({ tools, messages: [hinted] }).body.tools as JsonObject[])[0]).not.toHaveProperty("cache_control");
    expect(value).toHaveProperty("cache_control");
  });
});

test("a request of a Messages client comes out as it went in", () => {
  const body = {
    model: OLD,
    max_tokens: 4096,
    system: [{ type: "text", text: "s", cache_control: { type: "ephemeral", ttl: "1h" } }],
    messages: [
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm", signature: "s" },
          { type: "redacted_thinking", data: "d" },
          { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "r" }] }],
      },
    ],
    tools: [
      { name: "f", description: "d", input_schema: { type: "object", properties: {} } },
      { type: "web_search_20260209", name: "web_search", max_uses: 1 },
    ],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
    thinking: { type: "enabled", budget_tokens: 2048 },
    output_config: { task_budget: { type: "tokens", total: 1 } },
    metadata: { user_id: "u" },
    stop_sequences: ["X"],
    stream: true,
    service_tier: "auto",
    context_management: { edits: [] },
  };
  const { body: encoded, dropped } = encodeRequest(decodeRequest(body), { model: OLD, kind: BACKEND_KINDS.anthropic });
  expect(encoded).toEqual(body);
  expect(dropped).toEqual([]);
});
