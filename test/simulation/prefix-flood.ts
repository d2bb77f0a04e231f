// The long form: sh bin/bun test/simulation/prefix-flood.ts [--prefixes 10000000]. Prompts that nobody asks twice go through
// the index, events that name made-up hashes among them; ends with 0 if memory stays where it was after the first tenth.

import { parseArgs } from "node:util";
import { flood } from "./prefix-flood-run.ts";

const { values } = parseArgs({ options: { prefixes: { type: "string", default: "10000000" } } });

const { prefixes, entries, maxEntries, rssBytes } = flood(Number(values.prefixes), (done, rss) =>
  console.log(`${done} prefixes: ${(rss / 2 ** 20).toFixed(1)} MB`),
);
const [first = 0, ...later] = rssBytes;
const grownBytes = Math.max(...later) - first;
console.log({ prefixes, entries, maxEntries, grownMegabytes: Math.round(grownBytes / 2 ** 20) });
process.exitCode = entries <= maxEntries && grownBytes < 32 * 2 ** 20 ? 0 : 1;
