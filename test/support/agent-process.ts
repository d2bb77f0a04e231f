// Runs an agent as an editor would: lines in, lines out, in a folder and an environment of its own.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { engineOptions } from "./gateway-parts.ts";
import { waitFor, within } from "./wait-for.ts";

export interface AgentProcessOptions {
  /** What is run behind `sh`, with its arguments. */
  command: readonly string[];
  /** Written as JSON into gateway.yaml, which is named with --config; undefined: no file. */
  config?: unknown;
  /** Of another process, whose files are taken as they are. */
  folder?: string;
  args?: readonly string[];
  environment?: Record<string, string>;
  /** Every piece of standard output, as it comes; it is kept elsewhere then. */
  heard?(text: string): void;
}

export class AgentProcess {
  readonly folder: string;
  stdout = "";
  stderr = "";
  readonly #process: Subprocess<"pipe", "pipe", "pipe">;
  readonly #outputRead: Promise<unknown>;
  readonly #ownsFolder: boolean;
  readonly #heard: (text: string) => void;
  readonly #killAtExit: () => void;
  #isReading = true;
  #resume: (() => void) | undefined;

  constructor({ command, config, folder, args = [], environment = {}, heard }: AgentProcessOptions) {
    this.#heard =
      heard ??
      ((text) => {
        this.stdout += text;
      });
    this.#ownsFolder = folder === undefined;
    this.folder = folder ?? realpathSync(mkdtempSync(join(tmpdir(), "signalbox-agent-")));
    const path = join(this.folder, "gateway.yaml");
    if (config !== undefined) writeFileSync(path, JSON.stringify(config));
    mkdirSync(join(this.folder, "home"), { recursive: true });
    const named = config === undefined && folder === undefined ? [] : ["--config", path];
    this.#process = Bun.spawn(["sh", ...command, ...named, ...args], {
      cwd: this.folder,
      env: {
        ...engineOptions(),
        PATH: process.env.PATH ?? "",
        HOME: join(this.folder, "home"),
        SIGNALBOX_DISCOVERY_PORTS: "none",
        ...environment,
      },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#killAtExit = () => this.#process.kill("SIGKILL");
    process.on("exit", this.#killAtExit);
    this.#outputRead = Promise.all([this.#readOutput(), this.#readErrors()]);
  }

  get pid(): number {
    return this.#process.pid;
  }

  get lines(): unknown[] {
    return this.stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as unknown]));
  }

  send(value: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(value)}\n`);
    void this.#process.stdin.flush();
  }

  /** Resolves when the process has taken it. */
  async sendText(text: string): Promise<void> {
    this.#process.stdin.write(text);
    await this.#process.stdin.flush();
  }

  /** The first line that is not one of those before. */
  async ask(value: unknown): Promise<unknown> {
    const before = this.lines.length;
    this.send(value);
    await waitFor("a line comes", () => this.lines.length > before || this.hasExited || undefined, {
      explain: () => this.stderr,
    });
    return this.lines[before];
  }

  /** What comes stays in the pipe. */
  stopReading(): void {
    this.#isReading = false;
  }

  readOn(): void {
    this.#isReading = true;
    this.#resume?.();
  }

  endInput(): void {
    void this.#process.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  get hasExited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async finished(): Promise<number> {
    const exitCode = await within("the agent ends", this.#process.exited);
    await this.#outputRead;
    process.off("exit", this.#killAtExit);
    return exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.readOn();
    if (!this.hasExited) this.#process.kill("SIGKILL");
    await this.#process.exited;
    process.off("exit", this.#killAtExit);
    if (this.#ownsFolder) rmSync(this.folder, { recursive: true, force: true });
  }

  async #readOutput(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#process.stdout) {
      this.#heard(decoder.decode(bytes, { stream: true }));
      if (this.#isReading) continue;
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    }
  }

  async #readErrors(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#process.stderr) this.stderr += decoder.decode(bytes, { stream: true });
  }
}
