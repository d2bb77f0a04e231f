import { describe, expect, test } from "bun:test";
import { ElementLines, ElementsFault } from "./json-elements.ts";

const encoder = new TextEncoder();

/** @param pieceBytes - how the bytes arrive */
function linesOf(text: string, pieceBytes = Number.POSITIVE_INFINITY): string {
  const lines = new ElementLines("requests");
  const bytes = encoder.encode(text);
  const pieces: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    for (const piece of lines.read(bytes.slice(start, start + pieceBytes))) pieces.push(piece.slice());
  }
  lines.end();
  return Buffer.concat(pieces).toString();
}

const TRICKY = `\n{ "requests" :\t[ {"a": "}]\\"\\\\", "b": [1, {"c": "é{["}]},\r\n{"d":\n[]\n} ] }\n`;

describe("ElementLines", () => {
  test("gives each object of the list on a line", () => {
    expect(linesOf('{"requests":[{"a":1},{"b":2}]}')).toBe('{"a":1}\n{"b":2}\n');
    expect(linesOf('{"requests":[]}')).toBe("");
  });

  test("reads the same wherever the bytes are split", () => {
    const whole = linesOf(TRICKY);
    expect(whole).toBe('{"a": "}]\\"\\\\", "b": [1, {"c": "é{["}]}\n{"d": [] }\n');
    for (let size = 1; size < TRICKY.length; size++) expect(linesOf(TRICKY, size)).toBe(whole);
  });

  test("knows how large the present object is", () => {
    const lines = new ElementLines("requests");
    Array.from(lines.read(encoder.encode('{"requests":[{"a":1},{"bc')));
    expect(lines.elementBytes).toBe(4);
  });

  test.each([
    ["", "ends too early"],
    ['{"requests":[{"a":1}', "ends too early"],
    ['{"requests":[{"a":', "ends too early"],
    ["[]", "only member"],
    ["{}", "only member"],
    ['{"request":[]}', "only member"],
    [`{"${"x".repeat(100)}":[]}`, "only member"],
    ['{"requests":[],"more":1}', "only member"],
    ['{"requests":[]}{', "only member"],
    ['{"requests":{}}', "needs a list as 'requests'"],
    ['{"requests":[1]}', "needs an object as requests[0]"],
    ['{"requests":[{},]}', "needs an object as requests[1]"],
    ['{"requests":[{}{}]}', "behind requests[0]"],
    ['{"requests":[{},{"a":"\n"}]}', "in a text of requests[1]"],
  ])("refuses %p", (text, told) => {
    expect(() => linesOf(text)).toThrow(ElementsFault);
    expect(() => linesOf(text)).toThrow(told);
  });
});
