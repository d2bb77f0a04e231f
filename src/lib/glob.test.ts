// Globs against a textbook matcher, and against texts that would make backtracking explode.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compileGlob, isGlob } from "./glob.ts";

/** The textbook table: quadratic, obviously right. */
function referenceMatch(pattern: string, text: string): boolean {
  let row = Array.from({ length: text.length + 1 }, (_, length) => length === 0);
  for (const symbol of pattern) {
    const next = [symbol === "*" && (row[0] as boolean)];
    for (let length = 1; length <= text.length; length++) {
      next[length] =
        symbol === "*"
          ? (next[length - 1] as boolean) || (row[length] as boolean)
          : (row[length - 1] as boolean) && text[length - 1] === symbol;
    }
    row = next;
  }
  return row[text.length] as boolean;
}

const word = (alphabet: string) =>
  fc.array(fc.constantFrom(...alphabet), { maxLength: 14 }).map((letters) => letters.join(""));

describe("compileGlob", () => {
  test("matches what the pattern says", () => {
    expect(compileGlob("gpt-4o*")("gpt-4o-mini")).toBe(true);
    expect(compileGlob("gpt-4o*")("gpt-4o")).toBe(true);
    expect(compileGlob("*-mini")("gpt-4o-mini")).toBe(true);
    expect(compileGlob("claude-*-sonnet-*")("claude-4-sonnet-x")).toBe(true);
    expect(compileGlob("claude-*-sonnet-*")("claude-sonnet-x")).toBe(false);
    expect(compileGlob("*")("")).toBe(true);
    expect(compileGlob("plain")("plain")).toBe(true);
    expect(compileGlob("plain")("plainer")).toBe(false);
  });

  test("gives no meaning to other special characters", () => {
    expect(compileGlob("a.b*")("axb")).toBe(false);
    expect(compileGlob("a?[b]$*")("a?[b]$c")).toBe(true);
  });

  test("does not use one character for two literals", () => {
    expect(compileGlob("ab*ba")("aba")).toBe(false);
    expect(compileGlob("a*b*b")("ab")).toBe(false);
  });

  test("agrees with the reference for any pattern and text", () => {
    fc.assert(
      fc.property(word("ab*"), word("ab"), (pattern, text) => {
        expect(compileGlob(pattern)(text)).toBe(referenceMatch(pattern, text));
      }),
      { numRuns: 3000 },
    );
  });

  test("always matches a text made from the pattern", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), fc.infiniteStream(fc.string()), (literals, fillings) => {
        const plain = literals.map((literal) => literal.replaceAll("*", ""));
        const text = plain.reduce((soFar, literal) => soFar + (fillings.next().value as string) + literal);
        expect(compileGlob(plain.join("*"))(text)).toBe(true);
      }),
    );
  });

  test("stays fast where backtracking would never end", () => {
    const matches = compileGlob(`${"a*".repeat(2_000)}b`);
    const text = "a".repeat(200_000);
    const startedAt = performance.now();
    expect(matches(`${text}c`)).toBe(false);
    expect(matches(`${text}b`)).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(20_000); // backtracking would take longer than the test may
  });
});

test("isGlob tells patterns from names", () => {
  expect(isGlob("gpt-*")).toBe(true);
  expect(isGlob("gpt-4o")).toBe(false);
});
