// A real Prometheus, from the package of the distribution, that scrapes one address; and promtool.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { waitFor } from "./wait-for.ts";

export interface ScrapeTarget {
  /** host:port */
  address: string;
  path: string;
  username: string;
  password: string;
}

export interface PrometheusSeries {
  metric: Record<string, string>;
  value: [timeSeconds: number, text: string];
}

export class PrometheusServer {
  readonly #process: Subprocess<"ignore", "pipe", "pipe">;
  readonly #folder: string;
  readonly #url: string;
  readonly #killAtExit: () => void;
  #output = "";

  private constructor(process_: Subprocess<"ignore", "pipe", "pipe">, folder: string, url: string) {
    this.#process = process_;
    this.#folder = folder;
    this.#url = url;
    for (const stream of [process_.stdout, process_.stderr]) {
      void (async () => {
        const decoder = new TextDecoder();
        for await (const chunk of stream) this.#output += decoder.decode(chunk, { stream: true });
      })();
    }
    this.#killAtExit = () => process_.kill("SIGKILL");
    process.on("exit", this.#killAtExit);
  }

  /** Resolves when it answers. */
  static async start(target: ScrapeTarget): Promise<PrometheusServer> {
    const program = programPath("prometheus");
    const folder = mkdtempSync(join(tmpdir(), "prometheus-test-"));
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, target.password, { mode: 0o600 });
    const config = {
      global: { scrape_interval: "1s", scrape_timeout: "1s" },
      scrape_configs: [
        {
          job_name: "signalbox",
          metrics_path: target.path,
          basic_auth: { username: target.username, password_file: passwordFile },
          static_configs: [{ targets: [target.address] }],
        },
      ],
    };
    const configFile = join(folder, "prometheus.yml");
    writeFileSync(configFile, JSON.stringify(config));
    const port = await freePort();
    const child = Bun.spawn(
      [
        program,
        `--config.file=${configFile}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { cwd: folder, env: { PATH: process.env.PATH ?? "" }, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    );
    const server = new PrometheusServer(child, folder, `http://127.0.0.1:${port}`);
    try {
      await waitFor(
        "Prometheus answers",
        async () => {
          if (child.exitCode !== null) throw new Error(`Prometheus ended:\n${server.#output}`);
          return (await fetch(`${server.#url}/-/ready`).catch(() => undefined))?.ok;
        },
        { timeoutMs: 20_000, intervalMs: 50, explain: () => server.#output },
      );
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** `data` of an answer of its HTTP API. */
  async api<Data>(path: string, query: Record<string, string> = {}): Promise<Data> {
    const response = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(query)}`);
    const answer = (await response.json()) as { status: string; data: Data; error?: string };
    if (answer.status !== "success") throw new Error(`Prometheus: ${path}: ${answer.error}`);
    return answer.data;
  }

  /** The series that a PromQL expression has at this moment. */
  async query(expression: string): Promise<PrometheusSeries[]> {
    return (await this.api<{ result: PrometheusSeries[] }>("query", { query: expression })).result;
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    process.off("exit", this.#killAtExit);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What `promtool check metrics` finds in the text of an answer: its lines, none of them when all is well. */
export async function checkMetrics(text: string): Promise<string[]> {
  const child = Bun.spawn([programPath("promtool"), "check", "metrics"], {
    stdin: new Blob([text]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const lines = `${out}\n${err}`.split("\n").filter((line) => line.trim() !== "");
  return exitCode === 0 || lines.length > 0 ? lines : [`promtool exited with ${exitCode}`];
}

function programPath(name: string): string {
  const path = Bun.which(name);
  if (path === null)
    throw new Error(`${name} is missing: install the Debian package prometheus (npm test does it as root)`);
  return path;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
