// The first configuration of the README is valid, and its mistakes are reported as the README shows them.

import { expect, test } from "bun:test";
import { checkedConfig } from "./checked-config.ts";
import { read } from "./repository.ts";

const [, chapter = ""] = /^## A first configuration\n([\s\S]*?)^## /m.exec(read("README.md")) ?? [];
const [, config = ""] = /^```yaml\n([\s\S]*?)^```/m.exec(chapter) ?? [];
const [, mistakes = ""] = /^```text\n([\s\S]*?)^```/m.exec(chapter) ?? [];

test("the configuration is accepted without a warning", async () => {
  const { exitCode, output } = await checkedConfig(config);
  expect(output).toMatch(/^\S*config\.yaml: nothing is wrong\n?$/);
  expect(exitCode).toBe(0);
});

test("without its variables it has the mistakes that are shown", async () => {
  const { exitCode, output } = await checkedConfig(config, false);
  expect(output.replaceAll(/\S*\/config\.yaml/g, "config.yaml").trim()).toBe(mistakes.trim());
  expect(exitCode).toBe(1);
});
