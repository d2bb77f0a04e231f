import { expect, test } from "bun:test";
import fc from "fast-check";
import { WordHashes } from "./words.ts";

const hashes = new WordHashes();
const wordsOf = (...texts: string[]): number[] => [...hashes.of(texts)];

const ascii = fc.string({ unit: fc.constantFrom(...'abcXYZ019_ .-\n"@'), maxLength: 300 });

test("each different word has a hash, whatever its capital letters and its place are", () => {
  const all = wordsOf("tell me swan");
  expect(all).toEqual([...wordsOf("tell"), ...wordsOf("me"), ...wordsOf("swan")]);
  expect(wordsOf("TELL me, (Swan)!", "swan", "tell")).toEqual(all);
  expect(new Set(wordsOf("tell tel ell t l", "swan_1 swan 1")).size).toBe(8);
  expect(wordsOf("", " .-\n", "…")).toEqual([]);
});

test("words are the same beside signs that are no ASCII", () => {
  fc.assert(
    fc.property(ascii, (text) => {
      expect(wordsOf(`${text} …`)).toEqual(wordsOf(text));
    }),
  );
});

test("different words have different hashes", () => {
  const words = fc.uniqueArray(fc.stringMatching(/^[a-z0-9_äß]{1,12}$/), { maxLength: 300 });
  fc.assert(
    fc.property(words, (all) => {
      const found = new Set(wordsOf(all.join(" ")));
      expect(found.size).toBe(new Set(all.map((word) => word.normalize("NFKC").toLowerCase())).size);
    }),
  );
});

test("words of other writings are read in their usual form, and those without spaces by pairs", () => {
  expect(wordsOf("Grüße")).toEqual(wordsOf("GRÜßE"));
  expect(wordsOf("ﬁne")).toEqual(wordsOf("fine"));
  expect(wordsOf("東京都")).toEqual([...wordsOf("東京"), ...wordsOf("京都")]);
});

test("runs of letters are cut, pictures are left out, and so are words beyond a number", () => {
  const run = "x".repeat(64);
  expect(wordsOf(`${run}${run}xy`)).toEqual([...wordsOf(run), ...wordsOf("xy")]);
  expect(wordsOf("A1".repeat(2_000), "swan")).toEqual(wordsOf("swan"));
  const many = Array.from({ length: 3_000 }, (_, index) => `word${index}`);
  for (const sign of ["", " …"]) {
    const found = wordsOf(many.join(" ") + sign, "swan");
    expect(found).toHaveLength(2_000);
    expect(found[1_999]).toBe(wordsOf("word1999")[0] as number);
  }
});
