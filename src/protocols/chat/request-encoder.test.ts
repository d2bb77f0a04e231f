// Neutral requests for chat backends: messages, the quirks of each kind, what is refused and what is listed as dropped.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { ContentPart, Message } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { BackendKindName } from "../../names.ts";
import type { BackendTarget } from "../protocol.ts";
import { decodeMessages } from "./message-decoder.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";

const LOCAL_KINDS: BackendKindName[] = ["ollama", "llamacpp", "lmstudio", "vllm", "generic"];

function request(more: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: "asked",
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text: "hi" }] }],
    tools: [],
    sampling: {},
    reasoning: {},
    stream: false,
    origin: { protocol: "messages", body: {} },
    extensions: {},
    ...more,
  };
}

function encode(
  more: Partial<GenerationRequest> = {},
  kind: BackendKindName = "openai",
  target: Partial<BackendTarget> = {},
) {
  const { body, dropped } = encodeRequest(request(more), { model: "m", kind: BACKEND_KINDS[kind], ...target });
  return { body, dropped: dropped.map(({ feature }) => feature) };
}

function messages(conversation: Message[], kind: BackendKindName = "openai"): unknown {
  return encode({ messages: conversation }, kind).body.messages;
}

function refusal(more: Partial<GenerationRequest>, kind: BackendKindName): GatewayError {
  try {
    encode(more, kind);
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const says = (...parts: ContentPart[]): Message => ({ role: "user", parts });
const answers = (...parts: ContentPart[]): Message => ({ role: "assistant", parts });
const text = (value: string): ContentPart => ({ type: "text", text: value });
const call = (id: string, more: JsonObject = {}): ContentPart =>
  ({ type: "tool-call", id, name: "f", arguments: '{"a":1}', ...more }) as ContentPart;
const result = (callId: string, ...parts: ContentPart[]): ContentPart =>
  ({ type: "tool-result", callId, parts }) as ContentPart;
const image: ContentPart = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA" } };
const wireImage = { type: "image_url", image_url: { url: "data:image/png;base64,AA" } };
const wireCall = (id: string) => ({ id, type: "function", function: { name: "f", arguments: '{"a":1}' } });

describe("messages", () => {
  test("instructions are one system message", () => {
    const { body } = encode({
      system: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    });
    expect((body.messages as unknown[])[0]).toEqual({ role: "system", content: "a\n\nb" });
  });

  test("several texts stay parts for OpenAI and are one text for local engines", () => {
    const conversation = [says(text("a"), text("b"))];
    expect(messages(conversation)).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ]);
    for (const kind of LOCAL_KINDS) {
      expect(messages(conversation, kind)).toEqual([{ role: "user", content: "a\n\nb" }]);
    }
  });

  test("parallel calls are one message, and their results follow at once", () => {
    expect(
      messages([
        answers(text("x"), call("1")),
        answers(call("2", { arguments: "" })),
        says(result("1", text("one"), text("more")), text("go on")),
        says(result("2", text("two"))),
      ]),
    ).toEqual([
      {
        role: "assistant",
        content: "x",
        tool_calls: [wireCall("1"), { id: "2", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "1", content: "one\nmore" },
      { role: "tool", tool_call_id: "2", content: "two" },
      { role: "user", content: "go on" },
    ]);
  });

  test("a call whose result was lost is given one that says so, right behind it", () => {
    const conversation = [
      says(text("go")),
      answers(call("1"), call("2")),
      says(result("2", text("r"))),
      says(text("on")),
    ];
    const { body, dropped } = encode({ messages: conversation });
    const tools = (body.messages as JsonObject[]).slice(2, 4);
    expect(tools.map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual([
      ["tool", "1"],
      ["tool", "2"],
    ]);
    expect(tools[0]?.content).toMatch(/No result/);
    expect(dropped).toContain("tool_calls");
  });

  test("images of tool results move behind all results", () => {
    const [, first, second, third] = messages(
      [answers(call("1"), call("2")), says(result("1", text("look"), image), result("2", text("x")), text("and?"))],
      "vllm",
    ) as JsonObject[];
    expect(first?.content).toStartWith("look\n");
    expect(second).toEqual({ role: "tool", tool_call_id: "2", content: "x" });
    expect(third).toEqual({
      role: "user",
      content: [{ type: "text", text: "Returned by the tool call 1:" }, wireImage, { type: "text", text: "and?" }],
    });
  });

  test("a failed tool is marked", () => {
    const failed = { ...result("1", text("no disk")), isError: true } as ContentPart;
    expect(messages([answers(call("1")), says(failed)])).toContainEqual({
      role: "tool",
      tool_call_id: "1",
      content: "[tool error] no disk",
    });
  });

  test("thoughts go to local engines under both names, not to OpenAI", () => {
    const thought: ContentPart = { type: "reasoning", text: "hm", signature: "s", origin: "messages" };
    const conversation = [answers(thought, text("x"))];
    for (const kind of LOCAL_KINDS) {
      expect(messages(conversation, kind)).toEqual([
        { role: "assistant", content: "x", reasoning: "hm", reasoning_content: "hm" },
      ]);
    }
    for (const kind of ["openai", "azure"] as const) {
      const { body, dropped } = encode({ messages: conversation }, kind);
      expect(body.messages).toEqual([{ role: "assistant", content: "x" }]);
      expect(dropped).toEqual(["reasoning of earlier turns"]);
    }
  });

  test("proofs that only chat engines know go back to servers of an unknown kind, as they were", () => {
    const details = [
      { type: "reasoning.text", format: "unknown", signature: "s", text: "hm" },
      { type: "reasoning.encrypted", format: "xai-responses-v1", data: "d", index: 1 },
    ];
    const [decoded] = decodeMessages([{ role: "assistant", content: "x", reasoning_details: details }]).messages;
    const told = { role: "assistant", content: "x", reasoning: "hm", reasoning_content: "hm" };
    const conversation = [decoded as Message];
    expect(messages(conversation, "generic")).toEqual([{ ...told, reasoning_details: details }]);
    expect(messages(conversation, "vllm")).toEqual([told]);
    expect(messages(conversation, "openai")).toEqual([{ role: "assistant", content: "x" }]);
    const forged: ContentPart = { type: "reasoning", text: "", origin: "chat", sealed: "no entry" };
    expect(encode({ messages: [answers(forged, text("x"))] }, "generic").dropped).toEqual([
      "reasoning of earlier turns",
    ]);
  });

  test("refusals keep their field where it is known", () => {
    const conversation = [answers({ type: "refusal", text: "no" })];
    expect(messages(conversation)).toEqual([{ role: "assistant", content: null, refusal: "no" }]);
    expect(messages(conversation, "ollama")).toEqual([{ role: "assistant", content: "no" }]);
  });

  test("searches of a server are told as calls with results", () => {
    const search: ContentPart = {
      type: "tool-call",
      id: "s",
      name: "web_search",
      arguments: '{"query":"q"}',
      serverSide: true,
    };
    const found: ContentPart = {
      type: "search-result",
      callId: "s",
      results: [{ url: "https://u", title: "t", encryptedContent: "secret", snippet: "says" }],
    };
    expect(messages([answers(text("let me see"), search, found, text("so"), call("1")), says(result("1"))])).toEqual([
      {
        role: "assistant",
        content: "let me see",
        tool_calls: [{ id: "s", type: "function", function: { name: "web_search", arguments: '{"query":"q"}' } }],
      },
      { role: "tool", tool_call_id: "s", content: "t\nhttps://u\nsays" },
      { role: "assistant", content: "so", tool_calls: [wireCall("1")] },
      { role: "tool", tool_call_id: "1", content: "" },
    ]);
  });

  test("a call for the client stays next to its result, even when a search came behind it", () => {
    const search = call("s", { serverSide: true });
    const found: ContentPart = { type: "search-result", callId: "s", results: [], errorCode: "unavailable" };
    const sent = messages([answers(search, call("1"), found), says(result("1", text("x")))]);
    expect(sent).toEqual([
      { role: "assistant", content: null, tool_calls: [wireCall("s")] },
      { role: "tool", tool_call_id: "s", content: "[tool error] unavailable" },
      { role: "assistant", content: null, tool_calls: [wireCall("1")] },
      { role: "tool", tool_call_id: "1", content: "x" },
    ]);
  });

  test("text documents are read, others are files", () => {
    const document = (mediaType: string): ContentPart => ({
      type: "document",
      source: { kind: "base64", mediaType, data: btoa("body") },
      title: "a",
    });
    expect(messages([says(document("text/plain"))], "ollama")).toEqual([{ role: "user", content: "a\n\nbody" }]);
    expect(messages([says(document("application/pdf"))])).toEqual([
      {
        role: "user",
        content: [{ type: "file", file: { filename: "a", file_data: `data:application/pdf;base64,${btoa("body")}` } }],
      },
    ]);
  });

  test("Gemini's signatures go where they are understood, from the part or from memory", () => {
    const conversation = [answers(call("1", { signature: "sig" }), call("2"))];
    const signed = (kind: BackendKindName) => {
      const { body } = encode({ messages: conversation }, kind, {
        signatureOf: (id) => (id === "2" ? "kept" : undefined),
      });
      const [message] = body.messages as { tool_calls: JsonObject[] }[];
      return message?.tool_calls.map((entry) => entry.extra_content);
    };
    const extra = (thought_signature: string) => ({ google: { thought_signature } });
    expect(signed("generic")).toEqual([extra("sig"), extra("kept")]);
    expect(signed("openai")).toEqual([undefined, undefined]);
  });
});

describe("the limit of output tokens", () => {
  const cases: [kind: BackendKindName, field: string][] = [
    ["openai", "max_completion_tokens"],
    ["azure", "max_completion_tokens"],
    ["federated", "max_completion_tokens"],
    ...LOCAL_KINDS.map((kind): [BackendKindName, string] => [kind, "max_tokens"]),
  ];
  test.each(cases)("%s: %s", (kind, field) => {
    const { body } = encode({ maxOutputTokens: 9 }, kind);
    expect(Object.entries(body).filter(([key]) => key.startsWith("max_"))).toEqual([[field, 9]]);
  });

  test("is not above what the model can", () => {
    expect(encode({ maxOutputTokens: 9 }, "openai", { maxOutputTokens: 5 }).body.max_completion_tokens).toBe(5);
    expect(encode({}, "openai", { maxOutputTokens: 5 }).body.max_completion_tokens).toBeUndefined();
  });
});

describe("settings", () => {
  test("a plain request has nothing but what was said", () => {
    expect(encode().body).toEqual({ model: "m", messages: [{ role: "user", content: "hi" }] });
    expect(Object.keys(encode().body)).toEqual(["model", "messages"]);
  });

  test("the usage of streams is always asked for", () => {
    expect(encode({ stream: true }).body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  test("sampling and effort", () => {
    const { body, dropped } = encode(
      {
        sampling: { temperature: 0, topP: 0.5, topK: 4, seed: 1, stop: ["x"], frequencyPenalty: 1, presencePenalty: 2 },
        reasoning: { effort: "high" },
      },
      "vllm",
    );
    expect(body).toMatchObject({
      ...{ temperature: 0, top_p: 0.5, top_k: 4, seed: 1, stop: ["x"], frequency_penalty: 1, presence_penalty: 2 },
      reasoning_effort: "high",
    });
    expect(dropped).toEqual([]);
  });

  test("what a kind does not know is left out and listed", () => {
    const more: Partial<GenerationRequest> = {
      sampling: { topK: 4, logitBias: { "1": 1 }, logprobs: true },
      promptCacheKey: "k",
      verbosity: "low",
      user: "u",
      metadata: { a: 1 },
      extensions: { thinking_display: 1 },
      reasoning: { budgetTokens: 1024 },
    };
    expect(encode(more, "ollama")).toEqual({
      body: { model: "m", messages: [{ role: "user", content: "hi" }] },
      dropped: [
        ...["thinking_display", "logprobs", "top_k", "logit_bias", "thinking budget", "metadata", "user"],
        ...["prompt_cache_key", "verbosity"],
      ],
    });
    expect(encode(more, "openai").body).toMatchObject({ prompt_cache_key: "k", verbosity: "low", user: "u" });
  });

  test("a user longer than OpenAI allows is left out", () => {
    const { body, dropped } = encode({ user: "u".repeat(65) });
    expect(body.user).toBeUndefined();
    expect(dropped).toEqual(["user"]);
  });

  test("hints for a cache are listed", () => {
    expect(encode({ messages: [says({ type: "text", text: "x", cache: {} })] }).dropped).toEqual(["cache_control"]);
  });

  test("a chat client's own extensions go to a chat backend, OpenAI's own not to local engines", () => {
    const own = request({ origin: { protocol: "chat", body: {} }, extensions: { min_p: 0.1, store: true } });
    const bodyFor = (kind: BackendKindName) => encodeRequest(own, { model: "m", kind: BACKEND_KINDS[kind] }).body;
    expect(bodyFor("openai")).toMatchObject({ min_p: 0.1, store: true });
    expect(bodyFor("llamacpp").min_p).toBe(0.1);
    expect("store" in bodyFor("llamacpp")).toBe(false);
  });

  test("response formats", () => {
    const formatFor = (responseFormat: GenerationRequest["responseFormat"], kind: BackendKindName = "openai") =>
      encode(responseFormat === undefined ? {} : { responseFormat }, kind).body.response_format;
    expect(formatFor({ type: "text" })).toBeUndefined();
    expect(formatFor({ type: "json" })).toEqual({ type: "json_object" });
    expect(formatFor({ type: "json" }, "lmstudio")).toMatchObject({ type: "json_schema" });
    expect(formatFor({ type: "json-schema", name: "n", schema: { a: 1 } })).toEqual({
      type: "json_schema",
      json_schema: { name: "n", schema: { a: 1 } },
    });
  });
});

describe("tools", () => {
  const tools: GenerationRequest["tools"] = [
    { kind: "function", name: "f", strict: true, parameters: { type: "object" } },
    { kind: "function", name: "g" },
  ];
  const named = (body: JsonObject) =>
    (body.tools as { function: { name: string } }[] | undefined)?.map((tool) => tool.function.name);
  const fn = (name: string) => ({ type: "function", function: { name } });

  test("strict as it was said; no parameters are an empty object", () => {
    const [f, g] = encode({ tools }).body.tools as { type: string; function: JsonObject }[];
    expect(f).toEqual({ type: "function", function: { name: "f", strict: true, parameters: { type: "object" } } });
    expect(g?.function.parameters).toMatchObject({ type: "object", properties: {} });
    expect("strict" in (g?.function ?? {})).toBe(false);
  });

  const cases: [
    kind: BackendKindName,
    choice: NonNullable<GenerationRequest["toolChoice"]>,
    names: string[] | undefined,
    wire: unknown,
  ][] = [
    ["openai", { type: "tool", name: "g" }, ["f", "g"], fn("g")],
    ["vllm", { type: "tool", name: "g" }, ["f", "g"], fn("g")],
    ["lmstudio", { type: "tool", name: "g" }, ["g"], "required"],
    ["llamacpp", { type: "tool", name: "g" }, ["g"], "required"],
    ["ollama", { type: "tool", name: "g" }, ["g"], undefined],
    ["ollama", { type: "none" }, undefined, undefined],
    ["ollama", { type: "auto" }, ["f", "g"], undefined],
    ["lmstudio", { type: "none" }, ["f", "g"], "none"],
    ["vllm", { type: "allowed", mode: "auto", names: ["f"] }, ["f"], "auto"],
    [
      "openai",
      { type: "allowed", mode: "auto", names: ["f"] },
      ["f", "g"],
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [fn("f")] } },
    ],
  ];
  test.each(cases)("%s: %j", (kind, toolChoice, names, wire) => {
    const { body } = encode({ tools, toolChoice }, kind);
    expect(named(body)).toEqual(names as string[]);
    expect(body.tool_choice).toEqual(wire);
  });

  test("a choice that cannot be enforced is listed", () => {
    expect(encode({ tools, toolChoice: { type: "required" } }, "ollama").dropped).toEqual(["tool_choice"]);
    expect(encode({ tools, toolChoice: { type: "auto" } }, "ollama").dropped).toEqual([]);
  });

  test("no tools, no tool settings", () => {
    const { body } = encode({ toolChoice: { type: "auto" }, parallelToolCalls: false });
    expect(Object.keys(body)).toEqual(["model", "messages"]);
  });

  test("custom tools where they are known", () => {
    const custom = { tools: [{ kind: "custom", name: "patch" }] } satisfies Partial<GenerationRequest>;
    const { body } = encode({ ...custom, toolChoice: { type: "tool", name: "patch" } });
    expect(body.tools).toEqual([{ type: "custom", custom: { name: "patch" } }]);
    expect(body.tool_choice).toEqual({ type: "custom", custom: { name: "patch" } });
    expect(refusal(custom, "ollama").message).toContain("patch");
  });
});

describe("refused because leaving it out would change the meaning", () => {
  const pdf: ContentPart = { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "AA" } };
  const fileImage: ContentPart = { type: "image", source: { kind: "file", fileId: "file_1" } };
  const wav: ContentPart = { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "AA" } };
  const ogg: ContentPart = { type: "audio", source: { kind: "base64", mediaType: "audio/ogg", data: "AA" } };
  const fileDocument: ContentPart = { type: "document", source: { kind: "file", fileId: "file_1" } };
  const origin = { protocol: "messages", value: { type: "web_search_20250305" } } as const;
  const cases: [title: string, kind: BackendKindName, more: Partial<GenerationRequest>, param: string][] = [
    ["several choices", "openai", { sampling: { choices: 2 } }, "n"],
    ["a document for a local engine", "ollama", { messages: [says(pdf)] }, "messages"],
    ["an image by id", "openai", { messages: [says(fileImage)] }, "messages"],
    ["audio for an engine without ears", "ollama", { messages: [says(wav)] }, "messages"],
    ["audio in a format that the field does not have", "openai", { messages: [says(ogg)] }, "messages"],
    ["a file id of another vendor", "openai", { messages: [says(fileDocument)] }, "messages"],
    ["a web search", "openai", { tools: [{ kind: "web-search", name: "web_search", origin }] }, "tools[0]"],
    ["a hosted tool", "openai", { tools: [{ kind: "hosted", name: "computer_20250124", origin }] }, "tools[0]"],
  ];
  test.each(cases)("%s", (_title, kind, more, param) => {
    expect(refusal(more, kind).param).toBe(param);
  });
});

describe("there and back", () => {
  test("a chat request that OpenAI can hold keeps its meaning", () => {
    const texts = fc.string({ minLength: 1, maxLength: 12 });
    const results = fc.array(
      fc.record({
        id: fc.uuid(),
        text: texts.filter((value) => !value.startsWith("[tool error]")),
        failed: fc.boolean(),
      }),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(texts, texts, results, (asked, said, called) => {
        const body: JsonObject = {
          model: "m",
          messages: [
            { role: "user", content: asked },
            { role: "assistant", content: said, tool_calls: called.map(({ id }) => wireCall(id)) },
            ...called.map(({ id, text: content, failed }) => ({
              role: "tool",
              tool_call_id: id,
              content,
              ...(failed ? { is_error: true } : {}),
            })),
          ],
        };
        const neutral = decodeRequest(body);
        const again = decodeRequest(encodeRequest(neutral, { model: "m", kind: BACKEND_KINDS.openai }).body);
        expect(again.messages).toEqual(neutral.messages);
      }),
    );
  });
});
