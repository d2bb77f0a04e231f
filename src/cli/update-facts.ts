// --update-facts: merges a price list into the facts about models of the data folder, and prints what has changed.

import { resolve } from "node:path";
import { readPlace } from "../backup/backup-source.ts";
import { BackupProblem, reasonOf } from "../backup/problem.ts";
import { readText } from "../config/files/read-text.ts";
import type { Environment } from "../config/values/expand.ts";
import { builtinFacts } from "../models/facts.ts";
import { factsFile, readFactsFile, writeFactsFile } from "../models/facts-file.ts";
import { mergeFacts } from "../models/merge-facts.ts";
import { readPriceList } from "../models/price-list.ts";
import { SERVICE_NAME } from "../names.ts";
import type { Command } from "./arguments.ts";

type UpdateFactsCommand = Extract<Command, { command: "update-facts" }>;

/** A list has thousands of models. */
const MAX_LINES = 200;

/** Returns the exit code. */
export async function updateFacts({ file, config }: UpdateFactsCommand, env: Environment): Promise<number> {
  const cwd = process.cwd();
  const source = resolve(cwd, file);
  const read = await readText(source);
  if ("message" in read) return fail([`${source} ${read.message}`]);
  const list = readPriceList(read.text);
  if ("problems" in list) return fail(list.problems.map((problem) => `${source}: ${problem}`));
  try {
    const { dataDir } = await readPlace({ path: config, env, cwd });
    const target = factsFile(dataDir);
    const present = await readFactsFile(target);
    if ("problems" in present) return fail(present.problems);
    const merged = mergeFacts(present.entries, list.entries, builtinFacts().entries);
    const tooMuch = await writeFactsFile(target, merged.entries);
    if (tooMuch !== undefined) return fail([`${target} ${tooMuch}`]);
    const { added, changed, unchanged, lines } = merged;
    const more = lines.length > MAX_LINES ? [`and ${lines.length - MAX_LINES} more`] : [];
    tell([
      ...lines.slice(0, MAX_LINES),
      ...more,
      `${target}: ${added} models added, ${changed} changed, ${unchanged} as before; ${list.skipped} of other vendors or uses are left out`,
      "A running gateway reads it within seconds.",
    ]);
    return 0;
  } catch (error) {
    return fail([error instanceof BackupProblem ? error.message : `the file system refuses it: ${reasonOf(error)}`]);
  }
}

function tell(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}

function fail(problems: readonly string[]): number {
  process.stderr.write(`${problems.map((problem) => `${SERVICE_NAME}: ${problem}`).join("\n")}\n`);
  return 1;
}
