// What the agent asks of the editor that started it. src/acp implements it with requests over the wire; the signal ends
// every wait (which throws the signal's reason), and trouble at the editor's side throws EditorError.

import type { ToolCallView, Update } from "./updates.ts";

export interface EditorAbilities {
  readTextFile: boolean;
  writeTextFile: boolean;
  terminal: boolean;
}

/** "cancelled": the person has cancelled the turn; every fault of an answer counts as "reject_once". */
export type PermissionAnswer = "allow_once" | "allow_always" | "reject_once" | "reject_always" | "cancelled";

export interface CommandLine {
  command: string;
  args: string[];
  env?: Record<string, string>;
  /** Absolute. */
  cwd?: string;
  /** Longest output kept, in bytes; only its end is kept. */
  outputByteLimit?: number;
}

export interface CommandExit {
  /** null if a signal ended it. */
  exitCode: number | null;
  signal: string | null;
}

/** A command that runs at the editor. It must be released, also after kill. */
export interface Terminal {
  readonly id: string;
  output(signal: AbortSignal): Promise<{ output: string; truncated: boolean; exit?: CommandExit }>;
  exited(signal: AbortSignal): Promise<CommandExit>;
  kill(): Promise<void>;
  /** Never throws. */
  release(): Promise<void>;
}

/** One per session. */
export interface Editor {
  /** Abilities that the editor has declared; no other may be used. */
  readonly can: EditorAbilities;
  /** Sends updates in order; never waits, never throws. */
  tell(update: Update): void;
  /**
   * The call has been told before.
   * @param outside - the folders for which an "always" will hold; left out: the session's
   */
  askPermission(call: ToolCallView, signal: AbortSignal, outside?: readonly string[]): Promise<PermissionAnswer>;
  /** `line` counts from 1. */
  readTextFile(file: { path: string; line?: number; limit?: number }, signal: AbortSignal): Promise<string>;
  writeTextFile(file: { path: string; content: string }, signal: AbortSignal): Promise<void>;
  runCommand(command: CommandLine, signal: AbortSignal): Promise<Terminal>;
}

/** The editor refused or failed; the message is what it said. */
export class EditorError extends Error {
  override readonly name = "EditorError";
}
