import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Content, type FunctionDeclaration, GoogleGenAI } from "@google/genai";
import { type StrictGenerateContentOptions, startStrictGenerateContent } from "./generate-content.ts";
import { testRefusals } from "./refused-bodies.ts";
import { answer, call, failure, type JsonObject, type Script, text, thinking } from "./script.ts";
import type { StrictBackend } from "./server.ts";

async function clientOf(script: Script, options?: StrictGenerateContentOptions) {
  const backend = await startStrictGenerateContent(script, options);
  const httpOptions = { baseUrl: backend.url, apiVersion: "v1beta" };
  const client = new GoogleGenAI({ apiKey: "sekret", httpOptions });
  return { backend, client, [Symbol.dispose]: () => backend.stop() };
}

const ask = { model: "gemini-3-pro", contents: "hi" };
const shown = { ...ask, config: { thinkingConfig: { includeThoughts: true } } };

describe("the official client reads", () => {
  const script = {
    ...answer(thinking("hmm"), text("Hello, wörld 🎉!"), call("get", { city: "Köln" }), call("ping")),
    usage: { input: 20, cacheRead: 8, output: 9, reasoning: 3 },
  };
  const usageMetadata = {
    promptTokenCount: 20,
    cachedContentTokenCount: 8,
    candidatesTokenCount: 6,
    thoughtsTokenCount: 3,
    totalTokenCount: 29,
  };

  test("a whole answer", async () => {
    using bed = await clientOf([script]);
    const response = await bed.client.models.generateContent(shown);
    expect(response.text).toBe("Hello, wörld 🎉!");
    expect(response.usageMetadata).toMatchObject(usageMetadata);
    expect(response.candidates?.[0]).toMatchObject({
      finishReason: "STOP",
      content: {
        role: "model",
        parts: [
          { text: "hmm", thought: true },
          { text: "Hello, wörld 🎉!" },
          { functionCall: { name: "get", args: { city: "Köln" } }, thoughtSignature: expect.any(String) },
          { functionCall: { name: "ping", args: {} } },
        ],
      },
    } as never);
    expect(response.candidates?.[0]?.content?.parts?.[3]).not.toHaveProperty("thoughtSignature");
  });

  test.each([false, true])("a stream, lines end with CRLF: %s", async (crlf) => {
    using bed = await clientOf([script], { crlf });
    let seen = "";
    let thoughts = "";
    const names: unknown[] = [];
    let last: unknown;
    for await (const chunk of await bed.client.models.generateContentStream(shown)) {
      for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
        if (part.functionCall) names.push(part.functionCall.name);
        else if (part.thought) thoughts += part.text;
        else seen += part.text;
      }
      last = chunk;
    }
    expect({ seen, thoughts, names }).toEqual({ seen: "Hello, wörld 🎉!", thoughts: "hmm", names: ["get", "ping"] });
    expect(last).toMatchObject({ usageMetadata, candidates: [{ finishReason: "STOP" }] });
  });

  test("a stream that nobody asked to be SSE is an array", async () => {
    using bed = await clientOf([script]);
    const url = `${bed.backend.url}/v1beta/models/gemini-3-pro:streamGenerateContent`;
    const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "hi" }] }] });
    const headers = { "content-type": "application/json", "x-goog-api-key": "sekret" };
    const chunks = await (await fetch(url, { method: "POST", headers, body })).json();
    expect(Array.isArray(chunks)).toBe(true);
  });

  test("thoughts only where they are asked for; a blocked prompt; the limit; citations", async () => {
    const citation = { url: "https://a.example", title: "A", citedText: "x", start: 0, end: 1 };
    using bed = await clientOf([
      answer(thinking("hmm"), text("x")),
      { ...answer(), finish: "content-filter" },
      { ...answer(text("cut")), finish: "length" },
      answer(text("x", [citation])),
    ]);
    const create = () => bed.client.models.generateContent(ask);
    expect((await create()).candidates?.[0]?.content?.parts).toMatchObject([
      { text: "x", thoughtSignature: expect.any(String) },
    ] as never);
    expect(await create()).toMatchObject({ promptFeedback: { blockReason: "SAFETY" } } as never);
    expect((await create()).candidates?.[0]?.finishReason as string).toBe("MAX_TOKENS");
    expect((await create()).candidates?.[0]?.groundingMetadata?.groundingChunks?.[0]?.web?.uri).toBe(
      "https://a.example",
    );
  });

  test("errors before, inside and instead of the end of a stream", async () => {
    const broken = { ...answer(text("Hello there")), breakAfterFrames: 1 };
    using bed = await clientOf([
      failure(400, "no"),
      { ...broken, breakWith: { status: 500, message: "gone" } },
      { ...broken, breakWith: "cut" },
    ]);
    const read = async () => {
      let seen = "";
      try {
        for await (const chunk of await bed.client.models.generateContentStream(ask)) seen += chunk.text ?? "";
        return { seen, error: undefined };
      } catch (error) {
        return { seen, error };
      }
    };
    expect(await read()).toMatchObject({ error: { status: 400 } });
    expect(await read()).toMatchObject({ seen: "Hello", error: { message: expect.stringContaining("gone") } });
    const cut = await read();
    expect(cut.seen).toBe("Hello");
    expect(cut.error).toBeInstanceOf(Error);
  });

  test("models", async () => {
    using bed = await clientOf([]);
    const names: unknown[] = [];
    for await (const { name } of await bed.client.models.list()) names.push(name);
    expect(names).toEqual(["models/gemini-2.5-flash", "models/gemini-3-pro"]);
  });
});

