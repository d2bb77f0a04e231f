// The pieces of a stream: the same however its text came, of whole characters, and bounded.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { TextCutter } from "./text-cutter.ts";

const cuts = fc.record({
  by: fc.constantFrom("sentence" as const, "window" as const),
  hold: fc.integer({ min: 16, max: 80 }),
});
const word = fc.constantFrom(
  "Hi",
  ".",
  "! ",
  "?\n",
  "\r\n",
  " ",
  "e\u0301",
  "👩‍👩‍👧",
  "🇩🇪",
  "。",
  "”",
  "long".repeat(9),
  "\r",
  "好",
);
const text = fc.oneof(
  fc.array(word, { maxLength: 60 }).map((words) => words.join("")),
  fc.string({ maxLength: 300, unit: "grapheme" }),
);

function piecesOf(cutter: TextCutter, given: readonly string[]): string[] {
  const pieces = given.flatMap((part) => cutter.push(part));
  return [...pieces, cutter.end()];
}

/** Cut anywhere, inside of characters too. */
function partsOf(whole: string, places: readonly number[]): string[] {
  const at = [...places].map((place) => place % (whole.length + 1)).sort((first, second) => first - second);
  return [...at, whole.length].map((end, index) => whole.slice(at[index - 1] ?? 0, end));
}

describe("a text that comes in pieces", () => {
  test("is cut the same however it came, and nothing of it is lost", () => {
    fc.assert(
      fc.property(cuts, text, fc.array(fc.nat(400), { maxLength: 30 }), (cut, whole, places) => {
        const atOnce = piecesOf(new TextCutter(cut), [whole]);
        expect(piecesOf(new TextCutter(cut), partsOf(whole, places))).toEqual(atOnce);
        expect(atOnce.join("")).toBe(whole);
      }),
      { numRuns: 500 },
    );
  });

  test("is never cut inside of a character", () => {
    const ends = (whole: string) =>
      new Set([...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(whole)].map(({ index }) => index));
    fc.assert(
      fc.property(
        fc.record({
          by: fc.constantFrom("sentence" as const, "window" as const, "delta" as const),
          hold: fc.integer({ min: 16, max: 80 }),
        }),
        fc.array(word, { maxLength: 60 }).map((words) => words.join("")),
        fc.array(fc.nat(400), { maxLength: 30 }),
        (cut, whole, places) => {
          const starts = ends(whole);
          let at = 0;
          for (const piece of piecesOf(new TextCutter(cut), partsOf(whole, places))) {
            if (piece !== "") expect(starts.has(at)).toBe(true);
            at += piece.length;
          }
          expect(at).toBe(whole.length);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("is held back within the bound", () => {
    fc.assert(
      fc.property(cuts, text, fc.array(fc.nat(400), { maxLength: 30 }), (cut, whole, places) => {
        const cutter = new TextCutter(cut);
        let given = 0;
        let taken = 0;
        for (const part of partsOf(whole, places)) {
          given += part.length;
          taken += cutter.push(part).join("").length;
          expect(given - taken).toBeLessThanOrEqual(cutter.bound);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("ends pieces at sentences and lines", () => {
    const cutter = new TextCutter({ by: "sentence", hold: 100 });
    expect(cutter.push("One sentence. Another one! “Quoted.” Third\nline 3.5 is no end")).toEqual([
      "One sentence. ",
      "Another one! ",
      "“Quoted.” ",
      "Third\n",
    ]);
    expect(cutter.end()).toBe("line 3.5 is no end");
  });
});
