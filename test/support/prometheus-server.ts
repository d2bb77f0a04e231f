// A real Prometheus, from the package of the distribution, that scrapes one address; and promtool.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { programPath } from "../../scripts/debian-packages.ts";
import { freePort } from "./free-port.ts";
import { type ServerProgram, startServerProgram } from "./server-program.ts";

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
  readonly stop: () => Promise<void>;
  readonly #url: string;

  private constructor(program: ServerProgram, url: string) {
    this.stop = program.stop;
    this.#url = url;
  }

  /** Resolves when it answers. */
  static async start(target: ScrapeTarget): Promise<PrometheusServer> {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const program = await startServerProgram({
      name: "Prometheus",
      prepare(folder) {
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
        return [
          programPath("prometheus"),
          `--config.file=${configFile}`,
          `--storage.tsdb.path=${join(folder, "data")}`,
          `--web.listen-address=127.0.0.1:${port}`,
        ];
      },
      isReady: async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok,
    });
    return new PrometheusServer(program, url);
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
