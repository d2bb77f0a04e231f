// What a request may be counted as before it is sent.

import { expect, test } from "bun:test";
import type { JsonObject } from "../lib/json.ts";
import { sniffBase64 } from "../media/media-types.ts";
import * as counted from "./token-count.ts";

const isPicture = (data: string) => sniffBase64(data)?.startsWith("image/") === true;
const mostTokensOfBody = (body: JsonObject) => counted.mostTokensOfBody(body, isPicture);

const DATA = "A".repeat(30_000);
const base64 = (head: string, bytes: number) =>
  Buffer.concat([Buffer.from(head, "latin1"), Buffer.alloc(bytes)]).toString("base64");
const messages = (part: object) => ({ messages: [{ role: "user", content: [part] }] });

test("a picture in base64 is a few thousand tokens, however large", () => {
  const data = base64("\x89PNG\r\n\x1a\n", 30_000);
  const chat = messages({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } });
  const ofMessages = messages({ type: "image", source: { type: "base64", media_type: "image/png", data } });
  for (const body of [chat, ofMessages]) expect(mostTokensOfBody(body)).toBeLessThan(3_200);
});

test("a document is no fewer tokens than its bytes, whatever it says that it is, and a sound a sixteenth", () => {
  const bytes = 90_000;
  const pdf = base64("%PDF-1.7", bytes);
  const of = (file: object) => mostTokensOfBody(messages(file));
  const documents = [
    of({ type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } }),
    of({ type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf } }),
    of({ type: "image_url", image_url: { url: `data:image/png;base64,${pdf}` } }),
    of({ type: "image", source: { type: "base64", media_type: "image/png", data: DATA.repeat(4) } }),
  ];
  for (const tokens of documents) expect(tokens).toBeWithin(bytes, bytes + 300);
  const usual = messages({ type: "document", source: { type: "base64", data: pdf } });
  expect(counted.usualTokensOfBody(usual, isPicture)).toBeWithin(bytes / 18, bytes / 16);
  const sound = base64("RIFF....WAVE", bytes);
  expect(of({ type: "input_audio", input_audio: { data: sound, format: "wav" } })).toBeWithin(bytes / 16, bytes / 15);
});

test("a prompt that looks like data is counted as the text that it is", () => {
  for (const text of [DATA, `data:${DATA}`]) {
    expect(mostTokensOfBody(messages({ type: "text", text }))).toBeGreaterThan(10_000);
    expect(mostTokensOfBody({ prompt: [text] })).toBeGreaterThan(10_000);
    expect(mostTokensOfBody({ messages: [{ role: "user", content: text }] })).toBeGreaterThan(10_000);
  }
});

test("comments in a stream are no tokens, and do not make the frames of events look like text", () => {
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "word " } }] })}\n\n`;
  const count = new counted.TextCount();
  for (const piece of [": queued\n\n", event, `${event}: ping\n\n${event}`, ": ping\n\n"])
    count.add(Buffer.from(piece));
  expect(count.tokens).toBe(3);
});
