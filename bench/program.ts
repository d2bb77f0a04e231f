// What the programs of the benchmark have in common: a folder for their time, a limit, and nothing that stays behind.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endAllProcesses } from "./processes.ts";

/** Ends the process: with code 1 when the work fails or takes longer than the limit of its options. */
export async function runBenchmark<Options>(
  readOptions: () => Options,
  limitMsOf: (options: Options) => number,
  work: (options: Options, temporaryFolder: string) => Promise<void>,
): Promise<void> {
  const temporaryFolder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  process.once("exit", () => rmSync(temporaryFolder, { recursive: true, force: true }));
  async function end(code: number, reason?: string): Promise<void> {
    if (reason !== undefined) console.error(`bench: ${reason}`);
    await endAllProcesses();
    process.exit(code);
  }
  process.once("SIGINT", () => void end(130, "interrupted"));
  process.once("SIGTERM", () => void end(143, "terminated"));
  try {
    const options = readOptions();
    const limitMs = limitMsOf(options);
    setTimeout(() => void end(1, `not done after ${limitMs / 60_000} minutes`), limitMs);
    if (process.platform !== "linux") throw new Error("the benchmark reads /proc and needs Linux");
    await work(options, temporaryFolder);
  } catch (error) {
    await end(1, error instanceof Error ? error.message : String(error));
  }
  await end(0);
}
