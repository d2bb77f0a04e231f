import { expect, test } from "bun:test";
import { mediaIn } from "./media-parts.ts";

const image = { type: "image", source: {} };

test.each<[string, object, string[]]>([
  ["texts", { messages: [{ role: "user", content: "a" }] }, []],
  [
    "chat",
    { messages: [{ content: [{ type: "text" }, { type: "image_url" }, { type: "input_audio" }] }] },
    ["image", "audio"],
  ],
  ["messages", { messages: [{ content: "a" }, { content: [image] }] }, ["image"]],
  ["a result of a tool", { messages: [{ content: [{ type: "tool_result", content: [image] }] }] }, ["image"]],
  ["responses", { input: [{ content: [{ type: "input_image" }] }] }, ["image"]],
  ["an output of a call", { input: [{ type: "function_call_output", output: [{ type: "input_image" }] }] }, ["image"]],
  ["a text as input", { input: "input_image" }, []],
  ["Ollama's pictures", { messages: [{ content: "a", images: ["QUJD"] }] }, ["image"]],
  ["Ollama's pictures of a prompt", { prompt: "a", images: ["QUJD"] }, ["image"]],
  ["pictures that are no base64", { messages: [{ content: "a", images: [{ image_url: {} }] }], images: [] }, []],
  ["films", { messages: [{ content: [{ type: "video_url" }] }] }, ["video"]],
  ["what is no message", { messages: [null, 7, [image], { content: { type: "image" } }] }, []],
  ["a type that is none", { messages: [{ content: [{ type: ["image"] }, { type: "__proto__" }] }] }, []],
])("%s", (_name, value, media) => {
  expect(mediaIn(value as Record<string, unknown>)).toEqual(media as never);
});

test("parts in parts end somewhere", () => {
  let part: object = image;
  for (let depth = 0; depth < 10_000; depth++) part = { type: "tool_result", content: [part] };
  expect(mediaIn({ messages: [part] })).toEqual([]);
});
