// A file that is replaced: whole, with its mode, or as it was.

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceFile } from "./replace-file.ts";

const folder = mkdtempSync(join(tmpdir(), "replace-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the new content stands in place of the old one, with its mode, and nothing else is left", async () => {
  const path = join(folder, "file");
  writeFileSync(path, "old and longer", { mode: 0o644 });
  await replaceFile(path, "new", 0o600);
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["file"]);
});

test("what cannot be replaced stays, and nothing is left beside it", async () => {
  const inner = join(folder, "inner");
  mkdirSync(join(inner, "taken"), { recursive: true });
  await expect(replaceFile(join(inner, "taken"), "new", 0o600)).rejects.toMatchObject({ code: "EISDIR" });
  await expect(replaceFile(join(inner, "missing", "file"), "new", 0o600)).rejects.toMatchObject({ code: "ENOENT" });
  expect(readdirSync(inner)).toEqual(["taken"]);
});
