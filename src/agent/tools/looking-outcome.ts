// What a command that only looks has brought, for the model and for the person.

import { beginning } from "../shorten-text.ts";
import type { ToolOutcome } from "../tool.ts";
import type { runInTerminal } from "./terminal-run.ts";

/** Lines of files that were made by programs are of no use beyond it. */
const MAX_LINE_LENGTH = 400;

type Looked = Pick<Awaited<ReturnType<typeof runInTerminal>>, "terminalId" | "output" | "isCut" | "exit" | "timedOut">;

/** @param nothing - said when there is no output */
export function lookingOutcome({ terminalId, output, isCut, exit, timedOut }: Looked, nothing: string): ToolOutcome {
  const lines = output
    .split("\n")
    .map((line) => line.replace(/\r$/, ""))
    .map(shortLine);
  const notes: string[] = [];
  if (isCut) notes.push("[The beginning of the output was left out: ask for less.]");
  if (timedOut) notes.push("[It took too long and was stopped: what follows is not all. Look in a smaller folder.]");
  // 1 is what searches say that have found nothing.
  const code = exit?.exitCode ?? 0;
  if (code > 1) notes.push(`[Exit code: ${code}]`);
  const text = output.trim() === "" ? nothing : lines.join("\n");
  return {
    parts: [{ type: "text", text: [...notes, text].join("\n") }],
    content: [{ type: "terminal", terminalId }],
    ...((timedOut || code > 1) && output.trim() === "" && { isError: true }),
  };
}

function shortLine(line: string): string {
  return line.length <= MAX_LINE_LENGTH ? line : `${beginning(line, MAX_LINE_LENGTH)}...`;
}
