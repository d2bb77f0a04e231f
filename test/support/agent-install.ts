// Coding agents from the npm registry, for tests that run them. They are too large for everybody's node_modules, so each is
// installed when a test first needs it, at one exact version, into a cache of its own.

import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBounded } from "./run-bounded.ts";

const CACHE = join(import.meta.dir, "..", "..", "node_modules", ".cache", "agents");

export interface Agent {
  package: string;
  version: string;
  /** Name of the command that the package brings. */
  command: string;
}

export const CODEX: Agent = { package: "@openai/codex", version: "0.169.0", command: "codex" };
export const CLAUDE_CODE: Agent = { package: "@anthropic-ai/claude-code", version: "2.1.330", command: "claude" };

/** Some hundred megabytes come from the registry. */
export const INSTALL_TIMEOUT_MS = 300_000;

/** The path of the agent's command. Fails when it cannot be installed. */
export async function installedAgent(agent: Agent): Promise<string> {
  const name = `${agent.command}-${agent.version}`;
  const command = join(CACHE, name, "node_modules", ".bin", agent.command);
  if (existsSync(command)) return command;
  console.log(`installing ${agent.package} ${agent.version} into node_modules/.cache/agents, once`);
  // Half an installation must not look like a whole one.
  const folder = join(CACHE, `${name}.${process.pid}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const dependencies = { [agent.package]: agent.version };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  const environment = Object.fromEntries(Object.entries(process.env).map(([key, value]) => [key, value ?? ""]));
  const { exitCode, stderr } = await runBounded(
    ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts=false", "--loglevel=error"],
    { cwd: folder, environment, timeoutMs: INSTALL_TIMEOUT_MS },
  );
  if (exitCode !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`${agent.package} ${agent.version} could not be installed (npm exited ${exitCode}):\n${stderr}`);
  }
  rmSync(join(CACHE, name), { recursive: true, force: true });
  renameSync(folder, join(CACHE, name));
  if (!existsSync(command)) throw new Error(`${agent.package} ${agent.version} brought no command ${agent.command}`);
  return command;
}
