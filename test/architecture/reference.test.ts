// The reference of the configuration is that of the schema.

import { expect, test } from "bun:test";
import { REFERENCE_PAGE, renderReference } from "../../scripts/reference-page.ts";
import { SECTION_NAMES } from "../../src/config/sections/registry.ts";

test("docs/reference.md is up to date; else run: sh bin/bun scripts/reference.ts", async () => {
  expect(await Bun.file(REFERENCE_PAGE).text()).toBe(renderReference());
});

test("it has every section and every key", () => {
  const page = renderReference();
  for (const name of SECTION_NAMES) expect(page).toContain(`\n## ${name}\n`);
  for (const key of [
    "server.cors.allowed_origins",
    "backends[].model_configs[].metadata.pricing.input_tokens",
    "circuit_breaker.backends.<name>.timeout",
    "api_keys.keys[].previous.expires_at",
    "model_aliases.<name>",
    "response_cache.tiered.l2.bucket",
  ]) {
    expect(page).toContain(`| \`${key}\``);
  }
  expect(page).toContain("| `api_keys.keys[].key` **S** |");
  expect(page).toContain("| `server.data_dir` **R** **F** |");
});
