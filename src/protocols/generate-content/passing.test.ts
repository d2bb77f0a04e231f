// What passes between clients and backends of this format: what is watched, changed and kept of it.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../../backends/kinds.ts";
import type { JsonObject } from "../../lib/json.ts";
import { attachmentsOf } from "./attachments.ts";
import { ContentWatch } from "./content-watch.ts";
import { estimatedCount } from "./count-tokens.ts";
import { decodeVectors, encodeTexts } from "./embed-content.ts";
import { FOREIGN_MARK, wrapSeal } from "./foreign-signature.ts";
import { contentKept } from "./kept-answers.ts";
import { contentPassThrough } from "./pass-through.ts";
import { joinAnswers, wholeAsEvent } from "./whole-as-event.ts";

const encoder = new TextEncoder();
const event = (value: unknown, end = "\n\n") => encoder.encode(`data: ${JSON.stringify(value)}${end}`);
const candidate = (text: string, more: object = {}) => ({
  candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, ...more }],
});
const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2 };

describe("a stream that passes", () => {
  function watched(chunks: readonly unknown[], choices = 1, end?: string) {
    const watch = new ContentWatch({ choices });
    for (const chunk of chunks) {
      const bytes = event(chunk, end);
      expect(watch.push(bytes)).toBe(bytes);
    }
    return { verdict: watch.verdict(), usage: watch.usage, reported: watch.reported };
  }
  const done = candidate("b", { finishReason: "STOP" });

  test.each<[string, unknown[], string]>([
    ["its last event", [candidate("a"), done], "done"],
    ["an end that says STOP in every event", [done, done], "done"],
    ["a prompt that was blocked", [{ promptFeedback: { blockReason: "SAFETY" } }], "done"],
    ["no end", [candidate("a")], "incomplete"],
    ["nothing", [], "incomplete"],
    ["a text that speaks of ends", [candidate('{"finishReason":"STOP"}')], "incomplete"],
    ["an error", [candidate("a"), { error: { code: 500, message: "x" } }], "reported"],
    ["a text that speaks of errors", [candidate('{"error":1}'), done], "done"],
  ])("with %s", (_, chunks, verdict) => {
    for (const end of ["\n\n", "\r\n\r\n"]) expect(watched(chunks, 1, end).verdict).toBe(verdict as never);
  });

  test("of several candidates ends with the last of those that came", () => {
    const second = (more: object = {}) => ({ candidates: [{ index: 1, content: { parts: [] }, ...more }] });
    const first = candidate("a", { finishReason: "STOP" });
    expect(watched([candidate("a"), second(), first], 2).verdict).toBe("incomplete");
    expect(watched([first, second({ finishReason: "STOP" })], 2).verdict).toBe("done");
    expect(watched([first], 2).verdict).toBe("done");
  });

  test("is counted by its last counts", () => {
    const counts = { ...done, usageMetadata: { ...usageMetadata, thoughtsTokenCount: 5 } };
    expect(watched([{ ...candidate("a"), usageMetadata }, counts]).usage).toEqual({
      input: { total: 3 },
      output: { total: 7, reasoning: 5 },
    });
    expect(watched([done]).usage).toBeUndefined();
  });
});

