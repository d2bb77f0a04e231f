// An editor with files in memory, commands that a test makes up, and a person whose answers are written down.

import {
  type CommandExit,
  type CommandLine,
  type Editor,
  type EditorAbilities,
  EditorError,
  type PermissionAnswer,
  type Terminal,
} from "../../src/agent/editor.ts";
import type { ToolCallView, Update } from "../../src/agent/updates.ts";

/** What a command does. */
interface ScriptedRun {
  output?: string;
  exit?: CommandExit;
  /** It ends when this resolves; left out: at once. A promise that never resolves is a command that runs until it is killed. */
  until?: Promise<unknown>;
  /** The terminal is there when this resolves. */
  opens?: Promise<unknown>;
}

interface ScriptedEditorOptions {
  can?: Partial<EditorAbilities>;
  files?: Record<string, string>;
  /** Left out: every question is answered with allow_once. A promise: the person takes their time. */
  answer?(call: ToolCallView): PermissionAnswer | Promise<PermissionAnswer>;
  run?(command: CommandLine): ScriptedRun;
  /** Waited for before a file is read or written. */
  delay?(what: "read" | "write", path: string): Promise<unknown> | undefined;
}

export class ScriptedEditor implements Editor {
  readonly can: EditorAbilities;
  readonly files: Map<string, string>;
  readonly told: Update[] = [];
  readonly asked: ToolCallView[] = [];
  /** By questions: the folders for which an "always" holds. */
  readonly askedFor: (readonly string[])[] = [];
  readonly commands: CommandLine[] = [];
  readonly terminals: ScriptedTerminal[] = [];
  readonly #options: ScriptedEditorOptions;

  constructor(options: ScriptedEditorOptions = {}) {
    this.can = { readTextFile: true, writeTextFile: true, terminal: true, ...options.can };
    this.files = new Map(Object.entries(options.files ?? {}));
    this.#options = options;
  }

  tell(update: Update): void {
    this.told.push(structuredClone(update));
  }

  async askPermission(
    call: ToolCallView,
    signal: AbortSignal,
    outside: readonly string[] = [],
  ): Promise<PermissionAnswer> {
    this.asked.push(structuredClone(call));
    this.askedFor.push(outside);
    const answer = this.#options.answer?.(call) ?? "allow_once";
    return await freed(Promise.resolve(answer), signal);
  }

  async readTextFile(file: { path: string; line?: number; limit?: number }, signal: AbortSignal): Promise<string> {
    this.#need("readTextFile");
    await freed(Promise.resolve(this.#options.delay?.("read", file.path)), signal);
    const text = this.files.get(file.path);
    if (text === undefined) throw new EditorError(`no such file: ${file.path}`);
    const { line = 1, limit = Number.POSITIVE_INFINITY } = file;
    if (line === 1 && limit === Number.POSITIVE_INFINITY) return text;
    return text
      .split(/(?<=\n)/)
      .slice(line - 1, line - 1 + limit)
      .join("");
  }

  async writeTextFile({ path, content }: { path: string; content: string }, signal: AbortSignal): Promise<void> {
    this.#need("writeTextFile");
    await freed(Promise.resolve(this.#options.delay?.("write", path)), signal);
    this.files.set(path, content);
  }

  async runCommand(command: CommandLine, signal: AbortSignal): Promise<Terminal> {
    this.#need("terminal");
    this.commands.push(command);
    const run = this.#options.run?.(command) ?? {};
    await freed(Promise.resolve(run.opens), signal);
    const terminal = new ScriptedTerminal(`terminal-${this.terminals.length}`, run);
    this.terminals.push(terminal);
    return terminal;
  }

  #need(ability: keyof EditorAbilities): void {
    if (!this.can[ability]) throw new Error(`asked for ${ability}, which this editor cannot do`);
  }
}

class ScriptedTerminal implements Terminal {
  readonly id: string;
  isKilled = false;
  isReleased = false;
  readonly #run: ScriptedRun;
  readonly #killed = Promise.withResolvers<void>();
  #exit: CommandExit | undefined;

  constructor(id: string, run: ScriptedRun) {
    this.id = id;
    this.#run = run;
  }

  async output(signal: AbortSignal) {
    signal.throwIfAborted();
    if (this.isReleased) throw new EditorError("the terminal was released");
    return { output: this.#run.output ?? "", truncated: false, ...(this.#exit !== undefined && { exit: this.#exit }) };
  }

  async exited(signal: AbortSignal): Promise<CommandExit> {
    await freed(Promise.race([Promise.resolve(this.#run.until), this.#killed.promise]), signal);
    this.#exit = this.isKilled
      ? { exitCode: null, signal: "SIGKILL" }
      : (this.#run.exit ?? { exitCode: 0, signal: null });
    return this.#exit;
  }

  async kill(): Promise<void> {
    this.isKilled = true;
    this.#killed.resolve();
  }

  async release(): Promise<void> {
    this.isReleased = true;
  }
}

/** As the contract says: whoever waits is freed by the signal with its reason. */
async function freed<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
