// Embeddings requests: which bodies are refused, at which field, and what is read from the others.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readEmbeddingRequest } from "./read-request.ts";

function refusal(body: JsonObject): { param: string | undefined; message: string } {
  try {
    readEmbeddingRequest(body);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    return { param: error.param, message: error.message };
  }
  throw new Error(`nothing was refused in ${JSON.stringify(body)}`);
}

test("model and affinity are read; embeddings never stream, whatever the body says", () => {
  const body = { model: "m", input: "a", user: "u", stream: true };
  const summary = readEmbeddingRequest(body);
  expect({ ...summary, affinity: summary.affinity(body) }).toEqual({
    model: "m",
    stream: false,
    choices: 0,
    affinity: "u",
  });
});

test.each([["text"], [["a", "b"]], [[1, 2]], [[[1], [2]]]])("the input %j passes", (input) => {
  expect(readEmbeddingRequest({ model: "m", input }).model).toBe("m");
});

test.each([["float"], ["base64"], [null], [undefined]])("the encoding %j passes", (encoding_format) => {
  expect(readEmbeddingRequest({ model: "m", input: "a", encoding_format }).model).toBe("m");
});

test("unknown fields and nulls pass", () => {
  expect(readEmbeddingRequest({ model: "m", input: "a", dimensions: null, user: null, task: "x" }).model).toBe("m");
});

describe("what is refused", () => {
  const cases: [more: JsonObject, param: string, message: string][] = [
    [{ model: "" }, "model", "model: must not be empty; GET /v1/models lists the models."],
    [{ input: undefined }, "input", "input is required: a string, an array of strings, or token ids."],
    [{ input: null }, "input", "input is required: a string, an array of strings, or token ids."],
    [{ input: 5 }, "input", "input: expected a string or an array, got a number."],
    [{ input: {} }, "input", "input: expected a string or an array, got an object."],
    [{ input: "" }, "input", "input: must not be empty."],
    [{ input: [] }, "input", "input: must not be empty."],
    [{ dimensions: 0 }, "dimensions", "dimensions: expected an integer of at least 1, got 0."],
    [{ dimensions: 1.5 }, "dimensions", "dimensions: expected an integer of at least 1, got 1.5."],
    [{ encoding_format: "hex" }, "encoding_format", 'encoding_format: expected "float" or "base64".'],
    [{ encoding_format: 1 }, "encoding_format", 'encoding_format: expected "float" or "base64".'],
    [{ user: 1 }, "user", "user: expected a string, got a number."],
  ];
  test.each(cases)("%j at %s", (more, param, message) => {
    expect(refusal({ model: "m", input: "a", ...more })).toEqual({ param, message });
  });
});
