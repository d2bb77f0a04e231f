// A server program that a test runs for itself: in a folder of its own, in the foreground, ended with the test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "./wait-for.ts";

export interface ServerProgramOptions {
  name: string;
  /** Writes what the program needs into the folder, and returns its command line. */
  prepare(folder: string): string[];
  isReady(): Promise<boolean | undefined>;
}

export interface ServerProgram {
  stop(): Promise<void>;
}

const READY_MS = 20_000;

/** Resolves when it is ready. */
export async function startServerProgram({ name, prepare, isReady }: ServerProgramOptions): Promise<ServerProgram> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-test-"));
  const child = Bun.spawn(prepare(folder), {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) output += decoder.decode(chunk, { stream: true });
    })();
  }
  // A test run that is cut short must not leave a server behind.
  const killAtExit = () => child.kill("SIGKILL");
  process.on("exit", killAtExit);

  async function stop(): Promise<void> {
    child.kill("SIGKILL");
    await child.exited;
    process.off("exit", killAtExit);
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    await waitFor(
      `${name} answers`,
      () => {
        if (child.exitCode !== null) throw new Error(`${name} ended:\n${output}`);
        return isReady();
      },
      { timeoutMs: READY_MS, intervalMs: 20, explain: () => output },
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}
