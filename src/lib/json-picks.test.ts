// Values that are taken out of a JSON document while it arrives.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { JsonPicks } from "./json-picks.ts";

const encoder = new TextEncoder();

/** @param pieceBytes - how the bytes arrive, each piece in memory that is used again */
function picked(text: string, wanted: readonly string[], pieceBytes = Number.POSITIVE_INFINITY, maxBytes = 1_000_000) {
  const picks = new JsonPicks(wanted, maxBytes);
  const bytes = encoder.encode(text);
  const found: [path: string, text: string][] = [];
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    const piece = bytes.slice(start, start + pieceBytes);
    const taken = [...picks.read(piece)];
    piece.fill(0);
    for (const { path, bytes: value } of taken) found.push([path.join("."), Buffer.from(value).toString()]);
  }
  return { found, isWhole: picks.isWhole };
}

const DOCUMENT = ` {"name": "é{\\"", "metadata":\n{"state" : "OVER", "output": {"list": [ {"a": [1, {}]} , [2], "x,]", -1.5e3,null]}},
 "done":true , "state": "another"\t}\n`;
const WANTED = ["name", "metadata.state", "metadata.output.list.*", "done"];
const FOUND: [string, string][] = [
  ["name", '"é{\\""'],
  ["metadata.state", '"OVER"'],
  ["metadata.output.list.0", '{"a": [1, {}]}'],
  ["metadata.output.list.1", "[2]"],
  ["metadata.output.list.2", '"x,]"'],
  ["metadata.output.list.3", "-1.5e3"],
  ["metadata.output.list.4", "null"],
  ["done", "true"],
];

describe("JsonPicks", () => {
  test("gives the values at the places, wherever the bytes are split", () => {
    for (let size = 1; size <= DOCUMENT.length + 1; size++)
      expect(picked(DOCUMENT, WANTED, size)).toEqual({ found: FOUND, isWhole: true });
  });

  test("gives what JSON.parse gives at each place", () => {
    const at = (value: unknown, path: readonly string[]): unknown[] => {
      const [step, ...rest] = path;
      if (step === undefined) return [value];
      if (step === "*") return Array.isArray(value) ? value.flatMap((each) => at(each, rest)) : [];
      const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
      return isObject && Object.hasOwn(value, step) ? at((value as Record<string, unknown>)[step], rest) : [];
    };
    const name = fc.constantFrom("a", "b", "c");
    const { document } = fc.letrec((tie) => ({
      document: fc.oneof(
        { depthSize: "small", maxDepth: 4 },
        fc.jsonValue({ maxDepth: 0 }),
        tie("object"),
        tie("list"),
      ),
      object: fc.dictionary(name, tie("document"), { maxKeys: 3 }),
      list: fc.array(tie("document"), { maxLength: 3 }),
    }));
    const path = fc.array(fc.oneof(name, fc.constant("*")), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        document,
        path,
        fc.constantFrom(0, 2),
        fc.integer({ min: 1, max: 20 }),
        (value, wanted, indent, size) => {
          const { found } = picked(JSON.stringify(value, null, indent), [wanted.join(".")], size);
          const expected = JSON.stringify(at(value, wanted));
          expect(JSON.stringify(found.map(([, text]) => JSON.parse(text)))).toBe(expected);
        },
      ),
    );
  });

  test("passes over a value that is too long, and goes on behind it", () => {
    const text = JSON.stringify({ list: ["x".repeat(100), "short"] });
    for (const size of [1, 7, 1000]) expect(picked(text, ["list.*"], size, 50).found).toEqual([["list.1", '"short"']]);
  });

  test.each([
    ["nothing", ""],
    ["a page of HTML", "<html>{}</html>"],
    ["half a document", '{"list":[{"a":1},'],
    ["a bare value", "12"],
    ["something nested without end", "[".repeat(100_000)],
  ])("is not whole after %s", (_, text) => {
    expect(picked(text, ["list.*.b"])).toEqual({ found: [], isWhole: false });
  });
});
