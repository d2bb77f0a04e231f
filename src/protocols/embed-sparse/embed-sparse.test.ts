import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { encodeSparseEmbedding, readSparseEmbeddingRequest } from "./read-request.ts";
import { decodeSparseEmbedding } from "./response.ts";

describe("request", () => {
  test.each([
    [{ inputs: "a" }, "model"],
    [{ model: "m" }, "inputs"],
    [{ model: "m", inputs: null }, "inputs"],
    [{ model: "m", inputs: "" }, "inputs"],
    [{ model: "m", inputs: [] }, "inputs"],
    [{ model: "m", inputs: {} }, "inputs"],
    [{ model: "m", input: ["a", ""] }, "input[1]"],
    [{ model: "m", inputs: ["a", 1] }, "inputs[1]"],
    [{ model: "m", inputs: [[1, 2]] }, "inputs[0]"],
    [{ model: "m", inputs: "a", truncate: "yes" }, "truncate"],
    [{ model: "m", inputs: "a", prompt_name: 1 }, "prompt_name"],
  ])("refuses %j", (body, param) => {
    expect(() => readSparseEmbeddingRequest(body as JsonObject)).toThrow(
      expect.objectContaining({ name: "GatewayError", status: 400, param }) as unknown as Error,
    );
  });

  test.each([
    [
      { model: "m", inputs: "a" },
      { model: "served", inputs: "a" },
    ],
    [
      { model: "m", input: ["a", "b"] },
      { model: "served", inputs: ["a", "b"] },
    ],
    [
      { model: "m", inputs: ["a"], input: "ignored" },
      { model: "served", inputs: ["a"] },
    ],
    [
      { model: "m", inputs: "a", truncate: true, x: 1 },
      { model: "served", inputs: "a", truncate: true, x: 1 },
    ],
  ])("%j -> %j", (body, expected) => {
    const request = readSparseEmbeddingRequest(body);
    expect(request).toMatchObject({ model: "m", stream: false });
    expect(encodeSparseEmbedding(request, "served")).toEqual(expected);
  });
});

describe("response", () => {
  const decode = (answer: unknown, inputs: string | string[] = ["a", "b"]) =>
    decodeSparseEmbedding(answer, readSparseEmbeddingRequest({ model: "m", inputs }));
  const vector = [
    { index: 7, value: 0.5 },
    { index: 3, value: -1e-7 },
  ];

  test("passes unchanged", () => {
    const answer = [vector, []];
    expect(decode(answer)).toBe(answer);
    // The outer list is there even for one input.
    expect(decode([vector], "a")).toEqual([vector]);
  });

  const bad: unknown[] = [
    null,
    {},
    [vector],
    [vector, vector, vector],
    vector,
    [[{ index: 1 }], []],
    [[{ index: 1.5, value: 1 }], []],
    [[{ index: 1, value: "1" }], []],
    [[null], []],
  ];
  test.each(bad.map((answer) => [JSON.stringify(answer), answer]))("refuses %s", (_text, answer) => {
    expect(() => decode(answer)).toThrow(DecodeError);
  });

  test.each([[{ error: "no SPLADE", error_type: "Backend" }], [{ error: { message: "no SPLADE" } }]])(
    "%j",
    (answer) => {
      expect(() => decode(answer)).toThrow(AnswerFailed);
      expect(() => decode(answer)).toThrow("no SPLADE");
    },
  );

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
