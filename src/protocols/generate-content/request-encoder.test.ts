// Requests as the generateContent API takes them; expected bodies are typed by Google's own library.

import { describe, expect, test } from "bun:test";
import {
  type Content,
  FunctionCallingConfigMode,
  type GenerationConfig,
  type Part,
  ThinkingLevel,
  type Tool,
  type ToolConfig,
} from "@google/genai";
import fc from "fast-check";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { ContentPart, Message, ToolCallPart, ToolResultPart } from "../../generation/content.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { Tool as NeutralTool, ToolChoice } from "../../generation/tools.ts";
import type { BackendTarget } from "../protocol.ts";
import { generateContentBackend } from "./index.ts";
import { decodeResponse } from "./response-decoder.ts";
import { SKIP_VALIDATION } from "./thought-signature.ts";

interface Body {
  contents: Content[];
  systemInstruction?: Pick<Content, "parts">;
  tools?: Tool[];
  toolConfig?: ToolConfig;
  generationConfig?: GenerationConfig;
}

const MODERN = "gemini-3.1-pro";
const SECOND = "gemini-2.5-flash";

const user = (...parts: ContentPart[]): Message => ({ role: "user", parts });
const model = (...parts: ContentPart[]): Message => ({ role: "assistant", parts });
const text = (value: string): ContentPart => ({ type: "text", text: value });
const call = (id: string, name: string, args = "{}", more: Partial<ToolCallPart> = {}): ToolCallPart => ({
  type: "tool-call",
  id,
  name,
  arguments: args,
  ...more,
});
const result = (callId: string, value: string, more: Partial<ToolResultPart> = {}): ToolResultPart => ({
  type: "tool-result",
  callId,
  parts: [{ type: "text", text: value }],
  ...more,
});

function requestOf(changes: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    model: "m",
    system: [],
    messages: [user(text("Hi"))],
    tools: [],
    sampling: {},
    reasoning: { visible: false, enabled: undefined as never },
    stream: false,
    origin: { protocol: "chat", body: {} },
    extensions: {},
    ...changes,
  };
}

/** Without a wish to think or to see thoughts, so that only what a test is about is in the body. */
function encode(changes: Partial<GenerationRequest>, target: Partial<BackendTarget> = {}) {
  const encoded = generateContentBackend.encodeRequest(requestOf({ reasoning: {}, ...changes }), {
    model: "gemini-2.0-flash",
    kind: BACKEND_KINDS.gemini,
    ...target,
  });
  return { body: encoded.body as unknown as Body, dropped: encoded.dropped.map(({ feature }) => feature) };
}

function refusalOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("messages", () => {
  test("system, user and assistant", () => {
    const { body, dropped } = encode({
      system: [
        { type: "text", text: "Be brief." },
        { type: "text", text: "Be kind." },
      ],
      messages: [user(text("Hi")), model(text("Hello")), user(text("Bye"))],
    });
    const expected: Body = {
      contents: [
        { role: "user", parts: [{ text: "Hi" }] },
        { role: "model", parts: [{ text: "Hello" }] },
        { role: "user", parts: [{ text: "Bye" }] },
      ],
      systemInstruction: { parts: [{ text: "Be brief." }, { text: "Be kind." }] },
    };
    expect(body).toEqual(expected);
    expect(dropped).toEqual([]);
  });

  test("neighbours of one role are joined and empty messages leave no trace", () => {
    const { body } = encode({ messages: [user(text("a")), user(text("b")), model(text("")), user(text("c"))] });
    expect(body.contents).toEqual([{ role: "user", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] }]);
  });

  test("a conversation that begins with the assistant gets a line of the user", () => {
    const { body, dropped } = encode({ messages: [model(text("Hello")), user(text("Hi"))] });
    expect(body.contents.map(({ role }) => role)).toEqual(["user", "model", "user"]);
    expect(dropped).toEqual(["messages[0]"]);
  });

  test("instructions in the middle go to the others", () => {
    const { body, dropped } = encode({
      system: [{ type: "text", text: "one" }],
      messages: [user(text("a")), { role: "system", parts: [text("two")] }, user(text("b"))],
    });
    expect(body.systemInstruction).toEqual({ parts: [{ text: "one" }, { text: "two" }] });
    expect(body.contents).toEqual([{ role: "user", parts: [{ text: "a" }, { text: "b" }] }]);
    expect(dropped).toEqual(["system message"]);
  });

  test("instructions alone are said by the user", () => {
    const { body } = encode({ system: [{ type: "text", text: "Tell a joke." }], messages: [] });
    expect(body).toEqual({ contents: [{ role: "user", parts: [{ text: "Tell a joke." }] }] });
    expect(encode({ messages: [] }).body.contents).toHaveLength(1);
  });

  test("Gemma reads instructions before the first text of the user", () => {
    const { body } = encode(
      { system: [{ type: "text", text: "Be brief." }], messages: [model(text("Hello")), user(text("Hi"))] },
      { model: "gemma-3-27b-it" },
    );
    expect(body.systemInstruction).toBeUndefined();
    expect(body.contents[0]?.parts?.[0]).toEqual({ text: "Be brief." });
    expect(body.contents.map(({ role }) => role)).toEqual(["user", "model", "user"]);
  });

  const media: [name: string, part: ContentPart, expected: Part][] = [
    [
      "image",
      { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } },
      { inlineData: { mimeType: "image/png", data: "AA==" } },
    ],
    [
      "document",
      { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "AA==" } },
      { inlineData: { mimeType: "application/pdf", data: "AA==" } },
    ],
    [
      "audio",
      { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "AA==" } },
      { inlineData: { mimeType: "audio/wav", data: "AA==" } },
    ],
    [
      "video",
      { type: "video", source: { kind: "base64", mediaType: "video/mp4", data: "AA==" } },
      { inlineData: { mimeType: "video/mp4", data: "AA==" } },
    ],
    [
      "url with a type",
      { type: "image", source: { kind: "url", url: "https://a.test/x", mediaType: "image/webp" } },
      { fileData: { fileUri: "https://a.test/x", mimeType: "image/webp" } },
    ],
    [
      "url with an extension",
      { type: "video", source: { kind: "url", url: "https://a.test/x.MP4?y=1.png" } },
      { fileData: { fileUri: "https://a.test/x.MP4?y=1.png", mimeType: "video/mp4" } },
    ],
    [
      "Google's file storage",
      { type: "video", source: { kind: "url", url: "https://generativelanguage.googleapis.com/v1beta/files/a1" } },
      { fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/a1" } },
    ],
  ];
  test.each(media)("%s", (_name, part, expected) => {
    expect(encode({ messages: [user(part)] }).body.contents).toEqual([{ role: "user", parts: [expected] }]);
  });

  test("media that cannot be sent are refused", () => {
    const unknown: ContentPart = { type: "image", source: { kind: "url", url: "https://a.test/x" } };
    const file: ContentPart = { type: "document", source: { kind: "file", fileId: "file-1" } };
    expect(refusalOf(() => encode({ messages: [user(unknown)] })).message).toContain("image");
    expect(refusalOf(() => encode({ messages: [user(file)] })).message).toContain("file_id");
  });

  test("hints are listed", () => {
    const source = { kind: "base64", mediaType: "image/png", data: "AA==" } as const;
    const { dropped, body } = encode({
      messages: [
        {
          role: "user",
          name: "Ann",
          parts: [
            { type: "text", text: "a", cache: {} },
            { type: "image", source, detail: "low" },
            { type: "document", source: { ...source, mediaType: "application/pdf" }, title: "a.pdf", context: "draft" },
            { type: "opaque", protocol: "chat", value: { type: "odd" } },
          ],
        },
      ],
    });
    expect(dropped).toEqual(["messages[].name", "cache_control", "image_url.detail", "filename", "odd"]);
    expect(body.contents[0]?.parts?.[2]).toEqual({ text: "draft" });
  });

  test("thoughts go back with their own signature only", () => {
    const messages = [
      user(text("a")),
      model(
        { type: "reasoning", text: "mine", signature: "S", origin: "generate-content" },
        { type: "reasoning", text: "foreign", signature: "T", origin: "messages" },
        { type: "text", text: "b", signature: "U" },
      ),
      user(text("c")),
    ];
    const { body, dropped } = encode({ messages }, { model: MODERN });
    expect(body.contents[1]?.parts).toEqual([
      { text: "mine", thought: true, thoughtSignature: "S" },
      { text: "b", thoughtSignature: "U" },
    ]);
    expect(dropped).toEqual(["reasoning of earlier answers"]);
    expect(encode({ messages }).body.contents[1]?.parts).toEqual([{ text: "b" }]);
  });

  test("an opaque part of this format and a search of another backend", () => {
    const value = { executableCode: { language: "PYTHON", code: "1" } };
    const { body, dropped } = encode({
      messages: [
        user(text("a")),
        model(
          { type: "opaque", protocol: "generate-content", value },
          { type: "tool-call", id: "s", name: "web_search", arguments: "{}", serverSide: true },
          { type: "search-result", callId: "s", results: [{ url: "u", title: "t" }] },
        ),
        user(text("b")),
      ],
    });
    expect(body.contents[1]?.parts).toEqual([value as Part, { text: "Results of a web search:\n- t (u)" }]);
    expect(dropped).toEqual(["call of web_search"]);
  });
});

