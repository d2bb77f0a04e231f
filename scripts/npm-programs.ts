// Programs from the npm registry, for those who run them: the coding agents, the S3 server, what looks at the dashboard and
// the definitions of OTLP for the tests, and the peer of the benchmark. They are too large for every user's node_modules, so
// each is installed when it is first needed, at one exact version, into a cache of its own.

import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownEnvironment, runBounded } from "./run-bounded.ts";

export const CACHE = join(import.meta.dir, "..", "node_modules", ".cache", "programs");

export interface NpmPackage {
  package: string;
  version: string;
}

export interface NpmProgram extends NpmPackage {
  /** Name of the command that the package brings. */
  command: string;
}

export const CODEX: NpmProgram = { package: "@openai/codex", version: "0.169.0", command: "codex" };
export const CLAUDE_CODE: NpmProgram = { package: "@anthropic-ai/claude-code", version: "2.1.330", command: "claude" };
export const PORTKEY: NpmProgram = { package: "@portkey-ai/gateway", version: "1.15.2", command: "gateway" };
export const S3RVER: NpmProgram = { package: "s3rver", version: "3.7.1", command: "s3rver" };
/** The last versions that bring the code that protobufjs has generated from opentelemetry-proto, in both directions. */
export const OTLP_DEFINITIONS: NpmPackage = {
  package: "@opentelemetry/otlp-transformer",
  version: "0.203.0",
};

export const MCP_EVERYTHING: NpmProgram = {
  package: "@modelcontextprotocol/server-everything",
  version: "2026.8.31",
  command: "mcp-server-everything",
};
/** Drives a browser that is there already. */
export const PLAYWRIGHT: NpmPackage = { package: "playwright-core", version: "1.65.1" };
/** Looks for barriers to people who cannot see, point or tell colours apart. */
export const AXE: NpmPackage = { package: "axe-core", version: "4.14.1" };

/** Some hundred megabytes come from the registry. */
export const INSTALL_TIMEOUT_MS = 300_000;

function folderOf(wanted: NpmPackage | NpmProgram): string {
  const name = "command" in wanted ? wanted.command : wanted.package.replaceAll("/", "-");
  return join(CACHE, `${name}-${wanted.version}`);
}

/** Where the program's command is once it is installed. */
export function commandPath(program: NpmProgram): string {
  return join(folderOf(program), "node_modules", ".bin", program.command);
}

/** The path of the program's command. Fails when it cannot be installed. */
export async function installedProgram(program: NpmProgram): Promise<string> {
  const command = commandPath(program);
  if (existsSync(command)) return command;
  await install(program);
  if (!existsSync(command))
    throw new Error(`${program.package} ${program.version} brought no command ${program.command}`);
  return command;
}

/** The folder of a package that is no program. Fails when it cannot be installed. */
export async function installedPackage(wanted: NpmPackage): Promise<string> {
  const folder = join(folderOf(wanted), "node_modules", wanted.package);
  if (!existsSync(folder)) await install(wanted);
  return folder;
}

async function install(program: NpmPackage): Promise<void> {
  console.error(`installing ${program.package} ${program.version} into node_modules/.cache/programs, once`);
  // Half an installation must not look like a whole one.
  const folder = `${folderOf(program)}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const dependencies = { [program.package]: program.version };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  const { exitCode, stderr } = await runBounded(
    ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts=false", "--loglevel=error"],
    { cwd: folder, environment: ownEnvironment(), timeoutMs: INSTALL_TIMEOUT_MS },
  );
  if (exitCode !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(
      `${program.package} ${program.version} could not be installed (npm exited ${exitCode}):\n${stderr}`,
    );
  }
  rmSync(folderOf(program), { recursive: true, force: true });
  renameSync(folder, folderOf(program));
}
