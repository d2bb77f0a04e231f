// Whole answers in translation: parsed here, or given as parsed before.

import { describe, expect, test } from "bun:test";
import { MAX_CITATIONS } from "../generation/answer-losses.ts";
import { chatBackend, chatClient } from "./chat/index.ts";
import { DecodeError } from "./protocol.ts";
import { createTranslation, type Translation, type TranslationParts } from "./translate.ts";

const ANSWER = {
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
};
const NO_JSON = new TextEncoder().encode("these are no bytes of an answer");

function translation(more: Partial<TranslationParts> = {}): Translation {
  const request = chatClient.decodeRequest({ model: "asked", messages: [{ role: "user", content: "Hi" }] });
  const context = { model: "asked", createdAt: 1, nonce: "0".repeat(32), request };
  return createTranslation({ client: chatClient, backend: chatBackend, context, transforms: [], ...more });
}

test("a stream for ever citing is let through up to a bound, and the rest is told as lost", () => {
  let lost = 0;
  const stream = translation({ lostCitation: () => lost++ }).stream();
  const push = (delta: object, finish_reason: string | null = null) =>
    stream.push(
      new TextEncoder().encode(
        `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      ),
    );
  const cited = { annotations: [{ type: "url_citation", url_citation: { url: "u", start_index: 0, end_index: 1 } }] };
  push({ content: "x" });
  for (let count = 0; count < MAX_CITATIONS + 7; count++) push(cited);
  push({}, "stop");
  stream.end();
  expect([lost, stream.verdict]).toEqual([7, "done"]);
});

describe("a whole answer", () => {
  test("that was parsed before is not parsed again", () => {
    const fromBytes = translation().plain(new TextEncoder().encode(JSON.stringify(ANSWER)));
    expect(JSON.parse(new TextDecoder().decode(fromBytes.body))).toMatchObject({
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
