// Which requests and which answers may be cached.

import { describe, expect, test } from "bun:test";
import { isCacheablePlain, isCacheableRequest, isCacheableStream } from "./policy.ts";

const encoder = new TextEncoder();
const LIMITS = { max_response_size: 400, max_stream_buffer_size: 600 };

describe("requests", () => {
  test.each([
    ["chat", {}, true],
    ["chat", { temperature: null }, true],
    ["chat", { temperature: 0 }, true],
    ["chat", { temperature: 0.1 }, false],
    ["chat", { temperature: 0, store: true }, false],
    ["completions", { temperature: 0 }, false],
    ["embeddings", {}, false],
  ] as const)("%s %p: %p", (operation, body, expected) => {
    expect(isCacheableRequest(operation, body)).toBe(expected);
  });
});

describe("plain answers", () => {
  const choice = (finish: unknown) => ({ message: { content: "x" }, finish_reason: finish });
  test.each([
    ["finished", { choices: [choice("stop")] }, true],
    ["one of two with an error", { choices: [choice("stop"), choice("error")] }, false],
    ["unfinished", { choices: [choice(null)] }, false],
    ["no choice", { choices: [] }, false],
    ["an error", { error: { message: "x" }, choices: [choice("stop")] }, false],
    ["too large", { choices: [choice("stop")], more: "x".repeat(400) }, false],
    ["no object", [], false],
  ])("%s", (_name, answer, expected) => {
    expect(isCacheablePlain(encoder.encode(JSON.stringify(answer)), LIMITS)).toBe(expected);
  });
});

describe("streams", () => {
  const text = 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":null}]}\n\n';
  const done = "data: [DONE]\n\n";
  test.each([
    ["complete", text + done, true],
    ["complete with other line ends", `${text}data:[DONE]\r\n\r\n`, true],
    ["without its end", text, false],
    ["the end marker inside a text only", 'data: {"a":"data: [DONE]"}\n\n', false],
    ["finished with an error", `data: {"choices":[{"finish_reason":"error"}]}\n\n${done}`, false],
    ["an error event", `data: {"error":{"message":"x"}}\n\n${done}`, false],
    ["the word in a text", `data: {"choices":[{"delta":{"content":"\\"error\\""}}]}\n\n${done}`, true],
    ["the word as an argument", `data: {"choices":[{"delta":{"content":"error"},"type":"error"}]}\n\n${done}`, true],
    ["too long", text.repeat(10) + done, false],
    ["empty", "", false],
  ])("%s", (_name, body, expected) => {
    expect(isCacheableStream(encoder.encode(body), LIMITS)).toBe(expected);
  });
});