describe("calls and results", () => {
  test("results are one content, in the order of the calls, with their names", () => {
    const { body, dropped } = encode({
      messages: [
        user(text("a")),
        model(text("b"), call("c1", "f", '{"x":1}'), call("c2", "g", "")),
        user(result("c2", "two")),
        user(result("c1", '{"y":2}'), text("now")),
      ],
    });
    const expected: Content[] = [
      { role: "user", parts: [{ text: "a" }] },
      {
        role: "model",
        parts: [
          { text: "b" },
          { functionCall: { id: "c1", name: "f", args: { x: 1 } } },
          { functionCall: { id: "c2", name: "g", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c1", name: "f", response: { y: 2 } } },
          { functionResponse: { id: "c2", name: "g", response: { output: "two" } } },
          { text: "now" },
        ],
      },
    ];
    expect(body.contents).toEqual(expected);
    expect(dropped).toEqual([]);
  });

  const responses: [name: string, value: string, isError: boolean, expected: Record<string, unknown>][] = [
    ["an object", ' {"a":[1]}', false, { a: [1] }],
    ["text", "done", false, { output: "done" }],
    ["nothing", "", false, { output: "" }],
    ["a list", "[1]", false, { output: "[1]" }],
    ["a broken object", '{"a":', false, { output: '{"a":' }],
    ["a number that would change", '{"a":12345678901234567890}', false, { output: '{"a":12345678901234567890}' }],
    ["an error", '{"a":1}', true, { error: '{"a":1}' }],
  ];
  test.each(responses)("%s", (_name, value, isError, expected) => {
    const { body } = encode({
      messages: [user(text("a")), model(call("c", "f")), user(result("c", value, { isError }))],
    });
    expect(body.contents[2]?.parts?.[0]?.functionResponse?.response).toEqual(expected);
  });

  test("calls of one id are told apart by their order", () => {
    const { body } = encode({
      messages: [user(text("a")), model(call("c", "f"), call("c", "f")), user(result("c", "1"), result("c", "2"))],
    });
    expect(body.contents[2]?.parts?.map((part) => part.functionResponse?.response)).toEqual([
      { output: "1" },
      { output: "2" },
    ]);
  });

  test("a call without a result gets an error, at the end of the conversation too", () => {
    const messages = [user(text("a")), model(call("c1", "f"), call("c2", "g"))];
    const { body, dropped } = encode({ messages: [...messages, user(text("never mind"))] });
    expect(body.contents[2]?.parts?.map((part) => part.functionResponse?.name ?? part.text)).toEqual([
      "f",
      "g",
      "never mind",
    ]);
    expect(dropped).toEqual(["tool_calls"]);
    expect(encode({ messages }).body.contents[2]?.parts).toHaveLength(2);
  });

  test("a result without a call is told as text, under the name that is known", () => {
    const { body, dropped } = encode({
      messages: [
        user(result("c0", "old", { name: "f" }), result("c9", "older")),
        model(text("b"), call("c1", "g")),
        user(result("c1", "new"), text("and"), result("c1", "again", { isError: true })),
      ],
    });
    expect(body.contents[0]?.parts).toEqual([
      { text: "Result of a call of f:\nold" },
      { text: "Result of a call of unknown_tool:\nolder" },
    ]);
    expect(body.contents[2]?.parts?.slice(1)).toEqual([{ text: "and" }, { text: "Error of a call of g:\nagain" }]);
    expect(dropped).toEqual(["tool result"]);
  });

  test("images of results stand inside for newer models, behind for older ones", () => {
    const image: ToolResultPart["parts"][number] = {
      type: "image",
      source: { kind: "base64", mediaType: "image/png", data: "AA==" },
    };
    const messages = [
      user(text("a")),
      model(call("c1", "f", "{}", { signature: "S" }), call("c2", "g")),
      user(result("c1", "x", { parts: [{ type: "text", text: "x" }, image] }), result("c2", "y")),
    ];
    const inline = { inlineData: { mimeType: "image/png", data: "AA==" } };
    expect(encode({ messages }, { model: MODERN }).body.contents[2]?.parts).toEqual([
      { functionResponse: { id: "c1", name: "f", response: { output: "x" }, parts: [inline] } },
      { functionResponse: { id: "c2", name: "g", response: { output: "y" } } },
    ]);
    expect(encode({ messages }, { model: SECOND }).body.contents[2]?.parts).toEqual([
      { functionResponse: { id: "c1", name: "f", response: { output: "x" } } },
      { functionResponse: { id: "c2", name: "g", response: { output: "y" } } },
      { text: "Files that f returned:" },
      inline,
    ]);
  });

  test("arguments that are no object and names that are no names do not stop a conversation", () => {
    const { body } = encode({
      messages: [
        user(text("a")),
        model(call("c1", "1st tool", "[1]"), call("c2", "f", "{cut"), call("c3", "g", "grep x", { custom: true })),
        user(result("c1", ""), result("c2", ""), result("c3", "")),
      ],
    });
    expect(body.contents[1]?.parts?.map((part) => part.functionCall)).toEqual([
      { id: "c1", name: "_1st_tool", args: { INVALID_JSON: "[1]" } },
      { id: "c2", name: "f", args: { INVALID_JSON: "{cut" } },
      { id: "c3", name: "g", args: { input: "grep x" } },
    ]);
    expect(body.contents[2]?.parts?.[0]?.functionResponse?.name).toBe("_1st_tool");
  });

  test("as many results as calls, whatever the client sends", () => {
    const part = fc.oneof(
      fc.constantFrom("c1", "c2", "c3").map((id) => call(id, "f")),
      fc.constantFrom("c1", "c2", "c3", "c4").map((id) => result(id, "r")),
      fc.constantFrom(text("x"), text("")),
    );
    const message = fc.record({
      role: fc.constantFrom<Message["role"]>("user", "assistant"),
      parts: fc.array(part, { maxLength: 5 }),
    });
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), (messages) => {
        const { contents } = encode({ messages }, { model: MODERN }).body;
        expect(contents[0]?.role).toBe("user");
        for (const [index, { role, parts = [] }] of contents.entries()) {
          expect(parts.length).toBeGreaterThan(0);
          if (index > 0) expect(contents[index - 1]?.role).not.toBe(role as string);
          const calls = parts.flatMap(({ functionCall }) => functionCall?.id ?? []);
          const next = contents[index + 1]?.parts ?? [];
          if (role === "model") {
            expect(next.slice(0, calls.length).map(({ functionResponse }) => functionResponse?.id)).toEqual(calls);
          }
          const responses = parts.filter((entry) => entry.functionResponse !== undefined);
          const before = (contents[index - 1]?.parts ?? []).filter((entry) => entry.functionCall !== undefined);
          if (role === "user") expect(responses).toHaveLength(before.length);
        }
      }),
    );
  });
});

