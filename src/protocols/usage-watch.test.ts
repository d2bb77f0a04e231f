import { describe, expect, test } from "bun:test";
import { UsageWatch, usageOfAnswer } from "./usage-watch.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (events: Uint8Array | undefined) => (events === undefined ? undefined : new TextDecoder().decode(events));
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const event = (value: { type: string; [key: string]: unknown }) => `event: ${value.type}\n${data(value)}`;

const COUNTS = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const WORD = data({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }] });
const LAST = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const USAGE = data({ choices: [], usage: COUNTS });
const DONE = "data: [DONE]\n\n";

function run(watch: UsageWatch, pieces: readonly string[]): string {
  return pieces.map((piece) => text(watch.push(bytes(piece))) ?? "").join("");
}

describe("a chat stream", () => {
  const cuts = [
    [WORD, LAST, USAGE, DONE],
    [WORD, LAST + USAGE, DONE],
    [WORD, LAST, USAGE + DONE],
    [WORD + LAST + USAGE + DONE],
  ];

  test.each(cuts.map((pieces) => [pieces]))("is counted and passes untouched where the client asked: %j", (pieces) => {
    const watch = new UsageWatch("chat", false);
    expect(run(watch, pieces)).toBe(pieces.join(""));
    expect(watch.usage).toEqual({ input: { total: 9 }, output: { total: 2 } });
  });

  test.each(cuts.map((pieces) => [pieces]))("loses only its usage chunk where the gateway asked: %j", (pieces) => {
    const watch = new UsageWatch("chat", true);
    expect(run(watch, pieces)).toBe(WORD + LAST + DONE);
    expect(watch.usage?.output.total).toBe(2);
  });

  test("counts in the finish chunk are read, and the chunk stays", () => {
    const finish = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: COUNTS });
    const watch = new UsageWatch("chat", true);
    expect(run(watch, [WORD, finish, DONE])).toBe(WORD + finish + DONE);
    expect(watch.usage?.input.total).toBe(9);
  });

  test("the last counts win, and a stream without any has none", () => {
    const watch = new UsageWatch("chat", false);
    run(watch, [data({ choices: [{}], usage: { ...COUNTS, completion_tokens: 1 } }), USAGE]);
    expect(watch.usage?.output.total).toBe(2);
    const none = new UsageWatch("chat", true);
    expect(run(none, [WORD, LAST, DONE])).toBe(WORD + LAST + DONE);
    expect(none.usage).toBeUndefined();
  });
});

test("a messages stream is counted at both ends, the later counts replacing the earlier", () => {
  const watch = new UsageWatch("messages", false);
  const start = event({
    type: "message_start",
    message: { usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 1 } },
  });
  const delta = event({ type: "content_block_delta", delta: { text: 'a "message_delta" usage {}}' } });
  const end = event({ type: "message_delta", delta: {}, usage: { output_tokens: 7 } });
  expect(run(watch, [start, delta, end])).toBe(start + delta + end);
  expect(watch.usage).toEqual({ input: { total: 8, cacheRead: 3 }, output: { total: 7 } });
});

test("a Responses stream is counted by its last event", () => {
  const watch = new UsageWatch("responses", false);
  run(watch, [
    event({ type: "response.created", response: { usage: null } }),
    event({ type: "response.completed", response: { usage: { input_tokens: 4, output_tokens: 6 } } }),
  ]);
  expect(watch.usage).toEqual({ input: { total: 4 }, output: { total: 6 } });
});

test("whole answers", () => {
  expect(usageOfAnswer("chat", { usage: COUNTS })?.input.total).toBe(9);
  expect(usageOfAnswer("messages", { usage: { input_tokens: 1, output_tokens: 2 } })?.output.total).toBe(2);
  expect(usageOfAnswer("responses", { usage: { input_tokens: 1, output_tokens: 2 } })?.output.total).toBe(2);
  expect(usageOfAnswer("chat", {})).toBeUndefined();
});
