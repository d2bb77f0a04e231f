// Signatures of the gateway: what they hold, and what becomes of forged ones.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isForeignMark, unwrapSeal, unwrapSnippet, wrapSeal, wrapSnippet } from "./foreign-seal.ts";

describe("seals", () => {
  test("come back as they were, in letters that every client keeps", () => {
    const origin = fc.constantFrom("responses" as const, "generate-content" as const, "chat" as const);
    const seal = fc.record(
      { origin, signature: fc.string(), sealed: fc.string(), itemId: fc.string() },
      { requiredKeys: ["origin", "sealed"] },
    );
    fc.assert(
      fc.property(seal, (value) => {
        const wrapped = wrapSeal(value);
        expect(wrapped).toMatch(/^sbx1_[A-Za-z0-9_-]*$/);
        expect(unwrapSeal(wrapped)).toEqual(value);
      }),
    );
  });

  test("nothing sealed is the mark alone, and so is too much", () => {
    expect(wrapSeal({})).toBe("sbx1_");
    expect(wrapSeal({ origin: "responses" })).toBe("sbx1_");
    expect(wrapSeal({ origin: "responses", sealed: "x".repeat(300_000) })).toBe("sbx1_");
    expect(unwrapSeal("sbx1_")).toEqual({});
  });

  test("what was tampered with is empty", () => {
    const forged = (value: unknown) => `sbx1_${Buffer.from(JSON.stringify(value)).toString("base64url")}`;
    for (const value of [null, 1, [], {}, { o: "elsewhere", d: "x" }, { o: 5, d: "x" }, { o: "chat", d: 5 }]) {
      expect(unwrapSeal(forged(value))).toEqual({});
    }
    expect(unwrapSeal("sbx1_%%%")).toEqual({});
    expect(unwrapSeal("other")).toEqual({});
  });

  test("snippets are bounded", () => {
    expect(unwrapSnippet(wrapSnippet("abc"))).toBe("abc");
    expect(unwrapSnippet(wrapSnippet(undefined))).toBeUndefined();
    expect(wrapSnippet("x".repeat(1_000_000)).length).toBeLessThan(12_000);
    expect([isForeignMark(wrapSnippet("a")), isForeignMark("E"), isForeignMark(undefined)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
