// Programs from the npm registry, for those who run them: the coding agents and the S3 server of the tests, and the peer
// of the benchmark. They are too large for everybody's node_modules, so each is installed when it is first needed, at one
// exact version, into a cache of its own.

import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBounded } from "./run-bounded.ts";

const CACHE = join(import.meta.dir, "..", "node_modules", ".cache", "programs");

export interface NpmProgram {
  package: string;
  version: string;
  /** Name of the command that the package brings. */
  command: string;
}

export const CODEX: NpmProgram = { package: "@openai/codex", version: "0.169.0", command: "codex" };
export const CLAUDE_CODE: NpmProgram = { package: "@anthropic-ai/claude-code", version: "2.1.330", command: "claude" };
export const PORTKEY: NpmProgram = { package: "@portkey-ai/gateway", version: "1.15.2", command: "gateway" };
export const S3RVER: NpmProgram = { package: "s3rver", version: "3.7.1", command: "s3rver" };

/** Some hundred megabytes come from the registry. */
export const INSTALL_TIMEOUT_MS = 300_000;

function folderOf({ command, version }: NpmProgram): string {
  return join(CACHE, `${command}-${version}`);
}

/** Where the program's command is once it is installed. */
export function commandPath(program: NpmProgram): string {
  return join(folderOf(program), "node_modules", ".bin", program.command);
}

/** The path of the program's command. Fails when it cannot be installed. */
export async function installedProgram(program: NpmProgram): Promise<string> {
  const command = commandPath(program);
  if (existsSync(command)) return command;
  console.error(`installing ${program.package} ${program.version} into node_modules/.cache/programs, once`);
  // Half an installation must not look like a whole one.
  const folder = `${folderOf(program)}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const dependencies = { [program.package]: program.version };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  const environment = Object.fromEntries(Object.entries(process.env).map(([key, value]) => [key, value ?? ""]));
  const { exitCode, stderr } = await runBounded(
    ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts=false", "--loglevel=error"],
    { cwd: folder, environment, timeoutMs: INSTALL_TIMEOUT_MS },
  );
  if (exitCode !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(
      `${program.package} ${program.version} could not be installed (npm exited ${exitCode}):\n${stderr}`,
    );
  }
  rmSync(folderOf(program), { recursive: true, force: true });
  renameSync(folder, folderOf(program));
  if (!existsSync(command))
    throw new Error(`${program.package} ${program.version} brought no command ${program.command}`);
  return command;
}
