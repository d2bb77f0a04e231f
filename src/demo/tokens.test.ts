// The demo model's tokens, and the limits that are counted in them.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { limitText } from "./limit-text.ts";
import { countTokens, splitTokens } from "./tokens.ts";

const anyText = fc.oneof(fc.string({ unit: "binary" }), fc.lorem({ mode: "sentences" }));

test("words are tokens, long words several", () => {
  expect(splitTokens("Hello, you  there\n")).toEqual(["Hello,", " you", "  there", "\n"]);
  expect(splitTokens("internationalisation")).toEqual(["internat", "ionalisa", "tion"]);
  expect(splitTokens("")).toEqual([]);
});

test("tokens join to the text again, and counting agrees with splitting", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const tokens = splitTokens(text);
      expect(tokens.join("")).toBe(text);
      expect(countTokens(text)).toBe(tokens.length);
    }),
  );
});

test("a long run of white space does not slow the count", () => {
  const startedAt = performance.now();
  expect(countTokens(" ".repeat(2_000_000))).toBe(1);
  expect(performance.now() - startedAt).toBeLessThan(20_000); // a count that is quadratic takes minutes
});

test("limits cut where a model would have stopped", () => {
  const text = "one two three four";
  expect(limitText(text, { maxTokens: 2, stop: [] })).toEqual({ tokens: ["one", " two"], finishReason: "length" });
  expect(limitText(text, { maxTokens: 4, stop: [] }).finishReason).toBe("stop");
  expect(limitText(text, { maxTokens: undefined, stop: [" th", "four"] })).toEqual({
    tokens: ["one", " two"],
    finishReason: "stop",
  });
  // "three" is never written whole, so it cannot stop the text.
  expect(limitText(text, { maxTokens: 2, stop: ["three"] }).finishReason).toBe("length");
  expect(limitText(text, { maxTokens: 0, stop: [] })).toEqual({ tokens: [], finishReason: "length" });
  expect(limitText(text, { maxTokens: undefined, stop: ["one"] })).toEqual({ tokens: [], finishReason: "stop" });
});

test("a limited text is a beginning of the text, within the limit, without any stop sequence", () => {
  const limits = fc.record({
    maxTokens: fc.option(fc.nat(20), { nil: undefined }),
    stop: fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 4 }),
  });
  fc.assert(
    fc.property(anyText, limits, (text, { maxTokens, stop }) => {
      const limited = limitText(text, { maxTokens, stop });
      const written = limited.tokens.join("");
      expect(text.startsWith(written)).toBe(true);
      expect(limited.tokens.length).toBeLessThanOrEqual(maxTokens ?? Number.POSITIVE_INFINITY);
      expect(stop.some((sequence) => written.includes(sequence))).toBe(false);
    }),
  );
});
