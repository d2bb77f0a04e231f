// What is said of presets elsewhere follows from their table.

import { expect, test } from "bun:test";
import { BACKENDS_PAGE, withPresets } from "../../scripts/presets-page.ts";
import { BACKEND_KINDS } from "../../src/backends/kinds.ts";
import { BACKEND_KIND_SPELLINGS } from "../../src/names.ts";
import { PRESETS, type Preset } from "../../src/presets.ts";

const rows = Object.entries<Preset>(PRESETS);

test("docs/backends.md has the table; else run: sh bin/bun scripts/presets.ts", async () => {
  const page = await Bun.file(BACKENDS_PAGE).text();
  expect(page).toBe(withPresets(page));
});

test("no spelling means two types", () => {
  expect(BACKEND_KIND_SPELLINGS.length).toBe(new Set(BACKEND_KIND_SPELLINGS).size);
});

test.each(rows)("%s has an address, and a key where it is a vendor's", (name, { url, urlForm, key, serves }) => {
  const address = url ?? urlForm ?? "";
  expect(address).toMatch(key === undefined ? /^http:\/\/127\.0\.0\.1:\d+\// : /^https:\/\//);
  expect(serves[0]).toBe("chat");
  // The address and the path behind it are those of the documentation.
  const kind = BACKEND_KINDS[name as keyof typeof PRESETS];
  expect(`${address}/chat/completions`).toEndWith(kind.paths.chat ?? "?");
});
