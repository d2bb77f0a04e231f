// Programs from PyPI, for the benchmark: installed when they are first needed, at one exact version, into a virtual environment of
// their own beside the programs from npm.

import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CACHE, INSTALL_TIMEOUT_MS } from "./npm-programs.ts";
import { ownEnvironment, runBounded } from "./run-bounded.ts";

interface PythonProgram {
  package: string;
  /** Its optional parts. */
  extra: string;
  version: string;
  command: string;
}

export const LITELLM: PythonProgram = { package: "litellm", extra: "proxy", version: "1.106.2", command: "litellm" };

/** Where the program's command is once it is installed. */
export function pythonCommandPath({ command, version }: PythonProgram): string {
  return join(CACHE, `${command}-${version}`, "bin", command);
}

/** Fails where there is no Python 3, or the program cannot be installed. */
export async function installPythonProgram(program: PythonProgram): Promise<void> {
  const command = pythonCommandPath(program);
  if (existsSync(command)) return;
  const python = Bun.which("python3");
  if (python === null) throw new Error("there is no python3");
  console.error(`installing ${program.package} ${program.version} into node_modules/.cache/programs, once`);
  const folder = dirname(dirname(command));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  const wanted = `${program.package}[${program.extra}]==${program.version}`;
  // Scripts of a virtual environment name its folder, so it is made in place; the command comes last.
  const steps = [
    [python, "-m", "venv", folder],
    [join(folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", wanted],
  ];
  for (const step of steps) {
    const { exitCode, stderr } = await runBounded(step, {
      cwd: dirname(folder),
      environment: ownEnvironment(),
      timeoutMs: INSTALL_TIMEOUT_MS,
    });
    if (exitCode === 0) continue;
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`${wanted} could not be installed: ${stderr.trim().split("\n").at(-1)}`);
  }
}
