// Reviewed files that tests compare with. UPDATE_EXPECTED=1 writes them anew; the difference is then read in the commit.

import { expect } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const FOLDER = join(import.meta.dir, "expected");

/**
 * @param name - path of the file; one that ends with .json is compared by its value, any other one byte for byte
 * @param text - what it should hold
 */
export function expectAsReviewed(name: string, text: string): void {
  const path = join(FOLDER, name);
  if (process.env.UPDATE_EXPECTED === "1") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, name.endsWith(".json") ? `${JSON.stringify(JSON.parse(text), undefined, 2)}\n` : text);
  }
  const expected = readFileSync(path, "utf8");
  if (name.endsWith(".json")) expect(JSON.parse(text)).toEqual(JSON.parse(expected));
  else expect(text).toBe(expected);
}
