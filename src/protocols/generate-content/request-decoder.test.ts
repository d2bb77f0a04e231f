// Requests of Gemini clients -> the neutral model, in all the spellings that Google's JSON has; and back again.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { wrapSeal } from "./foreign-signature.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeRequest } from "./request-encoder.ts";

const user = (...parts: JsonObject[]) => ({ role: "user", parts });
const HELLO = user({ text: "hi" });
const decode = (more: JsonObject) => decodeRequest({ contents: [HELLO], ...more });

function refusal(body: JsonObject): GatewayError {
  try {
    decodeRequest(body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("contents", () => {
  test("parts of every kind", () => {
    const { messages } = decodeRequest({
      contents: [
        user(
          { text: "look" },
          { inlineData: { mimeType: "image/png", data: "-_8" } },
          { inlineData: { mimeType: "application/pdf", data: "QUJD" } },
          { inlineData: { mimeType: "audio/wav", data: "QUJD" } },
          { fileData: { mimeType: "video/mp4", fileUri: "https://h/a.mp4" } },
          { executableCode: { code: "1" } },
        ),
        {
          role: "model",
          parts: [
            { text: "hm", thought: true, thoughtSignature: "b3du" },
            { text: "I look", thoughtSignature: "dGV4dA==" },
            { functionCall: { id: "c1", name: "f", args: { a: 1 } }, thoughtSignature: "Y2FsbA==" },
          ],
        },
        user({ functionResponse: { id: "c1", name: "f", response: { output: "sun" } } }),
      ],
    });
    expect(messages).toEqual([
      {
        role: "user",
        parts: [
          { type: "text", text: "look" },
          { type: "image", source: { kind: "base64", mediaType: "image/png", data: "+/8=" } },
          { type: "document", source: { kind: "base64", mediaType: "application/pdf", data: "QUJD" } },
          { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "QUJD" } },
          { type: "video", source: { kind: "url", url: "https://h/a.mp4", mediaType: "video/mp4" } },
          { type: "opaque", protocol: "generate-content", value: { executableCode: { code: "1" } } },
        ],
      },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "hm", signature: "b3du", origin: "generate-content" },
          { type: "text", text: "I look", signature: "dGV4dA==" },
          { type: "tool-call", id: "c1", name: "f", arguments: '{"a":1}', signature: "Y2FsbA==" },
        ],
      },
      {
        role: "user",
        parts: [{ type: "tool-result", callId: "c1", name: "f", parts: [{ type: "text", text: "sun" }] }],
      },
    ]);
  });

  test("in snake_case, with one object where a list is expected, and without roles", () => {
    const camel = decodeRequest({
      contents: [user({ text: "a" }, { inlineData: { mimeType: "image/png", data: "QUJD" } })],
      systemInstruction: { parts: [{ text: "s" }] },
      tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "OBJECT" } }] }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      generationConfig: { maxOutputTokens: 5, topK: 3, thinkingConfig: { includeThoughts: true, thinkingBudget: 7 } },
    });
    const snake = decodeRequest({
      contents: { parts: [{ text: "a" }, { inline_data: { mime_type: "image/png", data: "QUJD" } }] },
      system_instruction: { parts: { text: "s" } },
      tools: { function_declarations: { name: "f", parameters: { type: "OBJECT" } } },
      tool_config: { function_calling_config: { mode: "any", allowed_function_names: "f" } },
      generation_config: {
        max_output_tokens: 5,
        top_k: 3,
        thinking_config: { include_thoughts: true, thinking_budget: 7 },
      },
    });
    expect({ ...snake, origin: camel.origin }).toEqual(camel);
    expect(snake.extensions).toEqual({});
  });

  test.each([
    ["a text", "s"],
    ["a content", { role: "system", parts: [{ text: "s" }] }],
    ["a part", { text: "s" }],
  ])("instructions may be %s", (_, systemInstruction) => {
    expect(decode({ systemInstruction }).system).toEqual([{ type: "text", text: "s" }]);
  });

  test("results belong to calls by their id, else by their name, and ids that are made stay the same", () => {
    const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id && { id }) } });
    const result = (name: string, id?: string) => ({ functionResponse: { name, response: {}, ...(id && { id }) } });
    const contents = [
      HELLO,
      { role: "model", parts: [call("a"), call("b"), call("a"), call("c", "own")] },
      user(result("b"), result("a"), result("a"), result("c", "own"), result("lost")),
    ];
    const idsOf = (list: JsonObject[]) =>
      decodeRequest({ contents: list }).messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === "tool-call" ? part.id : part.type === "tool-result" ? part.callId : [])),
      );
    const ids = ["call_0", "call_1", "call_2", "own", "call_1", "call_0", "call_2", "own", "call_3"];
    expect(idsOf(contents)).toEqual(ids);
    expect(idsOf([...contents, { role: "model", parts: [call("a")] }])).toEqual([...ids, "call_4"]);
  });

  test.each<[string, unknown, object]>([
    ["output", { output: "x" }, { parts: [{ type: "text", text: "x" }] }],
    ["result", { result: { a: 1 } }, { parts: [{ type: "text", text: '{"a":1}' }] }],
    ["error", { error: "gone" }, { isError: true, parts: [{ type: "text", text: "gone" }] }],
    ["more", { output: "x", error: "y" }, { parts: [{ type: "text", text: '{"output":"x","error":"y"}' }] }],
    ["nothing", undefined, { parts: [{ type: "text", text: "" }] }],
  ])("the result of a function: %s", (_, response, expected) => {
    const { messages } = decodeRequest({ contents: [user({ functionResponse: { id: "c", name: "f", response } })] });
    expect(messages[0]?.parts[0]).toEqual({ type: "tool-result", callId: "c", name: "f", ...expected } as never);
  });

  test("pictures stand in results", () => {
    const parts = [{ inlineData: { mimeType: "image/png", data: "QUJD" } }];
    const { messages } = decodeRequest({ contents: [user({ functionResponse: { id: "c", name: "f", parts } })] });
    expect(messages[0]?.parts[0]).toMatchObject({ parts: [{ type: "image" }] });
  });

  test("a proof of another vendor comes back as that vendor's, in both alphabets of base64", () => {
    const seal = { origin: "messages", signature: "sig~~~???" } as const;
    const signature = wrapSeal(seal) as string;
    for (const thoughtSignature of [
      signature,
      signature.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
    ]) {
      const parts = [{ text: "hm", thought: true, thoughtSignature }];
      const { messages } = decodeRequest({ contents: [{ role: "model", parts }, HELLO] });
      expect(messages[0]?.parts).toEqual([{ type: "reasoning", text: "hm", ...seal }]);
    }
  });
});

