// Streams and whole answers of generateContent backends: every kind of part and ending, what real backends get wrong, and
// that both ways of answering mean the same.

import { describe, expect, test } from "bun:test";
import { FinishReason, type GenerateContentResponse } from "@google/genai";
import fc from "fast-check";
import { collect } from "../../generation/collect.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { readEvents } from "../sse.ts";
import { decodeResponse } from "./response-decoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";

type Wire = Partial<
  Pick<GenerateContentResponse, "candidates" | "usageMetadata" | "promptFeedback" | "responseId" | "modelVersion">
>;

function decode(chunks: readonly unknown[]): GenerationEvent[] {
  const decoder = createStreamDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(JSON.stringify(chunk))), ...decoder.end()];
}

/** Checks the order that encoders rely on. */
function checkOrder(events: readonly GenerationEvent[]): void {
  const open = new Set<number>();
  let next = 0;
  expect(events.filter(({ type }) => type === "start").length).toBeLessThanOrEqual(1);
  for (const event of events) {
    if (event.type === "part-start") {
      expect(event.index).toBe(next++);
      expect([...open]).toEqual([]);
      open.add(event.index);
    } else if (event.type === "part-end") expect(open.delete(event.index)).toBe(true);
    else if (event.type === "delta" || event.type === "seal" || event.type === "citation") {
      expect(open.has(event.index)).toBe(true);
      if (event.type === "delta") expect(event.text).not.toBe("");
    }
  }
  if (events.at(-1)?.type !== "failure") expect([...open]).toEqual([]);
}

/** The parts of a complete stream. */
function partsOf(chunks: readonly unknown[]): ContentPart[] | undefined {
  const events = decode(chunks);
  checkOrder(events);
  return collect(events)?.parts;
}

const parts = (...list: JsonObject[]) => ({ candidates: [{ content: { role: "model", parts: list } }] });
const done = (finishReason = "STOP", list?: JsonObject[]) => ({
  candidates: [{ finishReason, ...(list && { content: { parts: list } }) }],
});
const functionCall = (name: string, more: JsonObject = {}) => ({ functionCall: { name, args: {}, ...more } });

