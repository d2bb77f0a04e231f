// The ends of streams that have end events of their own, and what such streams counted.

import { describe, expect, test } from "bun:test";
import { passThrough } from "./registry.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (value: { type: string; [key: string]: unknown }) =>
  bytes(`event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);
const watchOf = (protocol: string) => passThrough(protocol).watch({ choices: 1 });

describe("the end of a stream that has end events of its own", () => {
  test("messages end with message_stop", () => {
    const watch = watchOf("messages");
    watch.push(event({ type: "content_block_delta", delta: { text: 'say "message_stop"' } }));
    expect([watch.isDone, watch.verdict()]).toEqual([false, "incomplete"]);
    watch.push(event({ type: "message_stop" }));
    expect([watch.isDone, watch.verdict()]).toEqual([true, "done"]);
  });

  test.each(["response.completed", "response.incomplete", "response.failed"])("Responses end with %s", (type) => {
    const watch = watchOf("responses");
    watch.push(event({ type: "response.output_text.delta", delta: `"${type}"` }));
    expect(watch.isDone).toBe(false);
    watch.push(event({ type, response: { output: ["x".repeat(100_000)] } }));
    expect([watch.isDone, watch.verdict()]).toEqual([true, "done"]);
  });

  test("an error event at the end is the backend's own word", () => {
    for (const protocol of ["messages", "responses"]) {
      const watch = watchOf(protocol);
      watch.push(event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }));
      expect(watch.verdict()).toBe("reported");
    }
  });

  test("a stream without an event is incomplete", () => {
    expect(watchOf("messages").verdict()).toBe("incomplete");
    const watch = watchOf("responses");
    watch.push(bytes(": ping\n\n"));
    expect(watch.verdict()).toBe("incomplete");
  });

  test("chat and generateContent streams are watched by their chunks", () => {
    const watch = watchOf("chat");
    watch.push(bytes("data: [DONE]\n\n"));
    expect(watch.isDone).toBe(true);
    expect(watchOf("generate-content").verdict()).toBe("incomplete");
  });
});

test("a messages stream is counted at both ends, the later counts replacing the earlier", () => {
  const watch = watchOf("messages");
  const start = event({
    type: "message_start",
    message: { usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 1 } },
  });
  const delta = event({ type: "content_block_delta", delta: { text: 'a "message_delta" usage {}}' } });
  const end = event({ type: "message_delta", delta: {}, usage: { output_tokens: 7 } });
  for (const piece of [start, delta, end]) expect(watch.push(piece)).toBe(piece);
  expect(watch.usage).toEqual({ input: { total: 8, cacheRead: 3 }, output: { total: 7 } });
});

test("a Responses stream is counted by its last event, which has the ids of its items", () => {
  const watch = watchOf("responses");
  watch.push(event({ type: "response.created", response: { usage: null, output: [] } }));
  expect([watch.usage, watch.itemIds]).toEqual([undefined, []]);
  const response = { usage: { input_tokens: 4, output_tokens: 6 }, output: [{ id: "a" }, {}, { id: "b" }] };
  watch.push(event({ type: "response.completed", response }));
  expect(watch.usage).toEqual({ input: { total: 4 }, output: { total: 6 } });
  expect(watch.itemIds).toEqual(["a", "b"]);
});

test("whole answers", () => {
  const usageOf = (protocol: string, usage: object) => passThrough(protocol).usageOf?.({ usage });
  expect(usageOf("messages", { input_tokens: 1, output_tokens: 2 })?.output.total).toBe(2);
  expect(usageOf("responses", { input_tokens: 1, output_tokens: 2 })?.output.total).toBe(2);
});