describe("a body on its way to a Gemini backend", () => {
  const adapt = (body: JsonObject, model = "gemini-3-pro", askedModel = model) =>
    contentPassThrough.adapt?.(body, { kind: BACKEND_KINDS.gemini, model, askedModel })?.members;
  const contents = (...parts: JsonObject[]) => [{ role: "model", parts }];
  const functionCall = { name: "f", args: {} };

  test("passes as it is", () => {
    expect(
      adapt({ contents: contents({ functionCall, thoughtSignature: "b3du" }, { text: "x", thought: true }) }),
    ).toBeUndefined();
  });

  test("loses the name of the model, which the path has", () => {
    expect(adapt({ model: "models/other", contents: [] })).toEqual({ model: undefined });
  });

  test("loses thoughts and signatures that the gateway made", () => {
    const foreign = wrapSeal({ origin: "messages", signature: "s" }) as string;
    const body = {
      contents: [
        ...contents({ text: "hm", thought: true, thoughtSignature: foreign }),
        ...contents(
          { functionCall, thought_signature: FOREIGN_MARK },
          { functionCall },
          { text: "x", thoughtSignature: FOREIGN_MARK },
        ),
      ],
    };
    const signed = { functionCall, thoughtSignature: "skip_thought_signature_validator" };
    expect(adapt(body)).toEqual({ contents: contents(signed, { functionCall }, { text: "x" }) });
    expect(adapt(body, "gemini-2.5-pro")).toEqual({
      contents: contents({ functionCall }, { functionCall }, { text: "x" }),
    });
  });

  test("asks a stand-in to think in its own words", () => {
    const body = { contents: [], generation_config: { top_k: 1, thinking_config: { thinking_budget: 1024 } } };
    expect(adapt(body, "gemini-3-pro", "gemini-2.5-pro")).toEqual({
      generation_config: { top_k: 1, thinkingConfig: { includeThoughts: false, thinkingLevel: "LOW" } },
    });
    expect(adapt(body, "gemini-2.5-pro")).toBeUndefined();
  });

  test("has its settings in one spelling, where a route has set some", () => {
    const body = {
      contents: [],
      generationConfig: { temperature: 0 },
      generation_config: { temperature: 1, top_k: 3 },
    };
    expect(adapt(body)).toEqual({ generationConfig: { temperature: 0, topK: 3 }, generation_config: undefined });
  });

  test.each<[string, unknown, unknown[]]>([
    ["prepend", undefined, [{ text: "P" }]],
    ["prepend", "s", [{ text: "P s" }]],
    ["prepend", { parts: [{ text: "a" }, { text: "b" }] }, [{ text: "P a" }, { text: "b" }]],
    ["append", { parts: [{ text: "a" }, { text: "b" }] }, [{ text: "a" }, { text: "b P" }]],
    ["replace", { parts: [{ text: "a" }] }, [{ text: "P" }]],
    ["prepend", { parts: [] }, [{ text: "P" }]],
    ["prepend", { text: "a" }, [{ text: "P a" }]],
  ])("%s: the operator's prompt into %j", (strategy, systemInstruction, parts) => {
    const merge = { strategy: strategy as "prepend", separator: " " };
    expect(contentPassThrough.injectPrompt?.({ systemInstruction }, "P", merge)).toEqual({
      systemInstruction: { parts },
    });
  });
});

describe("an answer that is kept", () => {
  const done = candidate("b", { finishReason: "STOP" });
  const pretty = JSON.stringify({ ...done, usageMetadata }, undefined, 2);

  test.each<[string, JsonObject, boolean]>([
    ["whole", done, true],
    ["cut off by its limit", candidate("b", { finishReason: "MAX_TOKENS" }), true],
    ["blocked", candidate("b", { finishReason: "SAFETY" }), false],
    ["without an end", candidate("b"), false],
    ["an error", { error: { code: 500 } }, false],
    ["of no candidate", { promptFeedback: { blockReason: "SAFETY" } }, false],
    ["with a call", { candidates: [{ content: { parts: [{ functionCall: {} }] }, finishReason: "STOP" }] }, true],
    [
      "with what Google ran",
      { candidates: [{ content: { parts: [{ executableCode: {} }] }, finishReason: "STOP" }] },
      false,
    ],
  ])("%s: %p", (_, answer, isKept) => {
    expect(contentKept.isWhole(answer)).toBe(isKept);
    expect(contentKept.isWholeStream(`data: ${JSON.stringify(answer)}\n\n`)).toBe(isKept);
  });

  test("becomes a stream of one event, and a stream becomes it", () => {
    expect(JSON.parse((contentKept.asStream(pretty, true) as string).slice("data: ".length))).toEqual(
      JSON.parse(pretty),
    );
    expect(wholeAsEvent(pretty)).not.toMatch(/[\r\n](?!\n?$)/);
    const stream = [candidate("a"), { ...done, usageMetadata, responseId: "r" }];
    const events = stream.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    expect(JSON.parse(contentKept.asWhole(events) as string)).toEqual({
      ...candidate("ab", { finishReason: "STOP" }),
      usageMetadata,
      responseId: "r",
    });
  });

  test("keeps thoughts, signatures and calls apart, and is not made where a call would lose digits", () => {
    const parts = [
      { text: "h", thought: true },
      { text: "m", thought: true },
      { text: "", thought: true, thoughtSignature: "s1" },
      { text: "a" },
      { text: "b", thoughtSignature: "s2" },
      { text: "c" },
      { functionCall: { name: "f", args: { a: 1 } } },
      { text: "" },
    ];
    const chunk = (part: JsonObject) => JSON.stringify({ candidates: [{ content: { parts: [part] } }] });
    expect(joinAnswers(parts.map(chunk))).toEqual({
      candidates: [
        {
          content: {
            role: "model",
            parts: [
              { text: "hm", thought: true, thoughtSignature: "s1" },
              { text: "ab", thoughtSignature: "s2" },
              { text: "c" },
              { functionCall: { name: "f", args: { a: 1 } } },
            ],
          },
        },
      ],
    });
    const long =
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":12345678901234567890}}}]}}]}';
    expect(joinAnswers([long])).toBeUndefined();
  });
});

