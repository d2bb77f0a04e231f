// Waits that stand in words.

import { expect, test } from "bun:test";
import { retryHint } from "./retry-hint.ts";

test.each([
  ["Please try again in 1.2s. Visit", 1200],
  ["please try again in 6ms.", 6],
  ["Try again in 1m26.4s", 86_400],
  ["try again in 2h", 7_200_000],
  ["try again in 20 seconds.", 20_000],
  ["Please try again in 7m12s, or", 432_000],
  ["try again later", undefined],
  ["try again in a minute", undefined],
  ["", undefined],
])("%s", (message, wait) => {
  expect(retryHint(message)).toBe(wait);
});
