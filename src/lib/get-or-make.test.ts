import { expect, test } from "bun:test";
import { getOrMake } from "./get-or-make.ts";

test("a value is made once, by its key", () => {
  const known = new Map<string, object>();
  const made: string[] = [];
  const make = (key: string) => ({ number: made.push(key) });
  const first = getOrMake(known, "a", make);
  expect(getOrMake(known, "a", make)).toBe(first);
  expect(getOrMake(known, "b", make)).not.toBe(first);
  expect(made).toEqual(["a", "b"]);
});