describe("streams", () => {
  test("text, thoughts and usage", () => {
    const chunks: Wire[] = [
      {
        responseId: "r1",
        modelVersion: "gemini-3.1-pro",
        candidates: [{ content: { role: "model", parts: [{ text: "hm", thought: true }] }, index: 0 }],
        usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
      },
      { candidates: [{ content: { parts: [{ text: "Hel" }] } }] },
      { candidates: [{ content: { parts: [{ text: "lo" }, { text: "!" }] } }] },
      {
        candidates: [{ content: { parts: [{ text: "", thoughtSignature: "S" }] }, finishReason: FinishReason.STOP }],
      },
      {
        usageMetadata: {
          promptTokenCount: 10,
          toolUsePromptTokenCount: 5,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 3,
          thoughtsTokenCount: 2,
          totalTokenCount: 20,
        },
      },
    ];
    const events = decode(chunks);
    checkOrder(events);
    expect(events).toEqual([
      { type: "start", id: "r1", model: "gemini-3.1-pro", createdAt: 0 },
      { type: "part-start", index: 0, part: { type: "reasoning" } },
      { type: "delta", index: 0, text: "hm" },
      { type: "usage", usage: { input: { total: 10 }, output: { total: 0 } } },
      { type: "part-end", index: 0 },
      { type: "part-start", index: 1, part: { type: "text" } },
      { type: "delta", index: 1, text: "Hel" },
      { type: "delta", index: 1, text: "lo" },
      { type: "delta", index: 1, text: "!" },
      { type: "seal", index: 1, origin: "generate-content", signature: "S" },
      { type: "part-end", index: 1 },
      {
        type: "usage",
        usage: { input: { total: 15, cacheRead: 4 }, output: { total: 5, reasoning: 2 } },
      },
      { type: "finish", finish: { reason: "stop", raw: { protocol: "generate-content", value: "STOP" } } },
    ]);
  });

  test("calls come whole, with their own ids and signatures", () => {
    const events = decode([
      parts({ text: "I look." }),
      parts(
        { functionCall: { id: "x1", name: "f", args: { a: 1 } }, thoughtSignature: "S" },
        functionCall("f", { id: "x2" }),
      ),
      done("STOP"),
    ]);
    checkOrder(events);
    const result = collect(events);
    expect(result?.parts).toEqual([
      { type: "text", text: "I look." },
      { type: "tool-call", id: "x1", name: "f", arguments: '{"a":1}', signature: "S" },
      { type: "tool-call", id: "x2", name: "f", arguments: "{}" },
    ]);
    expect(result?.finish.reason).toBe("tool-calls");
    const fragments = events.filter((event) => event.type === "delta" && event.index === 1);
    expect(fragments).toEqual([{ type: "delta", index: 1, text: '{"a":1}' }]);
  });

  test("ids are made where there are none", () => {
    const ids = (responseId: string | undefined, calls: JsonObject[]) =>
      partsOf([{ ...parts(...calls), responseId }, done()])?.map((part) => part.type === "tool-call" && part.id);
    const pair = [functionCall("f"), functionCall("f")];
    expect(ids("aB-_9", pair)).toEqual(["call_aB-_9_0", "call_aB-_9_1"]);
    expect(ids("a/b".repeat(100), pair)?.[0]).toHaveLength(5 + 40 + 2);
    // Without a known prefix, so that the ids are made unique later on.
    expect(ids(undefined, pair)).toEqual(["tool_0", "tool_1"]);
    const twice = [functionCall("f", { id: "f" }), functionCall("f", { id: "f" })];
    expect(ids("r", twice)).toEqual(["f", "call_r_1"]);
  });

  const texts: [name: string, chunks: JsonObject[], expected: ContentPart[]][] = [
    ["no content", [{ candidates: [{}] }], []],
    ["no parts", [{ candidates: [{ content: { role: "model" } }] }], []],
    ["empty text", [parts({ text: "" })], []],
    [
      "nulls",
      [{ candidates: [{ content: { parts: [null, 1, { text: null, thought: null }] } }] }],
      [{ type: "opaque", protocol: "generate-content", value: { text: null, thought: null } }],
    ],
    [
      "arguments null",
      [parts({ functionCall: { name: "f", args: null } })],
      [{ type: "tool-call", id: "tool_0", name: "f", arguments: "{}" }],
    ],
    [
      "text after a signature is a part of its own",
      [parts({ text: "a", thoughtSignature: "S" }, { text: "b" })],
      [
        { type: "text", text: "a", signature: "S" },
        { type: "text", text: "b" },
      ],
    ],
    [
      "a signed thought",
      [parts({ text: "a", thought: true }), parts({ text: "b", thought: true, thoughtSignature: "S" })],
      [{ type: "reasoning", text: "ab", signature: "S", origin: "generate-content" }],
    ],
    [
      "a signature behind thoughts",
      [parts({ text: "a", thought: true }, { thoughtSignature: "S" })],
      [{ type: "reasoning", text: "a", signature: "S", origin: "generate-content" }],
    ],
    [
      "a signature behind nothing",
      [parts(functionCall("f"), { text: "", thoughtSignature: "S" })],
      [{ type: "tool-call", id: "tool_0", name: "f", arguments: "{}" }],
    ],
    [
      "pictures, and drafts of them",
      [
        parts(
          { inlineData: { mimeType: "image/png", data: "AA==" }, thought: true },
          { inlineData: { mimeType: "image/png", data: "BB==" } },
          { inlineData: { mimeType: "audio/wav", data: "CC==" } },
          { inlineData: { mimeType: "text/csv", data: "DD==" } },
        ),
      ],
      [
        { type: "image", source: { kind: "base64", mediaType: "image/png", data: "BB==" } },
        { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "CC==" } },
        { type: "opaque", protocol: "generate-content", value: { inlineData: { mimeType: "text/csv", data: "DD==" } } },
      ],
    ],
    [
      "code that the vendor ran",
      [
        parts(
          { text: "a" },
          { executableCode: { code: "1" } },
          { codeExecutionResult: { output: "1" } },
          { text: "b" },
        ),
      ],
      [
        { type: "text", text: "a" },
        { type: "opaque", protocol: "generate-content", value: { executableCode: { code: "1" } } },
        { type: "opaque", protocol: "generate-content", value: { codeExecutionResult: { output: "1" } } },
        { type: "text", text: "b" },
      ],
    ],
  ];
  test.each(texts)("%s", (_name, chunks, expected) => {
    expect(partsOf([...chunks, done()])).toEqual(expected);
    const joined = chunks.flatMap(
      ({ candidates }) => ((candidates as JsonObject[])[0]?.content as JsonObject)?.parts ?? [],
    );
    expect(decodeResponse(done("STOP", joined as JsonObject[])).parts).toEqual(expected);
  });

  test("a reason in every chunk ends nothing before the end", () => {
    const chunk = (text: string) => done("STOP", [{ text }]);
    expect(partsOf([chunk("a"), chunk("b")])).toEqual([{ type: "text", text: "ab" }]);
  });

  test("a stream that ends without a reason is not complete", () => {
    const events = decode([{ ...parts({ text: "a" }), usageMetadata: { promptTokenCount: 1 } }]);
    expect(events.map(({ type }) => type)).toEqual(["start", "part-start", "delta", "usage", "part-end"]);
    expect(collect(events)).toBeUndefined();
    expect(decode([])).toEqual([]);
  });

  test("nothing follows the end", () => {
    const decoder = createStreamDecoder();
    decoder.push(JSON.stringify(done()));
    expect(decoder.end().at(-1)?.type).toBe("finish");
    expect(decoder.end()).toEqual([]);
    expect(decoder.push(JSON.stringify(parts({ text: "a" })))).toEqual([]);
  });

  test("an error inside of the stream", () => {
    const error = { error: { code: 503, message: "Overloaded.", status: "UNAVAILABLE" } };
    for (const chunk of [error, [error]]) {
      const events = decode([parts({ text: "a" }), chunk, parts({ text: "b" }), done()]);
      checkOrder(events);
      expect(events.at(-1)).toEqual({
        type: "failure",
        failure: { message: "Overloaded.", status: 503, type: "overloaded_error", code: "UNAVAILABLE" },
      });
    }
  });

  test("the list of a stream without alt=sse, and marks of others", () => {
    expect(partsOf([[parts({ text: "a" }), parts({ text: "b" }), done()]])).toEqual([{ type: "text", text: "ab" }]);
    const decoder = createStreamDecoder();
    expect([...decoder.push("[DONE]"), ...decoder.push("")]).toEqual([]);
  });

  test("line ends of Google", () => {
    const wire = `data: ${JSON.stringify(parts({ text: "a" }))}\r\n\r\ndata: ${JSON.stringify(done())}\r\n\r\n`;
    const decoder = createStreamDecoder();
    const events = [...readEvents(wire).flatMap(({ data, name }) => decoder.push(data, name)), ...decoder.end()];
    expect(collect(events)?.parts).toEqual([{ type: "text", text: "a" }]);
  });

  test("what is no answer is refused", () => {
    const bad: unknown[] = [
      1,
      null,
      "x",
      [1],
      parts({ functionCall: { args: {} } }),
      parts({ functionCall: { name: "f", args: [1] } }),
      parts({ functionCall: { name: "f", willContinue: true } }),
    ];
    for (const chunk of bad) expect(() => decode([chunk])).toThrow(DecodeError);
    expect(() => createStreamDecoder().push("{")).toThrow(DecodeError);
  });
});