test("files stand in turns and in results of functions", () => {
  const png = { mimeType: "image/png", data: "QUJD" };
  const found = attachmentsOf({
    contents: [
      { parts: [{ text: "a" }, { inlineData: png }, { file_data: { file_uri: "file-abc" } }] },
      {
        parts: {
          functionResponse: { parts: [{ fileData: { fileUri: "https://h/a.pdf", mimeType: "application/pdf" } }] },
        },
      },
      { parts: [{ fileData: { fileUri: "gs://bucket/a" } }, { inlineData: { mimeType: "text/csv", data: "YSxi" } }] },
    ],
  });
  expect(found.map(({ kind, place, value, param }) => [kind, place, value, param])).toEqual([
    ["data", "image", "QUJD", "contents[0].parts[1].inlineData.data"],
    ["file-id", "other", "file-abc", "contents[0].parts[2].fileData.fileUri"],
    ["link", "document", "https://h/a.pdf", "contents[1].parts.functionResponse.parts[0].fileData.fileUri"],
    ["data", "other", "YSxi", "contents[2].parts[1].inlineData.data"],
  ]);
  expect(attachmentsOf({ contents: [{ parts: [{ text: "a" }] }] })).toEqual([]);
});

test("an estimate of tokens grows with what is asked, and files count by their kind", () => {
  const tokens = (body: JsonObject) => estimatedCount(body).totalTokens as number;
  const hello = { contents: [{ parts: [{ text: "Hello there!" }] }] };
  const picture = (data: string) => ({ contents: [{ parts: [{ inlineData: { mimeType: "image/png", data } }] }] });
  expect(tokens(hello)).toBeGreaterThan(3);
  expect(tokens({ generateContentRequest: hello })).toBe(tokens(hello));
  expect(tokens({ ...hello, systemInstruction: { parts: [{ text: "Be brief." }] } })).toBeGreaterThan(tokens(hello));
  expect(tokens({ ...hello, tools: [{ functionDeclarations: [{ name: "f" }] }] })).toBeGreaterThan(tokens(hello) + 300);
  expect(tokens(picture("A".repeat(1e6)))).toBe(tokens(picture("QUJD")));
});

describe("embeddings from a backend of the OpenAI format", () => {
  const content = (...texts: string[]) => ({ parts: texts.map((text) => ({ text })) });

  test("texts, sizes, and what is lost", () => {
    const requests = [
      { content: content("a", "b"), outputDimensionality: 3, taskType: "CLUSTERING" },
      { content: content("c"), output_dimensionality: 3, title: "t" },
    ];
    expect(encodeTexts({ requests }, "m", true)).toEqual({
      body: { model: "m", input: ["a\nb", "c"], dimensions: 3 },
      dropped: [{ feature: "taskType" }, { feature: "title" }],
    });
    expect(encodeTexts({ content: content("a") }, "m", false).body).toEqual({ model: "m", input: ["a"] });
    const mixed = { requests: [{ content: content("a"), outputDimensionality: 3 }, { content: content("b") }] };
    expect(() => encodeTexts(mixed, "m", true)).toThrow("requests[1].outputDimensionality");
  });

  test("vectors in order, and answers that are none", () => {
    const data = [
      { index: 1, embedding: [2] },
      { index: 0, embedding: [1] },
    ];
    expect(decodeVectors({ data, usage: { prompt_tokens: 4 } }, 2, true)).toEqual({
      embeddings: [{ values: [1] }, { values: [2] }],
      usageMetadata: { promptTokenCount: 4 },
    });
    expect(() => decodeVectors({ data }, 3, true)).toThrow("as many embeddings");
    expect(() => decodeVectors({ data: [{ embedding: "AAAA" }] }, 1, false)).toThrow("without numbers");
  });
});
