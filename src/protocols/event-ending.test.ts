import { describe, expect, test } from "bun:test";
import { watchEnding } from "./event-ending.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (value: { type: string; [key: string]: unknown }) =>
  bytes(`event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);

describe("the end of a stream that has end events of its own", () => {
  test("messages end with message_stop", () => {
    const watch = watchEnding("messages", 1);
    expect(watch.saw(event({ type: "content_block_delta", delta: { text: 'say "message_stop"' } }))).toBe(false);
    expect(watch.verdict()).toBe("incomplete");
    expect(watch.saw(event({ type: "message_stop" }))).toBe(true);
    expect(watch.verdict()).toBe("done");
  });

  test.each(["response.completed", "response.incomplete", "response.failed"])("Responses end with %s", (type) => {
    const watch = watchEnding("responses", 1);
    expect(watch.saw(event({ type: "response.output_text.delta", delta: `"${type}"` }))).toBe(false);
    expect(watch.saw(event({ type, response: { output: ["x".repeat(100_000)] } }))).toBe(true);
    expect(watch.verdict()).toBe("done");
  });

  test("an error event at the end is the backend's own word", () => {
    for (const protocol of ["messages", "responses"] as const) {
      const watch = watchEnding(protocol, 1);
      watch.saw(event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }));
      expect(watch.verdict()).toBe("reported");
    }
  });

  test("a stream without an event is incomplete", () => {
    expect(watchEnding("messages", 1).verdict()).toBe("incomplete");
    const watch = watchEnding("responses", 1);
    watch.saw(bytes(": ping\n\n"));
    expect(watch.verdict()).toBe("incomplete");
  });

  test("chat and generateContent streams are watched by their chunks", () => {
    const watch = watchEnding("chat", 1);
    expect(watch.saw(bytes("data: [DONE]\n\n"))).toBe(true);
    expect(watchEnding("generate-content", 1).verdict()).toBe("incomplete");
  });
});
