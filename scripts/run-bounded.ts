// Runs a program that is not ours to its end, in a process group of its own, and never longer than it was given.

import { spawn } from "node:child_process";

export interface BoundedOptions {
  cwd: string;
  /** All that it sees. */
  environment: Record<string, string>;
  timeoutMs: number;
}

export interface BoundedRun {
  exitCode: number;
  stdout: string;
  stderr: string;
}

const KEPT_OUTPUT = 4000;

/** For a program that may see all that this process does. */
export function ownEnvironment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).map(([key, value]) => [key, value ?? ""]));
}

export async function runBounded(command: readonly string[], options: BoundedOptions): Promise<BoundedRun> {
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.environment,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  /** Whatever it started goes with it. */
  const killGroup = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group has ended.
    }
  };
  process.on("exit", killGroup);
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    killGroup();
  }, options.timeoutMs);
  try {
    const exitCode = await new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code) => {
        // A helper that outlives it would hold its output open.
        killGroup();
        if (child.stdout.closed && child.stderr.closed) resolve(code ?? -1);
      });
      child.on("close", (code) => resolve(code ?? -1));
    });
    if (isLate) {
      const ends = `stdout: ${stdout.slice(-KEPT_OUTPUT)}\nstderr: ${stderr.slice(-KEPT_OUTPUT)}`;
      throw new Error(`${program} did not end within ${options.timeoutMs} ms\n${ends}`);
    }
    return { exitCode, stdout, stderr };
  } finally {
    clearTimeout(deadline);
    process.off("exit", killGroup);
  }
}
