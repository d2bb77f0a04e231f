// Streams of speech and of transcriptions: when they are complete, and what they counted.

import { describe, expect, test } from "bun:test";
import { clientWords, passThrough } from "../registry.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (value: { type: string; [key: string]: unknown }) => bytes(`data: ${JSON.stringify(value)}\n\n`);
const chunk = (choice: object, more: object = {}) =>
  bytes(`data: ${JSON.stringify({ object: "transcription.chunk", choices: [choice], ...more })}\n\n`);
const watchOf = () => passThrough("audio").watch({ choices: 1 });

describe("typed events", () => {
  test.each([
    ["speech.audio.delta", "speech.audio.done"],
    ["transcript.text.delta", "transcript.text.done"],
    ["transcript.text.segment", "transcript.text.done"],
  ])("%s until %s", (part, end) => {
    const watch = watchOf();
    const first = event({ type: part, delta: 'says "speech.audio.done" and "choices"' });
    expect(watch.push(first)).toBe(first);
    expect([watch.isDone, watch.verdict(), watch.usage]).toEqual([false, "incomplete", undefined]);
    watch.push(event({ type: end, usage: { type: "tokens", input_tokens: 14, output_tokens: 45, total_tokens: 59 } }));
    expect([watch.isDone, watch.verdict()]).toEqual([true, "done"]);
    expect(watch.usage).toEqual({ input: { total: 14 }, output: { total: 45 } });
  });

  test("seconds are no tokens, and are told for vendors with a price per minute", () => {
    const watch = watchOf();
    watch.push(event({ type: "transcript.text.done", usage: { type: "duration", seconds: 3 } }));
    const counted = { input: { total: 0 }, output: { total: 0 }, audioSeconds: 3 };
    expect([watch.verdict(), watch.usage]).toEqual(["done", counted]);
    expect(passThrough("audio").usageOf?.({ usage: { type: "duration", seconds: 3 } })).toEqual(counted);
    expect(passThrough("audio").usageOf?.({ usage: { input_tokens: 1, output_tokens: 2 } })?.output.total).toBe(2);
  });

  test("an error at the end is the backend's own", () => {
    const watch = watchOf();
    watch.push(event({ type: "transcript.text.delta", delta: "a" }));
    watch.push(event({ type: "error", error: { message: "too long" } }));
    expect(watch.verdict()).toBe("reported");
  });
});

describe("chunks as vLLM sends them", () => {
  test("end with [DONE]", () => {
    const watch = watchOf();
    expect(watch.push(bytes(": keep\n\n"))).toEqual(bytes(": keep\n\n"));
    watch.push(chunk({ delta: { content: "Hello" }, finish_reason: null }));
    expect([watch.isDone, watch.verdict()]).toEqual([false, "incomplete"]);
    watch.push(chunk({ delta: { content: "" }, finish_reason: "stop" }));
    expect(watch.verdict()).toBe("finished");
    expect(watch.endMarker).toEqual(bytes("data: [DONE]\n\n"));
    watch.push(bytes(`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n`));
    watch.push(bytes("data: [DONE]\n\n"));
    expect([watch.isDone, watch.verdict()]).toEqual([true, "done"]);
    expect(watch.usage).toEqual({ input: { total: 3 }, output: { total: 4 } });
  });

  test("an empty stream is incomplete", () => expect(watchOf().verdict()).toBe("incomplete"));
});

test("errors are told in events that the official SDKs throw", () => {
  const error = { status: 502, message: "gone", type: "backend_error", code: 502, requestId: "r1" };
  const told = { error: { message: "gone", type: "backend_error", code: 502, request_id: "r1" } };
  for (const format of ["audio", "images"]) {
    const words = clientWords(format);
    expect(words.errorEvent(error)).toBe(`event: error\ndata: ${JSON.stringify({ type: "error", ...told })}\n\n`);
    expect(words.errorBody(error)).toEqual(told);
    expect(words.ownErrors).toBeUndefined();
  }
  expect(clientWords("chat").errorEvent(error)).toBe(`data: ${JSON.stringify(told)}\n\n`);
  expect(clientWords("rerank").errorEvent(error)).toBe(`data: ${JSON.stringify(told)}\n\n`);
});
