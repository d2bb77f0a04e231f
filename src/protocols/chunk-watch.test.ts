// What streams of chunks counted, and what of the counts the client does not see.

import { describe, expect, test } from "bun:test";
import { ChunkWatch } from "./chunk-watch.ts";
import { passThrough } from "./registry.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (events: Uint8Array | undefined) => (events === undefined ? undefined : new TextDecoder().decode(events));
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

const COUNTS = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
const WORD = data({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }] });
const LAST = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
const USAGE = data({ choices: [], usage: COUNTS });
const DONE = "data: [DONE]\n\n";

function run(watch: ChunkWatch, pieces: readonly string[]): string {
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
    const watch = new ChunkWatch({ choices: 1 });
    expect(run(watch, pieces)).toBe(pieces.join(""));
    expect(watch.usage).toEqual({ input: { total: 9 }, output: { total: 2 } });
  });

  test.each(cuts.map((pieces) => [pieces]))("loses only its usage chunk where the gateway asked: %j", (pieces) => {
    const watch = new ChunkWatch({ choices: 1, hidesUsage: true });
    expect(run(watch, pieces)).toBe(WORD + LAST + DONE);
    expect(watch.usage?.output.total).toBe(2);
  });

  test("counts in the finish chunk are read, and the chunk stays", () => {
    const finish = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: COUNTS });
    const watch = new ChunkWatch({ choices: 1, hidesUsage: true });
    expect(run(watch, [WORD, finish, DONE])).toBe(WORD + finish + DONE);
    expect(watch.usage?.input.total).toBe(9);
  });

  test("the last counts win, and a stream without any has none", () => {
    const watch = new ChunkWatch({ choices: 1 });
    run(watch, [data({ choices: [{}], usage: { ...COUNTS, completion_tokens: 1 } }), USAGE]);
    expect(watch.usage?.output.total).toBe(2);
    const none = new ChunkWatch({ choices: 1, hidesUsage: true });
    expect(run(none, [WORD, LAST, DONE])).toBe(WORD + LAST + DONE);
    expect(none.usage).toBeUndefined();
  });
});

test("whole answers", () => {
  const usageOf = passThrough("chat").usageOf;
  expect(usageOf?.({ usage: COUNTS })?.input.total).toBe(9);
  expect(usageOf?.({})).toBeUndefined();
});