describe("thought signatures", () => {
  const messages = [
    user(text("a")),
    model(call("c1", "f"), call("c2", "f")),
    user(result("c1", "x"), result("c2", "y")),
    model(call("c3", "f", "{}", { signature: "own" })),
    user(result("c3", "z")),
  ];
  const signatures = (target: Partial<BackendTarget>): unknown[] =>
    encode({ messages }, target).body.contents.flatMap(({ parts = [] }) =>
      parts.flatMap((part) => (part.functionCall === undefined ? [] : [part.thoughtSignature])),
    );

  const cases: [name: string, target: Partial<BackendTarget>, expected: unknown[]][] = [
    ["unknown on a new model", { model: MODERN }, [SKIP_VALIDATION, undefined, "own"]],
    ["newest alias", { model: "gemini-flash-latest" }, [SKIP_VALIDATION, undefined, "own"]],
    ["remembered", { model: MODERN, signatureOf: (id) => `of ${id}` }, ["of c1", "of c2", "own"]],
    [
      "partly remembered",
      { model: MODERN, signatureOf: (id) => (id === "c2" ? "s" : undefined) },
      [SKIP_VALIDATION, "s", "own"],
    ],
    ["2.5", { model: SECOND }, [undefined, undefined, "own"]],
    [
      "models without thoughts",
      { model: "gemini-2.0-flash", signatureOf: () => "s" },
      [undefined, undefined, undefined],
    ],
    ["Gemma", { model: "gemma-3-4b-it" }, [undefined, undefined, undefined]],
  ];
  test.each(cases)("%s", (_name, target, expected) => {
    expect(signatures(target)).toEqual(expected);
  });

  test("what was decoded is sent back unchanged", () => {
    const parts = [
      { text: "hm", thought: true, thoughtSignature: "T" },
      { text: "I look." },
      { functionCall: { id: "x1", name: "f", args: { a: 1 } }, thoughtSignature: "S" },
      { functionCall: { id: "x2", name: "f", args: {} } },
    ];
    const answer = decodeResponse({ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] });
    const { body } = encode({ messages: [user(text("a")), model(...answer.parts)] }, { model: MODERN });
    expect(body.contents[1]?.parts).toEqual(parts);
  });
});

