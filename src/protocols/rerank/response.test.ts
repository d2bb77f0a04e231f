import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { readRerankRequest } from "./read-request.ts";
import { decodeRerank } from "./response.ts";

const good = { model: "m", query: "q", documents: ["a", { text: "b" }, "c"] };
const context = { nonce: "0123456789abcdef0123456789abcdef" };
const decode = (answer: unknown, change: JsonObject = {}, more = {}) =>
  decodeRerank(answer, readRerankRequest({ ...good, ...change }), { ...context, ...more });

const ranked = [
  { index: 2, relevance_score: 0.9 },
  { index: 0, relevance_score: 0.5 },
  { index: 1, relevance_score: -3.25 },
];
const whole = { id: "rerank-1", object: "list", model: "m", results: ranked };

describe("forms", () => {
  test.each([
    [
      "vLLM",
      {
        id: "rerank-1",
        model: "served",
        usage: { total_tokens: 7 },
        results: ranked.map((result) => ({ ...result, document: { text: "x" } })),
      },
      { ...whole, usage: { prompt_tokens: 7, total_tokens: 7 } },
    ],
    [
      "Jina",
      { id: "rerank-1", results: ranked, usage: { prompt_tokens: 6, total_tokens: 7 } },
      { ...whole, usage: { prompt_tokens: 6, total_tokens: 7 } },
    ],
    [
      "Cohere",
      { id: "rerank-1", results: ranked, meta: { billed_units: { search_units: 1 } } },
      { ...whole, meta: { billed_units: { search_units: 1 } } },
    ],
    [
      "llama.cpp, not sorted",
      { model: "x", object: "list", usage: { prompt_tokens: 4, total_tokens: 4 }, results: ranked.toReversed() },
      { ...whole, id: `rerank-${context.nonce}`, usage: { prompt_tokens: 4, total_tokens: 4 } },
    ],
    [
      "TEI",
      ranked.map(({ index, relevance_score }) => ({ index, score: relevance_score, text: "x" })),
      { ...whole, id: `rerank-${context.nonce}` },
    ],
    ["data instead of results", { id: "rerank-1", object: "list", data: ranked }, whole],
    [
      "null members",
      { id: null, usage: null, meta: null, error: null, results: ranked },
      { ...whole, id: `rerank-${context.nonce}` },
    ],
    ["odd usage", { id: "rerank-1", usage: { total_tokens: "7", prompt_tokens: -1 }, results: ranked }, whole],
    ["nothing found", { id: "rerank-1", results: [] }, { ...whole, results: [] }],
  ])("%s", (_what, answer, expected) => {
    expect(decode(answer)).toEqual(expected as JsonObject);
  });

  test("tokens of a header", () => {
    expect(decode(ranked, {}, { tokens: 12 }).usage).toEqual({ prompt_tokens: 12, total_tokens: 12 });
  });
});

test("documents come from the request, by their position in it", () => {
  expect(decode({ results: ranked }, { return_documents: true }).results).toEqual([
    { index: 2, relevance_score: 0.9, document: { text: "c" } },
    { index: 0, relevance_score: 0.5, document: { text: "a" } },
    { index: 1, relevance_score: -3.25, document: { text: "b" } },
  ]);
});

test.each([
  [{ top_n: 1 }, 1],
  [{ top_k: 2 }, 2],
  [{ top_n: 99 }, 3],
  [{ top_n: 0 }, 3],
])("%j gives %d results, though the backend gave all", (change, count) => {
  expect(decode(ranked, change).results).toEqual(ranked.slice(0, count));
});

test("scores are not clamped, and equal ones keep their order", () => {
  const answer = [
    { index: 1, score: -11.5 },
    { index: 2, score: 42 },
    { index: 0, score: 42 },
  ];
  expect(decode(answer).results).toEqual([
    { index: 2, relevance_score: 42 },
    { index: 0, relevance_score: 42 },
    { index: 1, relevance_score: -11.5 },
  ]);
});

describe("what is no answer", () => {
  const bad: unknown[] = [
    null,
    "x",
    3,
    {},
    { results: {} },
    { results: [null] },
    { results: [{ index: 0 }] },
    { results: [{ index: 0, relevance_score: null }] },
    { results: [{ index: 0, relevance_score: "1" }] },
    { results: [{ index: 3, relevance_score: 1 }] },
    { results: [{ index: -1, relevance_score: 1 }] },
    { results: [{ index: 0.5, relevance_score: 1 }] },
    { results: [{ index: "0", relevance_score: 1 }] },
    { results: [{ relevance_score: 1 }] },
    { results: [ranked[0], ranked[0]] },
  ];
  test.each(bad.map((answer) => [JSON.stringify(answer), answer]))("%s", (_text, answer) => {
    expect(() => decode(answer)).toThrow(DecodeError);
  });

  test.each([
    [{ error: { message: "too long", code: 400 } }, "too long"],
    [{ error: "too long", error_type: "Validation" }, "too long"],
    [{ error: 1 }, "reported an error"],
  ])("an error under status 200: %j", (answer, message) => {
    expect(() => decode(answer)).toThrow(AnswerFailed);
    expect(() => decode(answer)).toThrow(message);
  });

  test("nothing else is ever thrown", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (answer) => {
        try {
          decode(answer);
        } catch (error) {
          expect(error instanceof DecodeError || error instanceof AnswerFailed).toBe(true);
        }
      }),
    );
  });
});

test("any ranking comes back whole, sorted, with its positions", () => {
  const scores = fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(scores, fc.boolean(), (values, asArray) => {
      const documents = values.map(String);
      const entries = values.map((score, index) => (asArray ? { index, score } : { index, relevance_score: score }));
      const answer = asArray ? entries : { results: entries };
      const results = decode(answer, { documents }).results as { index: number; relevance_score: number }[];
      expect(results.map(({ index }) => index).sort((a, b) => a - b)).toEqual(values.map((_, index) => index));
      for (const [place, { index, relevance_score }] of results.entries()) {
        expect(relevance_score).toBe(values[index] as number);
        if (place > 0) expect(relevance_score).toBeLessThanOrEqual(results[place - 1]?.relevance_score as number);
      }
    }),
  );
});
