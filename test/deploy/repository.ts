// The files of deploy, for the tests that look at them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

export const ROOT = join(import.meta.dir, "..", "..");
export const DEPLOY = join(ROOT, "deploy");

/** Paths of all files, from the root of the repository. */
export function deployFiles(): string[] {
  return readdirSync(DEPLOY, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .sort();
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** Every document of a YAML file; a mistake, a key that is given twice among them, throws. */
export function readYaml(path: string): unknown[] {
  return (
    parseAllDocuments(read(path), { uniqueKeys: true }) as Exclude<
      ReturnType<typeof parseAllDocuments>,
      { empty: true }
    >
  ).map((document) => {
    const problem = document.errors[0] ?? document.warnings[0];
    if (problem !== undefined) throw new Error(`${path}: ${problem.message}`);
    return document.toJS() as unknown;
  });
}

export interface ProgramRun {
  exitCode: number;
  output: string;
}

/** A program to its end, with all that it says. */
export async function runProgram(command: readonly string[], cwd = ROOT): Promise<ProgramRun> {
  const child = Bun.spawn([...command], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output: out + err };
}
