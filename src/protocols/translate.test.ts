// Whole answers in translation: parsed here, or given as parsed before.

import { describe, expect, test } from "bun:test";
import { chatBackend, chatClient } from "./chat/index.ts";
import { DecodeError } from "./protocol.ts";
import { createTranslation, type Translation } from "./translate.ts";

const ANSWER = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
};
const NO_JSON = new TextEncoder().encode("these are no bytes of an answer");

function translation(): Translation {
  const request = chatClient.decodeRequest({ model: "asked", messages: [{ role: "user", content: "Hi" }] });
  const context = { model: "asked", createdAt: 1, nonce: "0".repeat(32), request };
  return createTranslation({ client: chatClient, backend: chatBackend, context, transforms: [] });
}

describe("a whole answer", () => {
  test("that was parsed before is not parsed again", () => {
    const fromBytes = translation().plain(new TextEncoder().encode(JSON.stringify(ANSWER)));
    expect(JSON.parse(new TextDecoder().decode(fromBytes))).toMatchObject({
      model: "asked",
      choices: [{ message: { content: "Hello" } }],
    });
    expect(translation().plain(NO_JSON, ANSWER)).toEqual(fromBytes);
  });

  test.each([
    [NO_JSON, "is not valid JSON"],
    [new TextEncoder().encode("[]"), "is no JSON object"],
  ])("that was not parsed before is, and may be none (%#)", (bytes, message) => {
    expect(() => translation().plain(bytes)).toThrow(new DecodeError(message));
  });
});
