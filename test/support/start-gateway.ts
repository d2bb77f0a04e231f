// Runs the real command, `bin/signalbox` or the executable of npm run build, in a folder and an environment of its own, and talks to it.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { waitFor, within } from "./wait-for.ts";

/** It runs the source. */
export const COMMAND = join(import.meta.dir, "..", "..", "bin", "signalbox");

/** npm test has many tests run what npm run build makes: it starts with half the CPU time. */
const EXECUTABLE = process.env.GATEWAY_EXECUTABLE;

/** What bin/signalbox would set; an executable has to start itself once more for it. */
const RAISED_LIMIT = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65336" };

/** Every secret that a test uses contains this text, so that one search proves that none was written to a log. */
export const SECRET_MARK = "sekret";

export interface GatewayParts {
  /** Written as JSON, which is YAML too. `null`: no file and no --config, the zero configuration. */
  config?: ConfigDocument | null;
  /** Written as it is. */
  configText?: string;
  configName?: string;
  /** Command line after the configuration. */
  args?: readonly string[];
  environment?: Record<string, string>;
  /** Another copy of the command. */
  command?: string;
  /** Further files for the working folder. */
  files?: Record<string, string>;
  /** Whether to wait until the health checks of all backends have had a result; default true. */
  awaitHealth?: boolean;
}

export interface BackendStatus {
  name: string;
  url: string;
  is_healthy: boolean;
  type: string;
  enabled: boolean;
  state: "unknown" | "ready" | "warming_up" | "down" | "unhealthy";
  circuit: "closed" | "open" | "half_open";
  consecutive_failures: number;
  consecutive_successes: number;
  last_check: string | null;
  last_error: string | null;
  response_time_ms: number | null;
  models: string[];
  weight: number;
  total_requests: number;
  failed_requests: number;
  in_flight: number;
  phase: string;
  drain_remaining_ms: number | null;
}

export interface FinishedRun {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** The command in a temporary folder, running or finished. */
export class GatewayProcess {
  readonly folder: string;
  stdout = "";
  stderr = "";
  readonly #process: Subprocess<"ignore", "pipe", "pipe">;
  readonly #outputRead: Promise<unknown>;
  readonly #killAtExit: () => void;
  /** Whether a test has asked it to end. */
  wasSignalled = false;