const functionDeclarations: FunctionDeclaration[] = [{ name: "get" }, { name: "ping" }];

describe("signatures", () => {
  async function secondTurn(change: (parts: JsonObject[]) => JsonObject[]) {
    using bed = await clientOf([answer(thinking("hmm"), call("get"), call("ping")), answer(text("done"))]);
    const config = { tools: [{ functionDeclarations }] };
    const first = await bed.client.models.generateContent({ ...ask, config });
    const parts = (first.candidates?.[0]?.content?.parts ?? []) as JsonObject[];
    const responses = parts.map((part) => {
      const { id, name } = part.functionCall as { id: string; name: string };
      return { functionResponse: { id, name, response: { output: "r" } } };
    });
    const contents = [
      { role: "user", parts: [{ text: "hi" }] },
      { role: "model", parts: change(parts) },
      { role: "user", parts: responses },
    ];
    await bed.client.models.generateContent({ ...ask, config, contents: contents as Content[] }).catch(() => undefined);
    return bed.backend.refusals;
  }
  const changed = (at: number, change: JsonObject) => (parts: JsonObject[]) =>
    parts.map((part, index) => (index === at ? { ...part, ...change } : part));

  test.each([
    ["its own, unaltered", (parts: JsonObject[]) => parts],
    ["the documented way around", changed(0, { thoughtSignature: "skip_thought_signature_validator" })],
  ])("accepts %s", async (_what, change) => {
    expect(await secondTurn(change)).toEqual([]);
  });

  test.each([
    ["none", changed(0, { thoughtSignature: undefined }), "contents[1].parts[0]"],
    ["a foreign one", changed(0, { thoughtSignature: "AAAA" }), "contents[1].parts[0].thought_signature"],
    ["no base64", changed(0, { thoughtSignature: "sig!" }), "contents[1].parts[0].thoughtSignature"],
    ["the second call first", (parts: JsonObject[]) => [parts[1] ?? {}, parts[0] ?? {}], "contents[1].parts[0]"],
  ])("refuses %s", async (_what, change, field) => {
    const refusals = await secondTurn(change);
    expect(refusals[0]).toStartWith(`${field}:`);
  });
});

let backend: StrictBackend;
beforeAll(async () => {
  backend = await startStrictGenerateContent(() => answer(text("ok")));
});
afterAll(() => backend.stop());

const user = { role: "user", parts: [{ text: "hi" }] };
const called = (...names: string[]) => ({
  role: "model",
  parts: names.map((name) => ({ functionCall: { name, args: {} } })),
});
const responded = (...names: string[]) => ({
  role: "user",
  parts: names.map((name) => ({ functionResponse: { name, response: {} } })),
});
const declared = (parameters: JsonObject) => ({ tools: [{ functionDeclarations: [{ name: "f", parameters }] }] });
const config = (generationConfig: JsonObject) => ({ generationConfig });

