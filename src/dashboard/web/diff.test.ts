// Differences between texts: applied to the one they give the other, and they are few.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { condense, type DiffLine, diffLines } from "./diff.ts";

const SIGNS = { same: " ", removed: "-", added: "+" } as const;
const shown = (diff: readonly DiffLine[]) => diff.map(({ kind, text }) => SIGNS[kind] + text);

test.each([
  ["a", "a", [" a"]],
  ["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
  ["a\nc", "a\nb\nc", [" a", "+b", " c"]],
  ["a\nb\nc", "a\nc", [" a", "-b", " c"]],
  ["", "a", ["-", "+a"]],
  ["a\na", "a", [" a", "-a"]],
])("%j -> %j", (before, after, expected) => expect(shown(diffLines(before, after))).toEqual(expected));

test("both texts can be read from it", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 30 }).map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const diff = diffLines(before, after);
      const without = (kind: DiffLine["kind"]) => diff.filter((line) => line.kind !== kind).map((line) => line.text);
      expect(without("added").join("\n")).toBe(before);
      expect(without("removed").join("\n")).toBe(after);
    }),
  );
});

test("texts that are too large to be compared line by line are exchanged", () => {
  const before = Array.from({ length: 3_000 }, (_, index) => `old ${index}`).join("\n");
  const after = Array.from({ length: 3_000 }, (_, index) => `new ${index}`).join("\n");
  const diff = diffLines(`first\n${before}\nlast`, `first\n${after}\nlast`);
  expect(diff.length).toBe(6_002);
  expect(diff[0]).toEqual({ kind: "same", text: "first" });
});

describe("condense", () => {
  const lines = (texts: readonly (DiffLine | null)[]) => texts.map((line) => (line === null ? "…" : line.text));

  test("leaves out what is far from a change", () => {
    const before = Array.from({ length: 20 }, (_, index) => String(index)).join("\n");
    expect(lines(condense(diffLines(before, before.replace("10", "ten")), 2))).toEqual([
      "…",
      ..."8 9 10 ten 11 12".split(" "),
      "…",
    ]);
  });

  test("without a change nothing is left", () => expect(condense(diffLines("a\nb", "a\nb"))).toEqual([null]));
});
