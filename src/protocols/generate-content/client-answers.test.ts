// Answers for Gemini clients: whole and as streams, which say the same, and are read again by the half for backends.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { asEvents } from "../../generation/as-events.ts";
import { Collector } from "../../generation/collect.ts";
import type { ContentPart, TextPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { Finish, GenerationResult } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { eventData } from "../sse.ts";
import { errorBody, failureEvent } from "./client-errors.ts";
import { FOREIGN_MARK, sealOf } from "./foreign-signature.ts";
import { decodeRequest } from "./request-decoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";
import { joinAnswers } from "./whole-as-event.ts";

const STOP: Finish = { reason: "stop" };
const usage = { input: { total: 10, cacheRead: 4 }, output: { total: 7, reasoning: 3 } };

function contextOf(includeThoughts: boolean): AnswerContext {
  const generationConfig = { thinkingConfig: { includeThoughts } };
  const request = decodeRequest({ contents: [{ parts: [{ text: "hi" }] }], generationConfig });
  return { model: "asked", createdAt: 1, nonce: "n".repeat(32), request };
}

const resultOf = (parts: ContentPart[], finish = STOP): GenerationResult => ({
  ...{ id: "id1", model: "backend", createdAt: 0, parts, finish, usage },
});

function chunksOf(events: readonly GenerationEvent[], context: AnswerContext): JsonObject[] {
  const encoder = createStreamEncoder(context);
  const text = events.map((event) => encoder.push(event)).join("") + encoder.end();
  return eventData(text).map((data) => JSON.parse(data) as JsonObject);
}

const whole = (parts: ContentPart[], { shows = true, finish = STOP } = {}) =>
  encodeResponse(resultOf(parts, finish), contextOf(shows));
const streamed = (parts: ContentPart[], { shows = true, finish = STOP } = {}) =>
  chunksOf(asEvents(resultOf(parts, finish)), contextOf(shows));

function partsOf(answer: JsonObject): JsonObject[] {
  const [candidate] = answer.candidates as { content: { parts?: JsonObject[] } }[];
  return candidate?.content.parts ?? [];
}

const thought = { type: "reasoning", text: "hm", signature: "sig", origin: "messages" } as const;
const call = (id: string, more: object = {}) =>
  ({ type: "tool-call", id, name: "f", arguments: '{"a":1}', ...more }) as const;

test("a whole answer", () => {
  const parts: ContentPart[] = [thought, { type: "text", text: "Hi" }, call("c1"), call("c2")];
  const answer = whole(parts, { finish: { reason: "tool-calls" } });
  expect(answer).toEqual({
    candidates: [
      {
        content: {
          parts: [
            { text: "hm", thought: true, thoughtSignature: expect.any(String) },
            { text: "Hi" },
            { functionCall: { id: "c1", name: "f", args: { a: 1 } }, thoughtSignature: FOREIGN_MARK },
            { functionCall: { id: "c2", name: "f", args: { a: 1 } } },
          ],
          role: "model",
        },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      ...{ promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 17 },
      ...{ cachedContentTokenCount: 4, thoughtsTokenCount: 3 },
    },
    modelVersion: "asked",
    responseId: "id1",
  });
});

test("thoughts that were not asked for are not shown; their proof comes along", () => {
  for (const parts of [
    partsOf(whole([thought], { shows: false })),
    partsOf(streamed([thought], { shows: false })[0] as JsonObject),
  ]) {
    expect(parts).toEqual([{ text: "", thought: true, thoughtSignature: expect.any(String) }]);
    expect(sealOf(parts[0]?.thoughtSignature)).toEqual({ origin: "messages", signature: "sig" });
  }
  expect(partsOf(whole([{ type: "reasoning", text: "hm" }], { shows: false }))).toEqual([]);
});

test("a Gemini model's own signatures stay", () => {
  const parts: ContentPart[] = [{ type: "text", text: "Hi", signature: "b3du" }, call("c1", { signature: "Y2FsbA==" })];
  const signed = partsOf(whole(parts)).map(({ thoughtSignature }) => thoughtSignature);
  expect(signed).toEqual(["b3du", "Y2FsbA=="]);
});

test.each<[Finish, string]>([
  [{ reason: "stop" }, "STOP"],
  [{ reason: "stop-sequence", stopSequence: "x" }, "STOP"],
  [{ reason: "length" }, "MAX_TOKENS"],
  [{ reason: "tool-calls" }, "STOP"],
  [{ reason: "content-filter" }, "SAFETY"],
  [{ reason: "pause" }, "OTHER"],
  [{ reason: "content-filter", raw: { protocol: "generate-content", value: "RECITATION" } }, "RECITATION"],
  [{ reason: "content-filter", raw: { protocol: "messages", value: "refusal" } }, "SAFETY"],
])("%j ends as %s", (finish, reason) => {
  const parts: ContentPart[] = [{ type: "text", text: "x" }];
  expect(whole(parts, { finish })).toMatchObject({ candidates: [{ finishReason: reason }] });
  expect(streamed(parts, { finish }).at(-1)).toMatchObject({ candidates: [{ finishReason: reason }] });
});

test("a prompt that was blocked", () => {
  const finish: Finish = { reason: "content-filter", raw: { protocol: "generate-content", value: "OTHER_BLOCK" } };
  const blocked = { promptFeedback: { blockReason: "OTHER_BLOCK" } };
  expect(whole([], { finish })).toMatchObject(blocked);
  expect(whole([], { finish }).candidates).toBeUndefined();
  expect(streamed([], { finish })).toMatchObject([blocked]);
});

test("pictures and sound are shown, what others ran themselves is not", () => {
  const parts: ContentPart[] = [
    { type: "image", source: { kind: "base64", mediaType: "image/png", data: "QUJD" } },
    { type: "image", source: { kind: "url", url: "https://h/a.png" } },
    { type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "QUJD" } },
    { type: "opaque", protocol: "generate-content", value: { executableCode: {} } },
    { type: "opaque", protocol: "messages", value: { type: "x" } },
    call("s", { serverSide: true, name: "code" }),
    { type: "refusal", text: "No." },
  ];
  const expected = [
    { inlineData: { mimeType: "image/png", data: "QUJD" } },
    { inlineData: { mimeType: "audio/wav", data: "QUJD" } },
    { executableCode: {} },
    { text: "No." },
  ];
  expect(partsOf(whole(parts))).toEqual(expected);
  expect(streamed(parts).flatMap(partsOf)).toEqual([...expected, { text: "" }]);
});

test("calls side by side are sent whole, in the order in which they began", () => {
  const begin = (index: number, id: string): GenerationEvent => ({
    type: "part-start",
    index,
    part: { type: "tool-call", id, name: id },
  });
  const chunks = chunksOf(
    [
      begin(0, "a"),
      begin(1, "b"),
      { type: "delta", index: 1, text: '{"x":' },
      { type: "delta", index: 0, text: "{}" },
      { type: "delta", index: 1, text: "1}" },
      { type: "part-end", index: 1 },
      { type: "part-end", index: 0 },
      { type: "finish", finish: { reason: "tool-calls" } },
    ],
    contextOf(false),
  );
  const calls = chunks.flatMap(partsOf).flatMap(({ functionCall }) => (isObject(functionCall) ? [functionCall] : []));
  expect(calls).toEqual([
    { id: "a", name: "a", args: {} },
    { id: "b", name: "b", args: { x: 1 } },
  ]);
});

const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const answerParts = fc.array(
  fc.oneof(
    words.map((text): ContentPart => ({ type: "text", text })),
    words.map((text): ContentPart => ({ type: "reasoning", text })),
    fc
      .record({ a: fc.oneof(words, fc.integer(), fc.boolean(), fc.constant(null)) })
      .map((input): ContentPart => call("", { arguments: JSON.stringify(input) })),
  ),
  { maxLength: 8 },
);

/** Neighbours of one kind are one part for a client; ids and signatures are the gateway's own. */
function meaningOf(parts: readonly ContentPart[]): unknown[] {
  const meaning: { type: string; text: string }[] = [];
  for (const part of parts) {
    const text = part.type === "tool-call" ? JSON.stringify(JSON.parse(part.arguments)) : (part as TextPart).text;
    const last = meaning.at(-1);
    if (last !== undefined && last.type === part.type && part.type !== "tool-call") last.text += text;
    else meaning.push({ type: part.type, text });
  }
  return meaning;
}

test("whatever is answered, whole and streamed, is read again by the half for backends", () => {
  fc.assert(
    fc.property(answerParts, (given) => {
      const parts: ContentPart[] = given.length === 0 ? [{ type: "text", text: "x" }] : given;
      const told = whole(parts);
      expect(meaningOf(decodeResponse(told).parts)).toEqual(meaningOf(parts));
      const chunks = streamed(parts);
      const decoder = createStreamDecoder();
      const collector = new Collector();
      for (const chunk of chunks) for (const event of decoder.push(JSON.stringify(chunk))) collector.push(event);
      for (const event of decoder.end()) collector.push(event);
      expect(meaningOf(collector.result()?.parts ?? [])).toEqual(meaningOf(parts));
      expect(collector.result()?.usage).toEqual(usage);
      // What a stream says together is the whole answer.
      const joined = joinAnswers(chunks.map((chunk) => JSON.stringify(chunk)));
      expect(meaningOf(decodeResponse(joined as JsonObject).parts)).toEqual(meaningOf(parts));
    }),
  );
});

describe("errors", () => {
  test.each([
    [400, "INVALID_ARGUMENT"],
    [401, "UNAUTHENTICATED"],
    [403, "PERMISSION_DENIED"],
    [404, "NOT_FOUND"],
    [408, "DEADLINE_EXCEEDED"],
    [413, "INVALID_ARGUMENT"],
    [429, "RESOURCE_EXHAUSTED"],
    [500, "INTERNAL"],
    [502, "UNAVAILABLE"],
    [503, "UNAVAILABLE"],
    [504, "DEADLINE_EXCEEDED"],
    [529, "UNAVAILABLE"],
  ])("%i is %s", (status, name) => {
    expect(errorBody({ status, message: "m", type: "t", code: undefined, requestId: "r" })).toMatchObject({
      error: { code: status, message: "m", status: name },
    });
  });

  test("with the type, the code, the field and what else is known", () => {
    const error = {
      status: 400,
      message: "a: no.",
      type: "t",
      code: "wrong_a",
      param: "a",
      details: { x: 1 },
      requestId: "r",
    };
    expect(errorBody(error)).toEqual({
      error: {
        ...{ code: 400, message: "a: no.", status: "INVALID_ARGUMENT" },
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "WRONG_A",
            domain: "signalbox",
            metadata: { type: "t", request_id: "r", details: '{"x":1}' },
          },
          {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            fieldViolations: [{ field: "a", description: "a: no." }],
          },
        ],
      },
    });
  });

  test("inside a stream", () => {
    const told = failureEvent({ status: 503, message: "gone" });
    expect(told).toBe('data: {"error":{"code":503,"message":"gone","status":"UNAVAILABLE"}}\n\n');
  });
});
