import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { namePattern, TEST_GROUPS } from "./test-groups.ts";

const ROOT = join(import.meta.dir, "..");

test.each(TEST_GROUPS.map((group) => [group.name, group] as const))("%s: there are its files and tests", (_, group) => {
  const { paths, only = [] } = group;
  for (const path of paths.filter((path) => !path.endsWith(".ts")))
    expect(readdirSync(join(ROOT, path))).not.toEqual([]);
  const texts = paths.filter((path) => path.endsWith(".ts")).map((path) => readFileSync(join(ROOT, path), "utf8"));
  // The last word of a name may come from a list.
  const isThere = (name: string) => texts.some((text) => text.includes(name.replace(/ \(\w+\)$/, " (")));
  expect(only.filter((name) => !isThere(name))).toEqual([]);
});

test("the pattern matches whole names behind those of what is around them, whatever signs they have", () => {
  const pattern = new RegExp(namePattern(["a (plain)", "b.c"]));
  expect(["x a (plain)", "a (plain)", "b.c", "bxc", "a plain", "b.c more"].map((name) => pattern.test(name))).toEqual([
    ...[true, true, true, false, false, false],
  ]);
});