testRefusals({
  backend: () => backend,
  path: "/v1beta/models/gemini-2.5-flash:generateContent",
  headers: { "x-goog-api-key": "sekret" },
  good: { contents: [user] },
  cases: [
    ["an unknown member", { messages: [] }, "messages"],
    ["no contents", { contents: [] }, "contents"],
    ["a tool role", { contents: [{ role: "tool", parts: [{ text: "x" }] }] }, "contents[0].role"],
    ["an assistant role", { contents: [user, { role: "assistant", parts: [{ text: "x" }] }] }, "contents[1].role"],
    ["no parts", { contents: [{ role: "user", parts: [] }] }, "contents[0].parts"],
    ["empty text", { contents: [{ role: "user", parts: [{ text: "" }] }] }, "contents[0].parts[0].text"],
    ["an empty part", { contents: [{ role: "user", parts: [{}] }] }, "contents[0].parts[0]"],
    [
      "two kinds in a part",
      {
        contents: [
          { role: "user", parts: [{ text: "x", inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] },
        ],
      },
      "contents[0].parts[0]",
    ],
    [
      "a data URL",
      {
        contents: [
          { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "data:image/png;base64,AAAA" } }] },
        ],
      },
      "contents[0].parts[0].inlineData.data",
    ],
    [
      "arguments as text",
      { contents: [user, { role: "model", parts: [{ functionCall: { name: "f", args: "{}" } }] }, responded("f")] },
      "contents[1].parts[0].functionCall.args",
    ],
    [
      "a response as text",
      { contents: [user, called("f"), { role: "user", parts: [{ functionResponse: { name: "f", response: "r" } }] }] },
      "contents[2].parts[0].functionResponse.response",
    ],
    ["one of two responses", { contents: [user, called("f", "g"), responded("f")] }, "contents[2].parts"],
    [
      "responses in another order",
      { contents: [user, called("f", "g"), responded("g", "f")] },
      "contents[2].parts[0].function_response.name",
    ],
    ["a call without a response", { contents: [user, called("f"), user] }, "contents[1]"],
    ["a response without a call", { contents: [user, responded("f")] }, "contents[1].parts"],
    [
      "a call right behind the model",
      { contents: [user, { role: "model", parts: [{ text: "x" }] }, called("f"), responded("f")] },
      "contents[2]",
    ],
    [
      "a foreign signature",
      { contents: [user, { role: "model", parts: [{ text: "x", thoughtSignature: "AAAA" }] }, user] },
      "contents[1].parts[0].thought_signature",
    ],
    [
      "a function name",
      { tools: [{ functionDeclarations: [{ name: "1f" }] }] },
      "tools[0].functionDeclarations[0].name",
    ],
    ["two functions of one name", { tools: [{ functionDeclarations: [{ name: "f" }, { name: "f" }] }] }, "tools"],
    ["a lower-case type", declared({ type: "object" }), "tools[0].functionDeclarations[0].parameters.type"],
    [
      "additionalProperties",
      declared({ type: "OBJECT", additionalProperties: false }),
      "tools[0].functionDeclarations[0].parameters.additionalProperties",
    ],
    ["an array without items", declared({ type: "ARRAY" }), "tools[0].functionDeclarations[0].parameters.items"],
    [
      "an enum of numbers",
      declared({ type: "INTEGER", enum: ["1"] }),
      "tools[0].functionDeclarations[0].parameters.enum",
    ],
    [
      "an object without properties",
      declared({ type: "OBJECT", properties: {} }),
      "tools[0].functionDeclarations[0].parameters.properties",
    ],
    [
      "both kinds of parameters",
      { tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "STRING" }, parametersJsonSchema: {} }] }] },
      "tools[0].functionDeclarations[0]",
    ],
    [
      "an unknown allowed function",
      {
        tools: [{ functionDeclarations: [{ name: "f" }] }],
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["g"] } },
      },
      "toolConfig.functionCallingConfig.allowedFunctionNames",
    ],
    [
      "allowed functions with AUTO",
      {
        tools: [{ functionDeclarations: [{ name: "f" }] }],
        toolConfig: { functionCallingConfig: { mode: "AUTO", allowedFunctionNames: ["f"] } },
      },
      "toolConfig.functionCallingConfig.allowedFunctionNames",
    ],
    ["penalties of 2.5", config({ presencePenalty: 1 }), "generationConfig.presencePenalty"],
    [
      "a level of 2.5",
      config({ thinkingConfig: { thinkingLevel: "LOW" } }),
      "generationConfig.thinkingConfig.thinkingLevel",
    ],
    [
      "level and budget",
      config({ thinkingConfig: { thinkingLevel: "LOW", thinkingBudget: 5 } }),
      "generationConfig.thinkingConfig",
    ],
    [
      "a budget too large",
      config({ thinkingConfig: { thinkingBudget: 30_000 } }),
      "generationConfig.thinkingConfig.thinkingBudget",
    ],
    ["a schema without JSON", config({ responseJsonSchema: {} }), "generationConfig.responseMimeType"],
    [
      "const in a response schema",
      config({ responseMimeType: "application/json", responseJsonSchema: { properties: { a: { const: 1 } } } }),
      "generationConfig.responseJsonSchema.properties.a.const",
    ],
    ["six stop sequences", config({ stopSequences: ["a", "b", "c", "d", "e", "f"] }), "generationConfig.stopSequences"],
    ["max_tokens of others", { max_tokens: 5 }, "max_tokens"],
  ],
  accepted: [
    ["snake_case", { system_instruction: { parts: [{ text: "x" }] }, generation_config: { max_output_tokens: 5 } }],
    ["calls with their responses", { contents: [user, called("f", "g"), responded("f", "g")] }],
    [
      "a plain JSON schema",
      {
        tools: [
          {
            functionDeclarations: [
              { name: "f", parametersJsonSchema: { type: "object", additionalProperties: false } },
            ],
          },
        ],
      },
    ],
    [
      "an image",
      { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }] }] },
    ],
    ["no thoughts", config({ thinkingConfig: { thinkingBudget: 0 } })],
  ],
});

test("no key, an unknown model, other versions", async () => {
  const post = async (path: string, headers: Record<string, string> = { "x-goog-api-key": "sekret" }) => {
    const body = JSON.stringify({ contents: [user] });
    return (
      await fetch(backend.url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      })
    ).status;
  };
  expect(await post("/v1beta/models/gemini-2.5-flash:generateContent", {})).toBe(403);
  expect(await post("/v1beta/models/gemini-2.5-flash:generateContent?key=sekret", {})).toBe(200);
  expect(await post("/v1/models/gemini-2.5-flash:generateContent")).toBe(200);
  expect(await post("/v1beta/models/nope:generateContent")).toBe(404);
  expect(await post("/v1beta/v1beta/models/gemini-2.5-flash:generateContent")).toBe(404);
});
