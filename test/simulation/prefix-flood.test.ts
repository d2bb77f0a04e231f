// The short form of prefix-flood.ts.

import { expect, test } from "bun:test";
import { flood } from "./prefix-flood-run.ts";

test("three hundred thousand distinct prefixes take no more memory than the index may", () => {
  const { entries, maxEntries, bytes, rssBytes } = flood(300_000);
  expect(entries).toBe(maxEntries);
  expect(bytes.bytes).toBeLessThanOrEqual(bytes.maxBytes + 8);
  const half = rssBytes[rssBytes.length >> 1] as number;
  expect((rssBytes.at(-1) as number) - half).toBeLessThan(48 * 2 ** 20);
});
