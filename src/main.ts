// Entry point: parses the arguments, chooses what to do, and sets the exit code.

import { parseArguments } from "./cli/arguments.ts";
import { isHookProcess } from "./hooks/mark.ts";
import { SERVICE_NAME, VERSION } from "./names.ts";
import { isWorker } from "./workers/mark.ts";

/** Agents are started often, and an editor waits for the first answer of its own: it loads no gateway before that. */
async function main(): Promise<number> {
  const { env, argv } = process;
  if (isWorker()) return await (await import("./workers/worker.ts")).runWorker(env);
  if (isHookProcess()) return await (await import("./hooks/host.ts")).runHost(env);
  const command = parseArguments(argv.slice(2), env.HOME);
  if ("error" in command) return fail(`${SERVICE_NAME}: ${command.error}`);
  if (command.command === "version") {
    process.stdout.write(`${SERVICE_NAME} ${VERSION}\n`);
    return 0;
  }
  if (command.command !== "agent") {
    const { runCommand } = await import("./runtime/commands.ts");
    return await runCommand(command);
  }
  const { runAgent } = await import("./agent-mode/run.ts");
  const { exitCode, message } = await runAgent({ command, env, loadServer: () => import("./acp/server.ts") });
  return message === undefined ? exitCode : fail(message);
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

// Streams and timers may still be winding down; what the process was asked to do is done.
void main().then((exitCode) => process.exit(exitCode));
