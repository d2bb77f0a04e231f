// Every configuration of docs/recipes.md is one, without a warning, and the chapters that point elsewhere have one.

import { expect, test } from "bun:test";
import { parse } from "yaml";
import { checkedConfig } from "./checked-config.ts";
import { read } from "./repository.ts";

const recipes = read("docs/recipes.md")
  .split(/^## /m)
  .slice(1)
  .map((chapter) => ({
    title: chapter.slice(0, chapter.indexOf("\n")),
    configs: [...chapter.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, config = ""]) => config),
  }));

test("there is one for each of those", () => {
  expect(recipes.map(({ title }) => title)).toEqual([
    "Claude Code over vLLM",
    "Codex over Anthropic",
    "From your own GPUs to a hosted API",
    "Several teams with budgets of requests",
    "Sharing a GPU room fairly",
    "Several gateways with shared limits",
    "From LiteLLM",
    "From Portkey",
  ]);
});

test.each(recipes)("$title", async ({ configs }) => {
  expect(configs).toHaveLength(1);
  const { exitCode, output } = await checkedConfig(configs[0] as string);
  expect(output).toContain("nothing is wrong");
  expect(output).not.toMatch(/warn|without effect/i);
  expect(exitCode).toBe(0);
});

test("aliases are for clients of Messages alone", () => {
  const withAliases = recipes.filter(({ configs }) => configs.some((config) => config.includes("model_aliases:")));
  expect(withAliases.map(({ title }) => title)).toEqual(["Claude Code over vLLM"]);
});

test.each(recipes)("$title: chains and aliases lead to models that a backend has", ({ configs }) => {
  const config = parse(configs[0] as string) as {
    backends: { models?: string[]; deployments?: Record<string, string> }[];
    fallback?: { fallback_chains?: Record<string, string[]> };
    model_aliases?: Record<string, string>;
  };
  const models = config.backends.flatMap(({ models = [], deployments = {} }) => [
    ...models,
    ...Object.keys(deployments),
  ]);
  const chains = Object.entries(config.fallback?.fallback_chains ?? {}).flat(2);
  expect([...chains, ...Object.values(config.model_aliases ?? {})].filter((name) => !models.includes(name))).toEqual(
    [],
  );
});