  /** With the folder of an earlier process, its files are taken as they are now. */
  constructor(options: GatewayParts = {}, folder?: string) {
    this.folder = folder ?? realpathSync(mkdtempSync(join(tmpdir(), "signalbox-test-")));
    if (folder === undefined) {
      mkdirSync(join(this.folder, "home"));
      writeFiles(this.folder, options);
    }
    const configPath = configPathOf(this.folder, options);
    const args = [...(configPath === undefined ? [] : ["--config", configPath]), ...(options.args ?? [])];
    const executable = options.command === undefined ? EXECUTABLE : undefined;
    const command = executable === undefined ? ["sh", options.command ?? COMMAND] : [executable];
    this.#process = Bun.spawn([...command, ...args], {
      cwd: this.folder,
      env: {
        ...(executable !== undefined && RAISED_LIMIT),
        PATH: process.env.PATH ?? "",
        HOME: join(this.folder, "home"),
        // What else runs on this machine is no part of a test.
        SIGNALBOX_DISCOVERY_PORTS: "none",
        XDG_CONFIG_HOME: join(this.folder, "home", ".config"),
        ...options.environment,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#outputRead = Promise.all([
      collect(this.#process.stdout, (text) => {
        this.stdout += text;
      }),
      collect(this.#process.stderr, (text) => {
        this.stderr += text;
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

  get stderrLines(): string[] {
    return this.stderr.split("\n").filter((line) => line !== "");
  }

  /** Log lines as objects; lines that are not JSON are left out. */
  get logEntries(): Record<string, unknown>[] {
    return this.stderrLines.flatMap((line) => {
      try {
        return [JSON.parse(line) as Record<string, unknown>];
      } catch {
        return [];
      }
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.wasSignalled = true;
    this.#process.kill(signal);
  }

  /** Resolves when the process has ended and its output is read to the end. */
  async finished(timeoutMs = 10_000): Promise<FinishedRun> {
    const exitCode = await within("the process ends", this.#process.exited, timeoutMs);
    await this.#outputRead;
    process.off("exit", this.#killAtExit);
    return { exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Ends the process if it runs, removes its folder, and checks what it printed. */
  async close(): Promise<void> {
    if (!this.hasExited) this.kill("SIGKILL");
    await this.finished();
    rmSync(this.folder, { recursive: true, force: true });
    this.checkOutput();
  }

  /** What was printed holds no secret and no bug. */
  checkOutput(): void {
    const leak = [...this.stdout.split("\n"), ...this.stderrLines].find((line) => line.includes(SECRET_MARK));
    if (leak !== undefined) throw new Error(`a secret was printed: ${leak}`);
    const surprise = this.stderrLines.find((line) => /unexpected error|unhandled|panic/i.test(line));
    if (surprise !== undefined) throw new Error(`the gateway met something it does not understand: ${surprise}`);
  }
}

/** A gateway that listens; one process after the other where a test restarts it. */
export class Gateway {
  #process: GatewayProcess;
  #url: string;
  readonly #options: GatewayParts;

  constructor(process: GatewayProcess, url: string, options: GatewayParts) {
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

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  get folder(): string {
    return this.#process.folder;
  }

  get configPath(): string {
    const path = configPathOf(this.folder, this.#options);
    if (path === undefined) throw new Error("this gateway has no configuration file");
    return path;
  }

  /** What startGateway() would write for this configuration. */
  configText(config: ConfigDocument): string {
    return configTextOf(withFreePort({ config })) as string;
  }

  /** Edits the configuration file in place. */
  writeConfig(config: ConfigDocument): void {
    writeFileSync(this.configPath, this.configText(config));
  }

  /** Ends the process if it runs, and starts another one in the same folder, with the files as they are now. */
  async restart(options: Pick<GatewayParts, "args" | "environment" | "awaitHealth"> = {}): Promise<void> {
    if (!this.#process.hasExited) await this.stop();
    this.#process.checkOutput();
    const started = await launch({ ...this.#options, ...options }, this.folder);
    this.#process = started.process;
    this.#url = started.url;
  }

  get pid(): number {
    return this.process.pid;
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init);
  }

  /** POST of JSON; a text goes out as it is. */
  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, {
      ...init,
      method: "POST",
      headers: { "Content-Type": "application/json", ...(init.headers as Record<string, string> | undefined) },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  chat(more: Record<string, unknown> = {}, init: RequestInit = {}): Promise<Response> {
    return this.post(
      "/v1/chat/completions",
      { model: "m", messages: [{ role: "user", content: "hi" }], ...more },
      init,
    );
  }

  async backends(): Promise<BackendStatus[]> {
    const response = await this.fetch("/admin/backends");
    if (response.status !== 200) throw new Error(`GET /admin/backends answered ${response.status}`);
    return ((await response.json()) as { backends: BackendStatus[] }).backends;
  }

  async backend(name: string): Promise<BackendStatus> {
    const found = (await this.backends()).find((backend) => backend.name === name);
    if (!found) throw new Error(`no backend ${name}`);
    return found;
  }

  async waitForHealth(name: string, isHealthy: boolean, timeoutMs = 5_000): Promise<BackendStatus> {
    let last: BackendStatus | undefined;
    return waitFor(
      `backend ${name} becomes ${isHealthy ? "healthy" : "unhealthy"}`,
      async () => {
        last = await this.backend(name);
        return last.is_healthy === isHealthy && last;
      },
      { timeoutMs, intervalMs: 10, explain: () => `last status: ${JSON.stringify(last)}` },
    );
  }

  async waitForCircuit(name: string, circuit: BackendStatus["circuit"], timeoutMs = 5_000): Promise<BackendStatus> {
    let last: BackendStatus | undefined;
    return waitFor(
      `the circuit of ${name} becomes ${circuit}`,
      async () => {
        last = await this.backend(name);
        return last.circuit === circuit && last;
      },
      { timeoutMs, intervalMs: 10, explain: () => `last status: ${JSON.stringify(last)}` },
    );
  }

  /** No request is left in any counter. */
  async waitUntilIdle(): Promise<void> {
    let last: BackendStatus[] = [];
    await waitFor(
      "every in_flight is 0",
      async () => {
        last = await this.backends();
        return last.every((backend) => backend.in_flight === 0);
      },
      { explain: () => JSON.stringify(last) },
    );
  }

  /** Ends the process by a signal; the result is its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number> {
    this.process.kill(signal);
    return (await this.process.finished()).exitCode;
  }

  async close(): Promise<void> {
    const endedByItself = this.process.hasExited && !this.process.wasSignalled;
    await this.process.close();
    if (endedByItself) throw new Error(`the gateway ended by itself:\n${output(this.process)}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Starts the command and waits until it answers; by default until every backend was checked. */
export async function startGateway(options: GatewayParts = {}): Promise<Gateway> {
  const complete = withFreePort(options);
  const { process, url } = await launch(complete);
  return new Gateway(process, url, complete);
}

async function launch(options: GatewayParts, folder?: string): Promise<{ process: GatewayProcess; url: string }> {
  const gatewayProcess = new GatewayProcess(options, folder);
  try {
    const url = await waitFor(
      "the gateway prints its address",
      () => {
        if (gatewayProcess.hasExited) throw new Error(`the gateway ended early:\n${output(gatewayProcess)}`);
        const banner = /http:\/\/127\.0\.0\.1:\d+/.exec(gatewayProcess.stdout)?.[0];
        // With logging in JSON the start is a line of the log.
        return banner ?? /"addresses":\["(http:\/\/127\.0\.0\.1:\d+)"/.exec(gatewayProcess.stderr)?.[1];
      },
      { timeoutMs: 30_000, explain: () => output(gatewayProcess) },
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
export async function runCommand(options: GatewayParts = {}): Promise<FinishedRun> {
  const gatewayProcess = new GatewayProcess(options);
  try {
    return await gatewayProcess.finished();
  } finally {
    await gatewayProcess.close();
  }
}

async function waitForFirstChecks(url: string): Promise<void> {
  let last: unknown;
  await waitFor(
    "every backend was checked",
    async () => {
      const response = await fetch(`${url}/admin/backends`);
      const body = (await response.json()) as { backends?: BackendStatus[] };
      last = body;
      return body.backends?.every(
        (backend) => backend.is_healthy || backend.last_check !== null || backend.enabled === false,
      );
    },
    { timeoutMs: 10_000, explain: () => JSON.stringify(last) },
  );
}

/** Port 0 through the configuration where the test gives an object, else through the environment. */
function withFreePort(options: GatewayParts): GatewayParts {
  if (options.configText === undefined && options.config !== null) {
    return {
      ...options,
      config: {
        // Many tests make one backend fail again and again; those about the circuit breaker switch it on.
        circuit_breaker: { enabled: false },
        ...options.config,
        server: { bind_address: "127.0.0.1:0", ...upstreamClient(), ...workers(), ...options.config?.server },
      },
    };
  }
  return { ...options, environment: { SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0", ...options.environment } };
}

/** UPSTREAM_CLIENT=fetch runs any test with the other client for backends. */
export function upstreamClient(): { upstream_client?: "fetch" } {
  return process.env.UPSTREAM_CLIENT === "fetch" ? { upstream_client: "fetch" } : {};
}

/** GATEWAY_WORKERS=2 runs any test in front of so many processes. */
function workers(): { workers?: number } {
  return process.env.GATEWAY_WORKERS === undefined ? {} : { workers: workerCount() };
}

export function workerCount(): number {
  return Number(process.env.GATEWAY_WORKERS ?? 1);
}

const CONFIG_NAME = "gateway.yaml";

function configTextOf({ configText, config }: GatewayParts): string | undefined {
  return configText ?? (config ? JSON.stringify(config, undefined, 2) : undefined);
}

function configPathOf(folder: string, options: GatewayParts): string | undefined {
  return configTextOf(options) === undefined ? undefined : join(folder, options.configName ?? CONFIG_NAME);
}

function writeFiles(folder: string, options: GatewayParts): void {
  const configPath = configPathOf(folder, options);
  const files: [string, string][] = Object.entries(options.files ?? {}).map(([path, text]) => [
    join(folder, path),
    text,
  ]);
  if (configPath !== undefined) files.push([configPath, configTextOf(options) as string]);
  for (const [target, content] of files) {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
}

function output(gatewayProcess: GatewayProcess): string {
  return `stdout:\n${gatewayProcess.stdout}\nstderr:\n${gatewayProcess.stderr}`;
}

async function collect(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) add(decoder.decode(bytes, { stream: true }));
}
