import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isCard, isIban, redacted, sensitiveIn } from "./sensitive.ts";

const letters = (count: number) => "sekret0123456789abcdef".repeat(4).slice(0, count);

describe("sensitive texts", () => {
  test.each([
    ["write to alice.b+c@mail.example.com.", "write to [redacted email]."],
    ["call +49 170 1234567 now", "call [redacted phone] now"],
    ["call (555) 123-4567", "call [redacted phone]"],
    ["card 4111 1111 1111 1111, please", "card [redacted card], please"],
    ["to DE89 3704 0044 0532 0130 00 today", "to [redacted iban] today"],
    ["key sk-sekret0123456789abcdef!", "key [redacted key]!"],
    ["AKIAIOSFODNN7EXAMPLE", "[redacted key]"],
  ])("%s", (text, expected) => {
    expect(redacted(text)).toBe(expected);
  });

  test.each([
    "version 1.2.3.4 of 2026-11-26, 12:30:15",
    "4111 1111 1111 1112",
    "DE89370400440532013001",
    "a total of 1234567890123",
    "see a@b and 100-200",
    "10.0.0.1:8080 and 3.141592653589793",
  ])("leaves %s", (text) => {
    expect(redacted(text)).toBe(text);
  });

  const samples = [
    ...["sk-", "sk_live_", "pk_test_", "rk_live_", "glpat-", "xoxb-", "hf_", "gsk_", "r8_"].map(
      (start) => start + letters(24),
    ),
    ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "npm_"].map((start) => start + letters(36)),
    ...["AKIA", "ASIA"].map((start) => start + letters(16).toUpperCase()),
    `AIza${letters(35)}`,
    `eyJ${letters(20)}.eyJ${letters(20)}.${letters(20)}`,
    `-----BEGIN PRIVATE KEY-----\n${letters(64)}\n-----END PRIVATE KEY-----`,
    `-----BEGIN RSA PRIVATE KEY-----\n${letters(64)}\n-----END RSA PRIVATE KEY-----`,
    ...["bob@example.org", "a.b+c@mail.example.co.uk", "_@x.io"],
    ...["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"],
    ...["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
    ...["+49 170 1234567", "+1.555.123.4567", "0170 1234567", "(030) 1234567", "(555) 123-4567", "(555)123.4567"],
    ...["555-123-4567", "555.123.4567"],
  ];

  test.each(samples)("are found wherever they stand: %p", (sample) => {
    expect(sensitiveIn(sample)).toMatchObject([{ start: 0, end: sample.length }]);
    const around = fc.string({ unit: fc.constantFrom(..."aZ09 .,;:!?-_@+()[]/\n"), maxLength: 40 });
    fc.assert(
      fc.property(around, around, (before, after) => {
        const text = `${before} \n${sample}\n ${after}`;
        const start = before.length + 2;
        const isCovered = sensitiveIn(text).some((found) => found.start <= start && found.end >= start + sample.length);
        expect(isCovered).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test("findings are in order, apart from each other, and nothing is found a second time", () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "bob@example.org",
        "+44 20 7946 0958",
        "5500 0000 0000 0004",
        "GB82WEST12345698765432",
        " ",
        "\n",
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join(" ");
        const findings = sensitiveIn(text);
        for (const [index, { start, end }] of findings.entries()) {
          expect(start).toBeLessThan(end);
          expect(start).toBeGreaterThanOrEqual(findings[index - 1]?.end ?? 0);
        }
        expect(sensitiveIn(redacted(text))).toEqual([]);
      }),
    );
  });

  test("a changed digit is noticed", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 1, max: 9 }), (place, by) => {
        const digits = [..."4111111111111111"];
        digits[place] = String((Number(digits[place]) + by) % 10);
        expect(isCard(digits.join(""))).toBe(false);
      }),
    );
    expect(isIban("GB82 WEST 1234 5698 7654 32")).toBe(true);
    expect(isIban("GB82 WEST 1234 5698 7654 33")).toBe(false);
  });

  test("a long text without any is read quickly enough to be read at all", () => {
    const hostile = ["+1".repeat(50_000), "a".repeat(100_000), "1-".repeat(50_000), `${"a.".repeat(50_000)}@`];
    for (const text of hostile) expect(sensitiveIn(text)).toEqual([]);
  });
});
