// Runs the real command, `bin/signalbox` or the executable of npm run build, in a folder and an environment of its own, and talks to it.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { RUNTIME_OPTIONS } from "../../src/runtime/runtime-options.ts";
import { Gateway, type RestartParts, waitForFirstChecks } from "./gateway.ts";
import { configPathOf, environmentOf, type GatewayParts, makeFolder, withFreePort } from "./gateway-parts.ts";
import { Printed } from "./printed.ts";
import { waitFor, within } from "./wait-for.ts";

/** It runs the bundle that npm install has made of the source, or the source. */
export const COMMAND = join(import.meta.dir, "..", "..", "bin", "signalbox");

/** npm test has many tests run what npm run build makes: it starts with half the CPU time. */
const EXECUTABLE = process.env.GATEWAY_EXECUTABLE;

export interface ProcessParts extends Omit<GatewayParts, "config"> {
  /** `null`: no file and no --config, the zero configuration. */
  config?: ConfigDocument | null;
  /** Command line after the configuration. */
  args?: readonly string[];
  /** Another copy of the command, or what else a shell is to run. */
  command?: readonly string[];
}

export interface FinishedRun {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** The command in a temporary folder, running or finished. */
export class GatewayProcess {
  readonly folder: string;
  readonly printed = new Printed();
  readonly #process: Subprocess<"ignore", "pipe", "pipe">;
  readonly #outputRead: Promise<unknown>;
  readonly #killAtExit: () => void;
  /** Whether a test has asked it to end. */
  wasSignalled = false;

  /** With the folder of an earlier process, its files are taken as they are now. */
  constructor(options: ProcessParts = {}, folder?: string) {
    this.folder = folder ?? makeFolder(options);
    const configPath = configPathOf(this.folder, options);
    const args = [...(configPath === undefined ? [] : ["--config", configPath]), ...(options.args ?? [])];
    const executable = options.command === undefined ? EXECUTABLE : undefined;
    const command = executable === undefined ? ["sh", ...(options.command ?? [COMMAND])] : [executable];
    this.#process = Bun.spawn([...command, ...args], {
      cwd: this.folder,
      env: {
        ...(executable !== undefined && RUNTIME_OPTIONS),
        ...environmentOf(this.folder, options),
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#outputRead = Promise.all([
      collect(this.#process.stdout, (text) => {
        this.printed.stdout += text;
      }),
      collect(this.#process.stderr, (text) => {
        this.printed.stderr += text;
      }),
    ]);
    // A test run that is cut short must not leave a server behind.
    this.#killAtExit = () => this.#process.kill("SIGKILL");
    process.on("exit", this.#killAtExit);
  }

  get pid(): number {
    return this.#process.pid;
  }

  get hasExited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  kill(signal: NodeJS.Signals): void {
    this.wasSignalled = true;
    this.#process.kill(signal);
  }

  /** Resolves when the process has ended and its output is read to the end. */
  async finished(): Promise<FinishedRun> {
    const exitCode = await within("the process ends", this.#process.exited);
    await this.#outputRead;
    process.off("exit", this.#killAtExit);
    const { stdout, stderr } = this.printed;
    return { exitCode, stdout, stderr };
  }

  /** Ends the process if it runs, removes its folder, and checks what it printed. */
  async close(): Promise<void> {
    if (!this.hasExited) this.kill("SIGKILL");
    await this.finished();
    rmSync(this.folder, { recursive: true, force: true });
    this.printed.check();
  }
}

/** One process after the other where a test restarts it. */
export class ProcessGateway extends Gateway {
  #process: GatewayProcess;
  #url: string;
  readonly #options: ProcessParts;

  constructor(process: GatewayProcess, url: string, options: ProcessParts) {
    super(configPathOf(process.folder, options));
    this.#process = process;
    this.#url = url;
    this.#options = options;
  }

  get process(): GatewayProcess {
    return this.#process;
  }

  get url(): string {
    return this.#url;
  }

  get folder(): string {
    return this.#process.folder;
  }

  get printed(): Printed {
    return this.#process.printed;
  }

  get pid(): number {
    return this.#process.pid;
  }

  async restart(options: RestartParts & Pick<ProcessParts, "args"> = {}): Promise<void> {
    if (!this.#process.hasExited) await this.stop();
    this.printed.check();
    const started = await launch({ ...this.#options, ...options }, this.folder);
    this.#process = started.process;
    this.#url = started.url;
  }

  /** Ends the process by a signal; the result is its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.#process.kill(signal);
    return (await this.#process.finished()).exitCode;
  }

  async close(): Promise<void> {
    const endedByItself = this.#process.hasExited && !this.#process.wasSignalled;
    await this.#process.close();
    if (endedByItself) throw new Error(`the gateway ended by itself:\n${this.printed}`);
  }
}

/** Starts the command and waits until it answers; by default until every backend was checked. */
export async function startGatewayProcess(options: ProcessParts = {}): Promise<ProcessGateway> {
  const complete = withFreePort(options);
  const { process, url } = await launch(complete);
  return new ProcessGateway(process, url, complete);
}

async function launch(options: ProcessParts, folder?: string): Promise<{ process: GatewayProcess; url: string }> {
  const gatewayProcess = new GatewayProcess(options, folder);
  try {
    const url = await waitFor(
      "the gateway prints its address",
      () => {
        if (gatewayProcess.hasExited) throw new Error(`the gateway ended early:\n${gatewayProcess.printed}`);
        const { stdout, stderr } = gatewayProcess.printed;
        const banner = /http:\/\/127\.0\.0\.1:\d+/.exec(stdout)?.[0];
        // With logging in JSON the start is a line of the log.
        return banner ?? /"addresses":\["(http:\/\/127\.0\.0\.1:\d+)"/.exec(stderr)?.[1];
      },
      { explain: () => String(gatewayProcess.printed) },
    );
    await waitFor("GET /readyz answers", async () => {
      const response = await fetch(`${url}/readyz`).catch(() => undefined);
      return response?.status === 200 || response?.status === 503;
    });
    if (options.awaitHealth ?? true) await waitForFirstChecks(url);
    return { process: gatewayProcess, url };
  } catch (error) {
    await gatewayProcess.close().catch(() => {}); // the first error says more
    throw error;
  }
}

/** Runs the command to its end, for runs that are expected to end by themselves. */
export async function runCommand(options: ProcessParts = {}): Promise<FinishedRun> {
  const gatewayProcess = new GatewayProcess(options);
  try {
    return await gatewayProcess.finished();
  } finally {
    await gatewayProcess.close();
  }
}

async function collect(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) add(decoder.decode(bytes, { stream: true }));
}
