// What is kept of an answer, and how later requests take it up.

import { describe, expect, test } from "bun:test";
import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { itemReferences, storedItems, withPreviousItems, withReferencedItems } from "./stored-items.ts";

const RESULT: GenerationResult = {
  id: "msg_backend",
  model: "claude",
  createdAt: 1,
  parts: [
    { type: "reasoning", text: "", origin: "messages", sealed: "blob" },
    { type: "reasoning", text: "hm", origin: "messages", signature: "sig" },
    { type: "tool-call", id: "call_1", name: "f", arguments: "{}" },
  ],
  finish: { reason: "tool-calls" },
};

function contextFor(body: JsonObject): AnswerContext {
  return { model: "alias", createdAt: 1, nonce: "ab".repeat(16), request: decodeRequest(body) };
}

describe("a conversation by reference", () => {
  const first = { model: "alias", input: "What is up?", instructions: "First only" };
  const kept = storedItems(RESULT, contextFor(first));
  const second = {
    model: "alias",
    instructions: "Second",
    previous_response_id: "resp_1",
    input: [{ type: "function_call_output", call_id: "call_1", output: "ok" }],
  };
  const request = decodeRequest(withPreviousItems(second, kept));

  test("holds everything, the thoughts with their proofs included (trap)", () => {
    expect(request.messages).toEqual([
      { role: "user", parts: [{ type: "text", text: "What is up?" }] },
      {
        role: "assistant",
        parts: [
          { ...RESULT.parts[0], itemId: expect.any(String) },
          { ...RESULT.parts[1], itemId: expect.any(String) },
          { ...RESULT.parts[2], itemId: expect.any(String) },
        ] as never,
      },
      { role: "user", parts: [{ type: "tool-result", callId: "call_1", parts: [{ type: "text", text: "ok" }] }] },
    ]);
  });

  test("inherits no instructions (trap)", () => {
    expect(request.system).toEqual([{ type: "text", text: "Second" }]);
    expect(JSON.stringify(kept)).not.toContain("First only");
  });

  test("the next answer keeps the whole conversation", () => {
    const next = storedItems(RESULT, { ...contextFor(first), request });
    expect(next).toHaveLength(kept.length + 1 + 3);
  });

  test("the answer echoes the reference", () => {
    expect(encodeResponse(RESULT, { ...contextFor(first), request }).previous_response_id).toBe("resp_1");
  });
});

test("kept items have the ids that the client got, though it got fewer", () => {
  const context = contextFor({ model: "alias", input: "x" });
  const given = (encodeResponse(RESULT, context).output as JsonObject[]).map(({ id }) => id);
  const kept = storedItems(RESULT, context).map(({ id }) => id);
  expect(given).toHaveLength(2);
  expect(kept).toEqual(expect.arrayContaining(given));
});

describe("references to items", () => {
  const body = {
    model: "m",
    input: [{ role: "user", content: "x" }, { type: "item_reference", id: "rs_1" }, { id: "msg_1" }],
  };

  test("are found with and without a type", () => {
    expect(itemReferences(body)).toEqual([
      { id: "rs_1", param: "input[1].id" },
      { id: "msg_1", param: "input[2].id" },
    ]);
    expect(itemReferences({ input: "rs_1" })).toEqual([]);
  });

  test("are replaced in their place", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [] };
    const message = { type: "message", id: "msg_1", role: "assistant", content: "y" };
    const items = new Map<string, JsonObject>(Object.entries({ rs_1: reasoning, msg_1: message }));
    expect(withReferencedItems(body, items).input).toEqual([body.input[0], reasoning, message]);
    expect(body.input[1]).toEqual({ type: "item_reference", id: "rs_1" });
  });

  test("to what is not kept stay", () => {
    expect(withReferencedItems(body, new Map()).input).toEqual(body.input);
  });
});
