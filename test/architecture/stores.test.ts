// What keeps facts offers them as typed reads: how they are asked for, told and refused is the business of the admin API.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

const STORES = ["stats", "request-log", "metrics", "prompts", "health", "response-cache"];

/** A query, a refusal, an answer. */
const HTTP = /\bURLSearchParams\b|\bGatewayError\b|\bnew Response\b|\bResponse\.json\b/;

test("stores know no HTTP", async () => {
  const found: string[] = [];
  for (const file of sourceFiles) {
    if (STORES.includes(file.split("/")[0] as string) && HTTP.test(await sourceText(file))) found.push(file);
  }
  expect(found).toEqual([]);
});