describe("endings", () => {
  const reasons: [wire: string, plain: string, withCalls: string][] = [
    ["STOP", "stop", "tool-calls"],
    ["MAX_TOKENS", "length", "length"],
    ["CONTINUATION", "length", "length"],
    ["SAFETY", "content-filter", "content-filter"],
    ["RECITATION", "content-filter", "content-filter"],
    ["LANGUAGE", "content-filter", "content-filter"],
    ["BLOCKLIST", "content-filter", "content-filter"],
    ["PROHIBITED_CONTENT", "content-filter", "content-filter"],
    ["SPII", "content-filter", "content-filter"],
    ["IMAGE_SAFETY", "content-filter", "content-filter"],
    ["IMAGE_PROHIBITED_CONTENT", "content-filter", "content-filter"],
    ["IMAGE_RECITATION", "content-filter", "content-filter"],
    ["MODEL_ARMOR", "content-filter", "content-filter"],
    ["OTHER", "stop", "tool-calls"],
    ["NO_IMAGE", "stop", "tool-calls"],
    ["FINISH_REASON_UNSPECIFIED", "stop", "tool-calls"],
    ["SOMETHING_NEW", "stop", "tool-calls"],
  ];
  test.each(reasons)("%s", (wire, plain, withCalls) => {
    const raw = { protocol: "generate-content", value: wire } as const;
    const answer = done(wire, [{ text: "a" }]);
    const calls = done(wire, [functionCall("f")]);
    expect(decodeResponse(answer).finish as unknown).toEqual({ reason: plain, raw });
    expect(decodeResponse(calls).finish as unknown).toEqual({ reason: withCalls, raw });
    expect(collect(decode([parts(functionCall("f")), done(wire)]))?.finish as unknown).toEqual({
      reason: withCalls,
      raw,
    });
  });

  test("every reason of the official library is known", () => {
    const failures = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"];
    const listed = [...reasons.map(([wire]) => wire), ...failures, "IMAGE_OTHER", "MISSING_THOUGHT_SIGNATURE"];
    expect(Object.values(FinishReason).filter((reason) => !listed.includes(reason))).toEqual([]);
  });

  const broken = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"];
  test.each(broken)("%s is a failure", (reason) => {
    const answer = { candidates: [{ finishReason: reason, finishMessage: "Why." }] };
    const failure = {
      message: `The model's answer cannot be used (${reason}). Why.`,
      status: 502,
      type: "backend_error",
      code: reason.toLowerCase(),
    };
    const events = decode([parts({ text: "a" }), answer, { usageMetadata: { promptTokenCount: 1 } }]);
    checkOrder(events);
    expect(events.at(-1)).toEqual({ type: "failure", failure });
    try {
      decodeResponse(answer);
      throw new Error("decoded");
    } catch (error) {
      expect(error).toBeInstanceOf(AnswerFailed);
      expect((error as AnswerFailed).failure).toEqual(failure);
    }
  });

  test.each([
    ["NO_IMAGE", 502],
    ["IMAGE_OTHER", 502],
    ["MISSING_THOUGHT_SIGNATURE", 400],
  ])("%s without anything said is a failure that says so", (reason, status) => {
    expect(decode([done(reason)]).at(-1)).toMatchObject({
      type: "failure",
      failure: { status, code: reason.toLowerCase(), message: expect.stringContaining(reason) as string },
    });
    expect(() => decodeResponse(done(reason))).toThrow(AnswerFailed);
  });

  test("a prompt that was refused is filtered, not empty", () => {
    const answer = { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 3 } };
    const finish = { reason: "content-filter", raw: { protocol: "generate-content", value: "SAFETY" } } as const;
    expect(decodeResponse(answer)).toMatchObject({ parts: [], finish, usage: { input: { total: 3 } } });
    expect(collect(decode([answer]))?.finish).toEqual(finish);
    expect(decodeResponse({ ...answer, ...done() }).finish.reason).toBe("stop");
  });

  test("all tokens spent on thoughts", () => {
    const answer = { ...done("MAX_TOKENS"), usageMetadata: { promptTokenCount: 3, thoughtsTokenCount: 100 } };
    expect(decodeResponse(answer)).toMatchObject({
      parts: [],
      finish: { reason: "length" },
      usage: { output: { total: 100, reasoning: 100 } },
    });
  });
});

