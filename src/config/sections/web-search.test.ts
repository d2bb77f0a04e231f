// Section web_search: off by itself, and a service without a key is a mistake.

import { expect, test } from "bun:test";
import { compileDocument } from "../compile/compile.ts";
import { CROSS_CHECKS } from "../compile/cross-checks.ts";
import type { Settings } from "./registry.ts";

function problemsOf(web_search: Record<string, unknown>): string[] {
  const { settings, problems } = compileDocument({ web_search }, {});
  const found = settings === undefined ? problems : CROSS_CHECKS.flatMap((check) => [...check(settings as Settings)]);
  return found.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

const KEY = "sekret-search-key";

const CASES: [web_search: Record<string, unknown>, problem: string | undefined][] = [
  [{}, undefined],
  [{ provider: "brave", api_key: KEY }, undefined],
  [{ provider: "exa", base_url: "http://127.0.0.1:1" }, undefined],
  [{ provider: "serper" }, "web_search.api_key: is missing; serper wants one"],
  [{ provider: "bing", api_key: KEY }, "web_search.provider"],
  [{ provider: "exa", api_key: KEY, base_url: "file:///etc" }, "web_search.base_url"],
  [{ max_rounds: 0 }, "web_search.max_rounds"],
  [{ max_results: 21 }, "web_search.max_results"],
];

test.each(CASES)("%j", (section, problem) => {
  const problems = problemsOf(section);
  expect(problems).toHaveLength(problem === undefined ? 0 : 1);
  if (problem !== undefined) expect(problems[0]).toStartWith(problem);
  expect(problems.join()).not.toContain(KEY);
});
