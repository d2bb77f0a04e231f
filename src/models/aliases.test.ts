// Aliases: the whole name, a word of it, the default, and no chains.

import { expect, test } from "bun:test";
import { resolveAlias } from "./aliases.ts";

const ALIASES = {
  haiku: "small",
  opus: "big",
  "opus-5": "biggest",
  "claude-haiku-4-5": "exact",
  sonnet: "my-opus-copy",
  default: "other",
};

test.each([
  ["claude-haiku-4-5", false, "exact"],
  ["claude-haiku-4-5", true, "exact"],
  ["claude-haiku-4-5-20251001", false, "exact"],
  ["claude-3-5-haiku-latest", true, "small"],
  ["Claude-HAIKU", false, "small"],
  ["haiku", false, "small"],
  ["haikus", false, "other"],
  ["claude-opus-4-8", false, "big"],
  ["claude-opus-5", false, "biggest"],
  ["claude-opus-5[1m]", false, "biggest"],
  ["anthropic/claude-opus-5-5", false, "biggest"],
  ["gpt-4o", true, "gpt-4o"],
  ["gpt-4o", false, "other"],
  ["my-opus-copy", true, "my-opus-copy"],
  ["my-opus-copy", false, "my-opus-copy"],
  ["default", false, "other"],
  ["toString", true, "toString"],
])("%s (known: %p) is %s", (model, isKnown, expected) => {
  expect(resolveAlias(ALIASES, model, isKnown)).toBe(expected);
});

test("without aliases every name stays", () => {
  expect(resolveAlias({}, "claude-haiku-4-5", false)).toBe("claude-haiku-4-5");
  expect(resolveAlias({}, "default", false)).toBe("default");
});