describe("whole answers", () => {
  test("without anything that says why it ended", () => {
    expect(decodeResponse({ responseId: "r", modelVersion: "v", ...parts(functionCall("f")) })).toEqual({
      id: "r",
      model: "v",
      createdAt: 0,
      parts: [{ type: "tool-call", id: "call_r_0", name: "f", arguments: "{}" }],
      finish: { reason: "tool-calls" },
    });
  });

  test("the list of a stream", () => {
    expect(decodeResponse([parts({ text: "a" }), done("STOP", [{ text: "b" }])]).parts).toEqual([
      { type: "text", text: "ab" },
    ]);
    expect(() => decodeResponse([parts({ text: "a" })])).toThrow(DecodeError);
  });

  test("what is none", () => {
    for (const body of [
      {},
      { candidates: [] },
      { candidates: null },
      { candidates: [null] },
      { promptFeedback: {} },
      [],
    ]) {
      expect(() => decodeResponse(body)).toThrow(DecodeError);
    }
    expect(() => decodeResponse({ error: { message: "m" } })).toThrow(AnswerFailed);
    expect(() => decodeResponse([{ error: { message: "m" } }])).toThrow(AnswerFailed);
  });

  test("an answer cut into any pieces means the same", () => {
    const piece = fc.oneof(
      fc.record({ text: fc.string(), thought: fc.boolean() }),
      fc.record({ text: fc.string(), thoughtSignature: fc.constantFrom("S", "T") }),
      fc.record({
        functionCall: fc.record({ name: fc.constantFrom("f", "g"), args: fc.dictionary(fc.string(), fc.integer()) }),
      }),
      fc.constant({ executableCode: { code: "1" } }),
      fc.constant({ inlineData: { mimeType: "image/png", data: "AA==" } }),
      fc.constant({}),
    ) as fc.Arbitrary<JsonObject>;
    fc.assert(
      fc.property(fc.array(fc.array(piece)), fc.constantFrom("STOP", "MAX_TOKENS", "SAFETY"), (pieces, reason) => {
        const chunks = [
          ...pieces.map((list) => ({ responseId: "r", ...parts(...list) })),
          { responseId: "r", ...done(reason) },
        ];
        const events = decode(chunks);
        checkOrder(events);
        const whole = decodeResponse({ responseId: "r", ...done(reason, pieces.flat()) });
        expect(collect(events)).toEqual(whole);
      }),
    );
  });

  test("text cut anywhere is the same text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(), (text, at) => {
        const cut = at % (text.length + 1);
        const pieces = partsOf([parts({ text: text.slice(0, cut) }), parts({ text: text.slice(cut) }), done()]);
        expect(pieces).toEqual(text === "" ? [] : [{ type: "text", text }]);
      }),
    );
  });

  test("nothing that a backend sends breaks the decoder in another way", () => {
    const odd = fc.oneof(fc.constantFrom(null, 1, "x", true, [], {}), fc.jsonValue({ maxDepth: 2 }));
    const part = fc.record(
      { text: odd, thought: odd, thoughtSignature: odd, functionCall: odd, inlineData: odd },
      { requiredKeys: [] },
    );
    const answer = fc.record(
      {
        responseId: odd,
        modelVersion: odd,
        usageMetadata: fc.oneof(odd, fc.record({ promptTokenCount: odd, thoughtsTokenCount: odd })),
        promptFeedback: odd,
        candidates: fc.oneof(
          odd,
          fc.array(
            fc.record(
              {
                content: fc.oneof(odd, fc.record({ parts: fc.oneof(odd, fc.array(part)) })),
                finishReason: odd,
                finishMessage: odd,
                citationMetadata: fc.oneof(odd, fc.record({ citations: fc.oneof(odd, fc.array(odd)) })),
                groundingMetadata: fc.oneof(
                  odd,
                  fc.record({
                    groundingChunks: fc.array(odd),
                    groundingSupports: fc.array(odd),
                    webSearchQueries: odd,
                  }),
                ),
              },
              { requiredKeys: [] },
            ),
          ),
        ),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(answer), (chunks) => {
        try {
          checkOrder(decode(chunks));
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError);
        }
      }),
    );
  });
});

