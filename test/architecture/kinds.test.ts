// One row per kind of backend: nothing outside of the rows asks for a kind by its name.

import { expect, test } from "bun:test";
import { BACKEND_KIND_NAMES } from "../../src/names.ts";
import { sourceFiles, sourceText } from "./source-files.ts";

/** Where names of kinds, or words that look like them, are at home. */
const AT_HOME: ReadonlyMap<string, string> = new Map([
  ["names.ts", "the names and their spellings"],
  ["presets.ts", "the rows of presets"],
  ["backends/bedrock/aws-credential.ts", "what AWS calls the service in signatures"],
  ["backends/bedrock/row.ts", "a row"],
  ["backends/vertex/row.ts", "a row"],
  ["backends/kinds.ts", "the rows"],
  ["api/welcome.ts", "whose SDKs the addresses are for"],
  ["config/sections/streaming.ts", "whose names of events a client gets"],
  ["demo/backend.ts", "the name of the model of the embedded backend"],
  ["protocols/images/stream-edits.ts", "whose names of events a client gets: a word of the configuration"],
]);

const NAMES = BACKEND_KIND_NAMES.join("|");

/** As a text, as a key of a table, and as a member of one. */
const NAMED = new RegExp(`"(?:${NAMES})"|(?:^|[{,])\\s*(?:${NAMES}):|BACKEND_KINDS\\.(?:${NAMES})\\b`);

/** What the documentation shows as an example is a word for people. */
const FOR_PEOPLE = /^\s*(?:\/\/|\*|\/\*)|\bexample: /;

test("kinds are asked for by what they can do, not by their names", async () => {
  const found: string[] = [];
  for (const file of sourceFiles) {
    if (AT_HOME.has(file)) continue;
    for (const [index, line] of (await sourceText(file)).split("\n").entries()) {
      if (NAMED.test(line) && !FOR_PEOPLE.test(line)) found.push(`${file}:${index + 1}: ${line.trim()}`);
    }
  }
  expect(found).toEqual([]);
});

test("the files that may name kinds do", async () => {
  for (const file of AT_HOME.keys())
    expect([file, (await sourceText(file)).split("\n").some((line) => NAMED.test(line))]).toEqual([file, true]);
});