describe("tools", () => {
  const f: NeutralTool = {
    kind: "function",
    name: "f",
    description: "d",
    parameters: { type: "object", properties: { a: { const: "x" } }, additionalProperties: false },
  };
  const g: NeutralTool = { kind: "function", name: "g", parameters: { type: "object", properties: {} } };
  const search: NeutralTool = { kind: "web-search", name: "web_search", origin: { protocol: "messages", value: {} } };

  test("declarations", () => {
    const { body } = encode({ tools: [f, g] });
    const expected: Tool[] = [
      {
        functionDeclarations: [
          {
            name: "f",
            description: "d",
            parametersJsonSchema: {
              type: "object",
              properties: { a: { type: "string", enum: ["x"] } },
              additionalProperties: false,
            },
          },
          { name: "g", description: "" },
        ],
      },
    ];
    expect(body.tools).toEqual(expected);
    expect(body.toolConfig).toBeUndefined();
  });

  const { AUTO, ANY, NONE } = FunctionCallingConfigMode;
  const choices: [ToolChoice, ToolConfig["functionCallingConfig"]][] = [
    [{ type: "auto" }, { mode: AUTO }],
    [{ type: "none" }, { mode: NONE }],
    [{ type: "required" }, { mode: ANY }],
    [
      { type: "tool", name: "g" },
      { mode: ANY, allowedFunctionNames: ["g"] },
    ],
    [
      { type: "allowed", mode: "required", names: ["f", "g"] },
      { mode: ANY, allowedFunctionNames: ["f", "g"] },
    ],
    [{ type: "allowed", mode: "auto", names: ["g"] }, { mode: AUTO }],
  ];
  test.each(choices)("choice %j", (toolChoice, expected) => {
    const { body } = encode({ tools: [f, g], toolChoice });
    expect(body.toolConfig).toEqual({ functionCallingConfig: expected as NonNullable<typeof expected> });
    const names = body.tools?.flatMap((tool) => ("functionDeclarations" in tool ? tool.functionDeclarations : []));
    expect(names?.map((entry) => entry?.name)).toEqual(
      toolChoice.type === "allowed" && toolChoice.mode === "auto" ? ["g"] : ["f", "g"],
    );
  });

  test("a choice of a tool that is not there is refused", () => {
    expect(refusalOf(() => encode({ tools: [f], toolChoice: { type: "tool", name: "h" } })).param).toBe("tool_choice");
  });

  test("strict functions are validated where the model can", () => {
    const tools = [{ ...f, strict: true } as NeutralTool];
    const validated = { functionCallingConfig: { mode: FunctionCallingConfigMode.VALIDATED } };
    expect(encode({ tools }, { model: SECOND }).body.toolConfig).toEqual(validated);
    expect(encode({ tools, toolChoice: { type: "auto" } }, { model: MODERN }).body.toolConfig).toEqual(validated);
    expect(encode({ tools, toolChoice: { type: "required" } }, { model: MODERN }).body.toolConfig).toEqual({
      functionCallingConfig: { mode: ANY },
    });
    const old = encode({ tools });
    expect(old.body.toolConfig).toBeUndefined();
    expect(old.dropped).toEqual(["strict"]);
  });

  test("web search", () => {
    const { body, dropped } = encode({
      tools: [{ ...search, maxUses: 3, userLocation: { city: "Ulm" } } as NeutralTool],
    });
    expect(body.tools).toEqual([{ googleSearch: {} }]);
    expect(body.toolConfig).toBeUndefined();
    expect(dropped).toEqual(["max_uses of web search", "user_location of web search"]);
    expect(encode({ tools: [search], toolChoice: { type: "none" } }).body.tools).toBeUndefined();
    expect(encode({ tools: [search], toolChoice: { type: "required" } }).dropped).toEqual(["tool_choice"]);
    for (const domains of [{ allowedDomains: ["a.test"] }, { blockedDomains: ["a.test"] }]) {
      expect(refusalOf(() => encode({ tools: [{ ...search, ...domains } as NeutralTool] })).param).toBe("tools[0]");
    }
  });

  test("web search beside functions: newer models only", () => {
    const { body } = encode({ tools: [f, search] }, { model: MODERN });
    expect(body.tools).toHaveLength(2);
    expect(body.toolConfig).toEqual({ includeServerSideToolInvocations: true });
    expect(refusalOf(() => encode({ tools: [f, search] }, { model: SECOND })).param).toBe("tools");
    expect(encode({ tools: [f, search], toolChoice: { type: "none" } }, { model: SECOND }).body.tools).toHaveLength(1);
  });

  test("tools that cannot be had are refused by name", () => {
    const hosted: NeutralTool = {
      kind: "hosted",
      name: "code_interpreter",
      origin: { protocol: "responses", value: {} },
    };
    const error = refusalOf(() => encode({ tools: [f, hosted] }));
    expect(error.status).toBe(400);
    expect(error.param).toBe("tools[1]");
    expect(error.message).toContain("code_interpreter");
    for (const name of ["", "1a", "a b", "-a", "a".repeat(129)]) {
      expect(refusalOf(() => encode({ tools: [{ kind: "function", name }] })).param).toBe("tools[0].name");
    }
    expect(() => encode({ tools: [{ kind: "function", name: "_a.b:c-d9" }] })).not.toThrow();
  });

  test("a free-form tool is a function with one text", () => {
    const format = { type: "grammar", syntax: "lark", definition: "start: x" };
    const { body } = encode({ tools: [{ kind: "custom", name: "patch", description: "Patches.", format }] });
    const [tool] = body.tools ?? [];
    const [declaration] = (tool as Extract<Tool, { functionDeclarations?: unknown }>).functionDeclarations ?? [];
    expect(declaration?.parametersJsonSchema).toMatchObject({ required: ["input"] });
    expect(declaration?.description).toBe(`Patches.\n\nFormat: ${JSON.stringify(format)}`);
  });

  test("parallel calls cannot be forbidden", () => {
    expect(encode({ tools: [f], parallelToolCalls: false }).dropped).toEqual(["parallel_tool_calls"]);
  });
});

