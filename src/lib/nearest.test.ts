// "Did you mean": near words are found, far ones are not suggested.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { nearest } from "./nearest.ts";

test.each([
  ["tempature", "temperature"],
  ["bakends", "backends"],
  ["BACKENDS", "backends"],
  ["loging", "logging"],
  ["backedns", "backends"],
])("%s is taken for %s", (word, expected) => {
  expect(nearest(word, ["temperature", "backends", "logging"])).toBe(expected);
});

test("the nearest of several near ones is chosen, the first of equally near ones", () => {
  expect(nearest("first_bite", ["first_bits", "first_byte"])).toBe("first_bits");
  expect(nearest("timeouts", ["timeout", "timeouts_", "timeouts"])).toBe("timeouts");
});

test("short words may differ in two letters, longer ones in a third of their length, and no more", () => {
  expect(nearest("abc", ["axy"])).toBe("axy");
  expect(nearest("abc", ["xyz"])).toBeUndefined();
  expect(nearest("abcdefghi", ["xyzdefghi"])).toBe("xyzdefghi");
  expect(nearest("abcdefghi", ["wxyzefghi"])).toBeUndefined();
});

test("without candidates there is no suggestion", () => {
  expect(nearest("word", [])).toBeUndefined();
});

test("property: one letter put in, taken out or changed is always found again", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c", "d"), minLength: 4, maxLength: 20 });
  fc.assert(
    fc.property(word, fc.nat({ max: 19 }), fc.constantFrom("insert", "remove", "change"), (original, place, edit) => {
      const at = place % original.length;
      const mistyped =
        original.slice(0, at) + (edit === "remove" ? "" : "x") + original.slice(edit === "insert" ? at : at + 1);
      expect(nearest(mistyped, [original, "something entirely different"])).toBe(original);
    }),
  );
});