describe("tools", () => {
  const modeOf = (functionCallingConfig: JsonObject) => decode({ toolConfig: { functionCallingConfig } }).toolChoice;

  test("the choice among them", () => {
    expect(modeOf({})).toBeUndefined();
    expect(modeOf({ mode: "AUTO" })).toEqual({ type: "auto" });
    expect(modeOf({ mode: "NONE" })).toEqual({ type: "none" });
    expect(modeOf({ mode: "ANY" })).toEqual({ type: "required" });
    expect(modeOf({ mode: "ANY", allowedFunctionNames: ["f"] })).toEqual({ type: "tool", name: "f" });
    const names = ["f", "g"];
    const allowed = { type: "allowed", names } as const;
    expect(modeOf({ mode: "ANY", allowedFunctionNames: names })).toEqual({ ...allowed, mode: "required" });
    expect(modeOf({ mode: "VALIDATED", allowedFunctionNames: names })).toEqual({ ...allowed, mode: "auto" });
  });

  test("declarations in JSON Schema and in Google's own form; VALIDATED makes them strict", () => {
    const parameters = {
      type: "OBJECT",
      properties: {
        at: { type: "STRING", nullable: true, format: "date-time" },
        many: { type: "ARRAY", minItems: "2" },
      },
      propertyOrdering: ["at"],
    };
    const parametersJsonSchema = { type: "object", $defs: { a: {} } };
    const { tools } = decode({
      tools: [
        {
          functionDeclarations: [
            { name: "f", description: "d", parameters },
            { name: "g", parametersJsonSchema },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "VALIDATED" } },
    });
    expect(tools).toEqual([
      {
        kind: "function",
        name: "f",
        description: "d",
        parameters: {
          type: "object",
          properties: { at: { type: ["string", "null"], format: "date-time" }, many: { type: "array", minItems: 2 } },
        },
        strict: true,
      },
      { kind: "function", name: "g", parameters: parametersJsonSchema, strict: true },
    ]);
  });

  test("searches and tools that Google runs", () => {
    const search = { googleSearch: {} };
    const { tools } = decode({ tools: [search, { url_context: {}, codeExecution: {} }] });
    expect(tools.map(({ kind, name }) => [kind, name])).toEqual([
      ["web-search", "web_search"],
      ["hosted", "urlContext"],
      ["hosted", "codeExecution"],
    ]);
  });
});

describe("settings", () => {
  test("sampling, limits and forms", () => {
    const request = decode({
      generationConfig: {
        ...{
          temperature: 0.5,
          topP: 0.9,
          topK: 3,
          candidateCount: 2,
          seed: 7,
          presencePenalty: 1,
          frequencyPenalty: 2,
        },
        ...{ maxOutputTokens: 9, stopSequences: ["a"], responseMimeType: "application/json" },
        responseSchema: { type: "STRING", enum: ["a"], nullable: true },
      },
    });
    expect(request.sampling).toEqual({
      ...{ temperature: 0.5, topP: 0.9, topK: 3, choices: 2, seed: 7, presencePenalty: 1, frequencyPenalty: 2 },
      stop: ["a"],
    });
    expect(request.maxOutputTokens).toBe(9);
    const schema = { type: ["string", "null"], enum: ["a", null] };
    expect(request.responseFormat).toEqual({ type: "json-schema", name: "output", schema });
    expect(decode({ generationConfig: { responseMimeType: "application/json" } }).responseFormat).toEqual({
      type: "json",
    });
    expect(decode({ generationConfig: { responseMimeType: "text/plain" } }).responseFormat).toBeUndefined();
  });

  test.each<[JsonObject | undefined, object]>([
    [undefined, { visible: false }],
    [{ includeThoughts: true }, { visible: true }],
    [{ thinkingBudget: 0 }, { visible: false, enabled: false }],
    [{ thinkingBudget: -1 }, { visible: false, enabled: true }],
    [{ thinkingBudget: 99 }, { visible: false, enabled: true, budgetTokens: 99 }],
    [{ thinkingLevel: "HIGH" }, { visible: false, effort: "high" }],
    [{ thinkingLevel: "THINKING_LEVEL_UNSPECIFIED" }, { visible: false }],
  ])("%j", (thinkingConfig, reasoning) => {
    expect(decode({ generationConfig: { thinkingConfig } }).reasoning).toEqual(reasoning);
  });

  test("what no other format has is listed", () => {
    const { extensions } = decode({
      ...{ safetySettings: [{}], serviceTier: "flex", labels: { a: "b" }, future_member: 1, cachedContent: "" },
      contents: [user({ text: "a", videoMetadata: { fps: 1 } })],
      tools: [{ functionDeclarations: [{ name: "f", response: {}, behavior: "BLOCKING" }] }],
      toolConfig: { retrievalConfig: { languageCode: "de" } },
      generationConfig: { responseLogprobs: true, speech_config: {}, responseModalities: ["TEXT", "AUDIO"] },
    });
    expect(Object.keys(extensions).toSorted()).toEqual([
      ...["functionDeclarations.behavior", "functionDeclarations.response", "future_member"],
      ...["generationConfig.responseLogprobs", "generationConfig.responseModalities", "generationConfig.speechConfig"],
      ...["labels", "parts.videoMetadata", "safetySettings", "serviceTier", "toolConfig.retrievalConfig"],
    ]);
  });

  test.each<[string, JsonObject]>([
    ["cachedContent", { cachedContent: "cachedContents/1" }],
    ["generationConfig.responseModalities", { generationConfig: { responseModalities: ["IMAGE"] } }],
    ["generationConfig.responseMimeType", { generationConfig: { responseMimeType: "text/x.enum" } }],
  ])("%s would mean something else without it", (param, more) => {
    expect(refusal({ contents: [HELLO], ...more })).toMatchObject({ status: 400, param });
  });
});

test("what is read is said again to a Gemini backend", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  const body = {
    contents: [
      HELLO,
      {
        role: "model",
        parts: [
          { text: "hm", thought: true, thoughtSignature: "dGhvdWdodA==" },
          { text: "I look" },
          { functionCall: { id: "c1", name: "f", args: { a: 1 } }, thoughtSignature: "Y2FsbA==" },
          { functionCall: { id: "c2", name: "f", args: {} } },
        ],
      },
      user(
        { functionResponse: { id: "c1", name: "f", response: { output: "sun" } } },
        { functionResponse: { id: "c2", name: "f", response: { error: "gone" } } },
      ),
    ],
    systemInstruction: { parts: [{ text: "s" }] },
    tools: [{ functionDeclarations: [{ name: "f", description: "d", parametersJsonSchema: schema }] }],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
    generationConfig: {
      ...{ temperature: 0.5, topP: 0.9, topK: 3, seed: 7, stopSequences: ["a"], maxOutputTokens: 9 },
      thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" },
    },
  };
  const encoded = encodeRequest(decodeRequest(body), { model: "gemini-3-pro", kind: BACKEND_KINDS.gemini });
  expect(encoded).toEqual({ body, dropped: [] });
});
