// What the programs of the benchmark have in common: a folder for their time, a limit, and nothing that stays behind.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endAllProcesses } from "./processes.ts";

/** Ends the process with code 1 when the work fails or takes too long. */
export async function runBenchmark(limitMs: number, work: (temporaryFolder: string) => Promise<void>): Promise<void> {
  const temporaryFolder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  async function end(code: number, reason?: string): Promise<void> {
    if (reason !== undefined) console.error(`bench: ${reason}`);
    await endAllProcesses();
    rmSync(temporaryFolder, { recursive: true, force: true });
    process.exit(code);
  }
  process.once("SIGINT", () => void end(130, "interrupted"));
  process.once("SIGTERM", () => void end(143, "terminated"));
  setTimeout(() => void end(1, `not done after ${limitMs / 60_000} minutes`), limitMs);
  try {
    if (process.platform !== "linux") throw new Error("the benchmark reads /proc and needs Linux");
    await work(temporaryFolder);
  } catch (error) {
    await end(1, error instanceof Error ? error.message : String(error));
  }
  await end(0);
}
