// Text completion requests: which bodies are refused, at which field, and what is read from the others.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readCompletionRequest } from "./read-request.ts";

function refusal(body: JsonObject): { param: string | undefined; message: string } {
  try {
    readCompletionRequest(body);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    return { param: error.param, message: error.message };
  }
  throw new Error(`nothing was refused in ${JSON.stringify(body)}`);
}

test("model, stream and affinity are read", () => {
  const body = { model: "m", prompt: "a" };
  const plain = readCompletionRequest(body);
  expect({ ...plain, affinity: plain.affinity(body) }).toEqual({
    model: "m",
    stream: false,
    choices: 1,
    affinity: undefined,
  });
  const many = { ...body, stream: true, user: "u", n: 2 };
  const stream = readCompletionRequest(many);
  expect({ ...stream, affinity: stream.affinity(many) }).toEqual({
    model: "m",
    stream: true,
    choices: 2,
    affinity: "u",
  });
});

test.each([["text"], [""], [null], [["a", "b"]], [[1, 2, 3]], [[[1], [2]]]])("the prompt %j passes", (prompt) => {
  expect(readCompletionRequest({ model: "m", prompt }).model).toBe("m");
});

test("unknown fields and nulls pass, and so does a request for no token at all", () => {
  const body = {
    model: "m",
    prompt: "a",
    suffix: "b",
    echo: true,
    max_tokens: 0,
    best_of: 1,
    stop: null,
    logit_bias: null,
  };
  expect(readCompletionRequest({ ...body, some_future_field: 1 }).model).toBe("m");
});

describe("what is refused", () => {
  const cases: [more: JsonObject, param: string, message: string][] = [
    [{ model: undefined }, "model", "model is required: the id of a model, see GET /v1/models."],
    [{ prompt: undefined }, "prompt", "prompt is required: a string, an array of strings, or token ids."],
    [{ prompt: 5 }, "prompt", "prompt: expected a string or an array, got a number."],
    [{ prompt: {} }, "prompt", "prompt: expected a string or an array, got an object."],
    [{ temperature: 3 }, "temperature", "temperature: expected a number from 0 to 2, got 3."],
    [{ max_tokens: -1 }, "max_tokens", "max_tokens: expected an integer of at least 0, got -1."],
    [{ best_of: 0 }, "best_of", "best_of: expected an integer of at least 1, got 0."],
    [{ stream: 1 }, "stream", "stream: expected true or false, got a number."],
    [{ stream_options: [] }, "stream_options", "stream_options: expected an object, got an array."],
    [{ stop: 1 }, "stop", "stop: expected a string or an array of strings, got a number."],
    [{ logit_bias: "x" }, "logit_bias", "logit_bias: expected an object, got a string."],
    [{ user: {} }, "user", "user: expected a string, got an object."],
  ];
  test.each(cases)("%j at %s", (more, param, message) => {
    expect(refusal({ model: "m", prompt: "a", ...more })).toEqual({ param, message });
  });
});
