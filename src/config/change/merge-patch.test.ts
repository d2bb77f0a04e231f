// JSON merge patch: the examples of RFC 7396 and its laws.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mergePatch } from "./merge-patch.ts";

const EXAMPLES: [unknown, unknown, unknown][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

test.each(EXAMPLES)("RFC 7396, appendix A: %j with %j", (target, patch, result) => {
  expect(mergePatch(target, patch)).toEqual(result);
});

const json = fc.jsonValue({ maxDepth: 4 });

describe("laws", () => {
  test("a patch twice is a patch once, and arguments stay as they are", () => {
    fc.assert(
      fc.property(json, json, (target, patch) => {
        const before = JSON.stringify([target, patch]);
        const once = mergePatch(target, patch);
        expect(mergePatch(once, patch)).toEqual(once);
        expect(JSON.stringify([target, patch])).toBe(before);
      }),
    );
  });

  test("an empty patch of a mapping changes nothing; a patch without null is all there", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), fc.dictionary(fc.string(), fc.integer()), (target, patch) => {
        expect(mergePatch(target, {})).toEqual(target);
        expect(mergePatch(target, patch)).toMatchObject(patch);
      }),
    );
  });
});

test("prototypes are out of reach", () => {
  const patch = JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}');
  const merged = mergePatch({ a: 1 }, patch) as Record<string, unknown>;
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(merged.polluted).toBeUndefined();
  expect(Object.keys(merged).sort()).toEqual(["__proto__", "a", "constructor"]);
});

test("deep nesting is refused", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`);
  expect(() => mergePatch({}, deep)).toThrow(RangeError);
});