describe("settings", () => {
  test("sampling and limits", () => {
    const { body, dropped } = encode(
      {
        sampling: { temperature: 0.5, topP: 0.9, topK: 40, seed: 7, stop: ["a", "", "b"], choices: 1 },
        maxOutputTokens: 100,
      },
      { maxOutputTokens: 8192 },
    );
    const expected: GenerationConfig = {
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      seed: 7,
      stopSequences: ["a", "b"],
      maxOutputTokens: 100,
    };
    expect(body.generationConfig).toEqual(expected);
    expect(dropped).toEqual([]);
    expect(encode({ maxOutputTokens: 9000 }, { maxOutputTokens: 8192 })).toMatchObject({
      body: { generationConfig: { maxOutputTokens: 8192 } },
      dropped: ["max_tokens"],
    });
    expect(encode({ sampling: { seed: 2 ** 40 } }).dropped).toEqual(["seed"]);
  });

  test("what models refuse is left out and listed", () => {
    const { body, dropped } = encode({
      sampling: { frequencyPenalty: 1, presencePenalty: 1, logprobs: true, topLogprobs: 2, logitBias: {} },
      verbosity: "low",
      user: "u",
      metadata: {},
      promptCacheKey: "k",
      extensions: { service_tier: "flex" },
    });
    expect(body.generationConfig).toBeUndefined();
    expect(dropped).toEqual([
      "frequency_penalty",
      "presence_penalty",
      "logprobs",
      "logit_bias",
      "verbosity",
      "user",
      "metadata",
      "prompt_cache_key",
      "service_tier",
    ]);
  });

  test("several choices and too many stop sequences are refused", () => {
    expect(refusalOf(() => encode({ sampling: { choices: 2 } })).param).toBe("n");
    expect(refusalOf(() => encode({ sampling: { stop: ["1", "2", "3", "4", "5", "6"] } })).param).toBe("stop");
  });

  const schema = { type: "object", properties: { a: { const: 1 } }, required: ["a"] };
  test("JSON answers", () => {
    expect(encode({ responseFormat: { type: "json" } }).body.generationConfig).toEqual({
      responseMimeType: "application/json",
    });
    expect(encode({ responseFormat: { type: "json-schema", name: "n", schema } }).body.generationConfig).toEqual({
      responseMimeType: "application/json",
      responseJsonSchema: { type: "object", properties: { a: { type: "number", enum: [1] } }, required: ["a"] },
    });
    expect(encode({ responseFormat: { type: "text" } }).body.generationConfig).toBeUndefined();
  });

  test("JSON answers in words: older models with tools, and Gemma", () => {
    const tools: NeutralTool[] = [{ kind: "function", name: "f" }];
    const responseFormat = { type: "json-schema", name: "n", schema } as const;
    for (const [model, isNative] of [
      [MODERN, true],
      ["gemini-2.0-flash", false],
      ["gemma-3-4b-it", false],
    ] as const) {
      const { body, dropped } = encode({ tools, responseFormat, reasoning: { visible: false } }, { model });
      expect(body.generationConfig?.responseJsonSchema !== undefined).toBe(isNative);
      expect(dropped).toEqual(isNative ? [] : ["response_format"]);
      expect(JSON.stringify(body)).toContain(isNative ? "responseJsonSchema" : "Answer with JSON only");
    }
    expect(encode({ responseFormat: { type: "json" } }, { model: "gemma-3-4b-it" }).dropped).toEqual([
      "response_format",
    ]);
  });

  test("thinking stands beside the rest", () => {
    const { body } = encode({ reasoning: { effort: "low" }, sampling: { topK: 1 } }, { model: MODERN });
    const expected: GenerationConfig = {
      topK: 1,
      thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
    };
    expect(body.generationConfig).toEqual(expected);
  });
});
