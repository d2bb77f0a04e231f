// Whole answers of rerank and embeddings: parsed here, or given as parsed before.

import { describe, expect, test } from "bun:test";
import { DecodeError } from "../protocols/protocol.ts";
import { wholeAnswers } from "./vector-bridge.ts";

const encoder = new TextEncoder();
const NO_JSON = encoder.encode("these are no bytes of an answer");

describe("a whole answer", () => {
  const { plain } = wholeAnswers((answer) => ({ answer }));

  test("that was parsed before is not parsed again", () => {
    expect(plain(NO_JSON, { a: 1 }).body).toEqual(encoder.encode('{"answer":{"a":1}}'));
  });

  test("that was not parsed before is, arrays included", () => {
    expect(plain(encoder.encode("[1]")).body).toEqual(encoder.encode('{"answer":[1]}'));
    expect(() => plain(NO_JSON)).toThrow(new DecodeError("is not valid JSON"));
  });
});
