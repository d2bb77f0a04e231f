// A command in a terminal of the editor, from its beginning to its release, whatever happens in between.

import { inTime, unlessAborted } from "../../lib/abortable-delay.ts";
import type { CommandExit, CommandLine, Terminal } from "../editor.ts";
import { ending } from "../shorten-text.ts";
import type { ToolContext } from "../tool.ts";

interface CommandOutcome {
  terminalId: string;
  /** Only the end of a long output. */
  output: string;
  isCut: boolean;
  /** Undefined: it was killed, or the code is unknown. */
  exit: CommandExit | undefined;
  timedOut: boolean;
}

const MAX_OUTPUT_BYTES = 64 * 1024;
/** How long the editor may take for what it does at once. */
const ANSWER_MS = 5_000;

export async function runInTerminal(
  command: CommandLine,
  timeoutMs: number,
  { editor, signal, show }: Pick<ToolContext, "editor" | "signal" | "show">,
): Promise<CommandOutcome> {
  // Not asked with the turn's signal: a terminal that the editor opens in the moment of the cancellation is closed, too.
  const opening = editor.runCommand({ ...command, outputByteLimit: MAX_OUTPUT_BYTES }, new AbortController().signal);
  let terminal: Terminal;
  try {
    terminal = await unlessAborted(opening, signal);
  } catch (error) {
    opening.then(close, () => {});
    throw error;
  }
  let isRunning = true;
  try {
    show([{ type: "terminal", terminalId: terminal.id }]);
    const exit = await exitWithin(terminal, timeoutMs, signal);
    isRunning = exit === undefined;
    const timedOut = isRunning;
    if (timedOut) await inTime(unlessAborted(kill(terminal), signal), ANSWER_MS);
    isRunning = false;
    const {
      output = "",
      truncated = false,
      exit: late,
    } = (await inTime(unlessAborted(terminal.output(signal), signal), ANSWER_MS)) ?? {};
    const kept = ending(output, MAX_OUTPUT_BYTES);
    return { terminalId: terminal.id, output: kept, isCut: truncated || kept !== output, exit: exit ?? late, timedOut };
  } finally {
    // In the background: the turn does not wait for it.
    void (isRunning ? close(terminal) : terminal.release());
  }
}

/** Undefined when it still runs then. */
async function exitWithin(
  terminal: Terminal,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<CommandExit | undefined> {
  const over = new AbortController();
  const exited = terminal.exited(AbortSignal.any([signal, over.signal]));
  try {
    return await inTime(unlessAborted(exited, signal), timeoutMs);
  } finally {
    over.abort();
  }
}

async function close(terminal: Terminal): Promise<void> {
  // Not one after the other's answer: an agent that ends hears none any more.
  void kill(terminal);
  await terminal.release();
}

/** The command may have ended by itself. */
async function kill(terminal: Terminal): Promise<void> {
  try {
    await terminal.kill();
  } catch {
    // The release that follows ends what is left.
  }
}
