// Whether a stream was complete: its marks, wherever the pieces were cut, and what only looks like them.

import { describe, expect, test } from "bun:test";
import { isWholeEvent, StreamEnding } from "./stream-ending.ts";

const encoder = new TextEncoder();

const DONE = "data: [DONE]\n\n";
const USAGE = 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n';

function chunk(content: string, finishReason: string | null = null, index = 0): string {
  return `data: ${JSON.stringify({ choices: [{ index, delta: { content }, finish_reason: finishReason }] })}\n\n`;
}

function verdict(pieces: readonly string[], choices = 1): string {
  const ending = new StreamEnding(choices);
  for (const piece of pieces) ending.saw(encoder.encode(piece));
  return ending.verdict();
}

describe("verdicts", () => {
  const cases: [title: string, pieces: string[], expected: string][] = [
    ["a stream with its marker", [chunk("a"), chunk("", "stop"), DONE], "done"],
    ["the marker without the space", [chunk("a"), "data:[DONE]\n\n"], "done"],
    ["the marker with CRLF", [chunk("a"), "data: [DONE]\r\n\r\n"], "done"],
    ["everything in one piece", [chunk("a") + chunk("", "stop") + DONE], "done"],
    ["a comment behind the marker", [chunk("a"), DONE, ": bye\n\n"], "done"],
    ["finished, without the marker", [chunk("a"), chunk("", "length")], "finished"],
    ["finished, then usage, without the marker", [chunk("a"), chunk("", "stop"), USAGE], "finished"],
    ["finished, then many comments", [chunk("", "stop"), ...Array<string>(9).fill(": ping\n\n")], "finished"],
    ["cut in the middle", [chunk("a"), chunk("b")], "incomplete"],
    ["nothing at all", [], "incomplete"],
    ["an error event", [chunk("a"), 'data: {"error":{"message":"x"}}\n\n'], "reported"],
    ["an error event that is not its first field", [chunk("a"), 'data: {"id":1,"error":"x"}\n\n'], "reported"],
    ["an error event, then the marker", [chunk("a"), 'data: {"error":{"message":"x"}}\n\n', DONE], "reported"],
    ["an error that is null", [chunk("a"), 'data: {"error":null,"choices":[]}\n\n'], "incomplete"],
    ["text about the marker", [chunk("data: [DONE]\n\n")], "incomplete"],
    ["text about a finish reason", [chunk('"finish_reason":"stop"')], "incomplete"],
    ["text about an error", [chunk('data: {"error":{"message":"x"}}')], "incomplete"],
  ];
  test.each(cases)("%s", (_title, pieces, expected) => {
    expect(verdict(pieces)).toBe(expected);
  });

  test("of several choices every one must have finished", () => {
    const one = chunk("", "stop", 0);
    expect(verdict([one, chunk("b", null, 1)], 2)).toBe("incomplete");
    expect(verdict([one, chunk("b", null, 1), chunk("", "stop", 1)], 2)).toBe("finished");
    expect(verdict([one, one], 2)).toBe("incomplete");
  });

  test("a choice that finished long before the others is remembered", () => {
    const others = Array.from({ length: 10 }, (_, index) => chunk(`${index}`, null, 1));
    expect(verdict([chunk("", "stop", 0), ...others, chunk("", "stop", 1)], 2)).toBe("finished");
  });

  test("a backend that makes up choices neither fills the memory nor finishes the answer", () => {
    const ending = new StreamEnding(2);
    for (let index = 2; index < 5_000; index++) ending.saw(encoder.encode(chunk("", "stop", index)));
    for (const index of ["x", "y", {}, [], -1, 0.5]) {
      ending.saw(encoder.encode(chunk("", "stop", index as unknown as number)));
    }
    expect(ending.verdict()).toBe("incomplete");
    ending.saw(encoder.encode(chunk("", "stop", 0) + chunk("", "stop", 1)));
    expect(ending.verdict()).toBe("finished");
  });

  test("a long last event is read whole", () => {
    const content = "x".repeat(20_000);
    const event = `data: ${JSON.stringify({ choices: [{ finish_reason: "stop", index: 0, delta: { content } }] })}\n\n`;
    expect(verdict([event])).toBe("finished");
  });
});

describe("seeing the end", () => {
  const cases: [piece: string, isEnd: boolean][] = [
    [DONE, true],
    ["data: [DONE]\r\n\r\n", true],
    ["data: [DONE]\r\r", true],
    ["data:[DONE]\n\n", true],
    [chunk("a") + DONE, true],
    [chunk("a"), false],
    [chunk("[DONE]"), false],
    ["data: [1]\n\n", false],
    ["data: x [DONE]\n\n", false],
    [": [DONE]\n\n", false],
    [DONE + chunk("a"), false],
  ];
  test.each(cases)("%j: %p", (piece, isEnd) => {
    expect(new StreamEnding(1).saw(encoder.encode(piece))).toBe(isEnd);
  });
});

describe("an event that only lacks its empty line", () => {
  test.each([
    ['data: {"a":1}'],
    ['data:{"a":1}\n'],
    ["data: [DONE]"],
    ["data: [DONE]\r\n"],
    ['event: x\ndata: {"a":1}\n'],
  ])("%j is whole", (text) => {
    expect(isWholeEvent(encoder.encode(text))).toBe(true);
  });

  test("no beginning of an event is whole", () => {
    const event = chunk('a}\\"]', "stop").trimEnd();
    for (let length = 0; length < event.length; length++) {
      expect([length, isWholeEvent(encoder.encode(event.slice(0, length)))]).toEqual([length, false]);
    }
    expect(isWholeEvent(encoder.encode(event))).toBe(true);
    for (const text of ["data: [DON", "data", ": comment", "data: 1"]) {
      expect(isWholeEvent(encoder.encode(text))).toBe(false);
    }
  });
});