describe("citations", () => {
  const web = (uri: string, title: string) => ({ web: { uri, title } });
  const grounding = {
    groundingChunks: [web("https://a.test", "a"), web("https://b.test", "b"), { odd: 1 }],
    groundingSupports: [
      { segment: { endIndex: 6, text: "Größe" }, groundingChunkIndices: [0, 7] },
      { segment: { startIndex: 9, endIndex: 14, text: "zwei." }, groundingChunkIndices: [1, 2] },
    ],
    webSearchQueries: ["q", "r"],
  };

  test("bytes become characters, whole or streamed, and repetitions are told once", () => {
    const text = "Größe zwei.";
    // The first segment has its right bytes, the second counts from elsewhere.
    const expected: ContentPart[] = [
      {
        type: "text",
        text,
        citations: [{ url: "https://b.test", title: "b", citedText: "zwei.", startIndex: 6, endIndex: 11 }],
      },
    ];
    const rightBytes = { ...grounding.groundingSupports[0], segment: { endIndex: 7, text: "Größe" } };
    const metadata = { ...grounding, groundingSupports: [rightBytes, grounding.groundingSupports[1]] };
    const first = { url: "https://a.test", title: "a", citedText: "Größe", startIndex: 0, endIndex: 5 };
    if (expected[0]?.type === "text") expected[0].citations?.unshift(first);
    const whole = {
      candidates: [{ content: { parts: [{ text }] }, groundingMetadata: metadata, finishReason: "STOP" }],
    };
    const last = { candidates: [{ groundingMetadata: metadata, finishReason: "STOP" }] };
    expect(decodeResponse(whole).parts).toEqual(expected);
    expect(partsOf([parts({ text: "Größe " }), parts({ text: "zwei." }), last, last])).toEqual(expected);
    expect(decodeResponse({ ...whole, usageMetadata: { promptTokenCount: 1 } }).usage?.webSearches).toBe(2);
  });

  test("words that are not in the text keep their source", () => {
    const answer = {
      candidates: [
        {
          content: { parts: [{ text: "x" }] },
          groundingMetadata: {
            groundingChunks: [web("u", "t")],
            groundingSupports: [{ segment: { text: "lost", endIndex: 99 }, groundingChunkIndices: [0] }],
          },
          finishReason: "STOP",
        },
      ],
    };
    expect(decodeResponse(answer).parts).toEqual([
      { type: "text", text: "x", citations: [{ url: "u", title: "t", citedText: "lost" }] },
    ]);
  });

  test("sources without words, and citations", () => {
    const answer = {
      candidates: [
        {
          content: { parts: [{ text: "äb" }] },
          groundingMetadata: { groundingChunks: [web("u", "t"), { retrievedContext: { uri: "v" } }] },
          citationMetadata: { citations: [{ startIndex: 2, endIndex: 3, uri: "w" }, { startIndex: 0 }] },
          finishReason: "STOP",
        },
      ],
    };
    expect(decodeResponse(answer).parts).toEqual([
      {
        type: "text",
        text: "äb",
        citations: [{ url: "u", title: "t" }, { url: "v" }, { url: "w", startIndex: 1, endIndex: 2 }],
      },
    ]);
  });

  test("each part gets what it says", () => {
    const metadata = {
      groundingChunks: [web("u", "t")],
      groundingSupports: [
        { segment: { text: "two" }, groundingChunkIndices: [0] },
        { segment: { text: "one" }, groundingChunkIndices: [0] },
      ],
    };
    const list = [{ text: "one" }, { executableCode: {} }, { text: "two" }];
    const answer = { candidates: [{ content: { parts: list }, groundingMetadata: metadata, finishReason: "STOP" }] };
    const cited = decodeResponse(answer).parts.map((part) => part.type === "text" && part.citations?.[0]?.citedText);
    expect(cited).toEqual(["one", false, "two"]);
  });
});
