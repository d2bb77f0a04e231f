// What a request may be counted as before it is sent.

import { expect, test } from "bun:test";
import { mostTokensOfBody } from "./token-count.ts";

const DATA = "A".repeat(30_000);
const messages = (part: object) => ({ messages: [{ role: "user", content: [part] }] });

test("a picture in base64 is a few thousand tokens, however large", () => {
  const chat = messages({ type: "image_url", image_url: { url: `data:image/png;base64,${DATA}` } });
  const ofMessages = messages({ type: "image", source: { type: "base64", media_type: "image/png", data: DATA } });
  for (const body of [chat, ofMessages]) expect(mostTokensOfBody(body)).toBeLessThan(3_200);
});

test("a prompt that looks like data is counted as the text that it is", () => {
  for (const text of [DATA, `data:${DATA}`]) {
    expect(mostTokensOfBody(messages({ type: "text", text }))).toBeGreaterThan(10_000);
    expect(mostTokensOfBody({ prompt: [text] })).toBeGreaterThan(10_000);
    expect(mostTokensOfBody({ messages: [{ role: "user", content: text }] })).toBeGreaterThan(10_000);
  }
});
