// A gateway that listens, as a test meets it: what it is asked over HTTP, its folder and its configuration file, and what it has printed.

import { writeFileSync } from "node:fs";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { configTextOf, type GatewayParts, withFreePort } from "./gateway-parts.ts";
import type { Printed } from "./printed.ts";
import { waitFor } from "./wait-for.ts";

export interface BackendStatus {
  name: string;
  url: string;
  is_healthy: boolean;
  type: string;
  enabled: boolean;
  state: "unknown" | "ready" | "warming_up" | "down" | "unhealthy";
  circuit: "closed" | "open" | "half_open";
  circuit_since: string | null;
  can_be_asked: boolean;
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

/** What may be another one after a restart. */
export type RestartParts = Pick<GatewayParts, "environment" | "awaitHealth">;

export abstract class Gateway {
  readonly #configPath: string | undefined;

  constructor(configPath: string | undefined) {
    this.#configPath = configPath;
  }

  abstract readonly url: string;
  /** Its working folder. */
  abstract readonly folder: string;
  abstract readonly printed: Printed;
  /** As SIGTERM ends it: running requests finish, and the last words are said. */
  abstract stop(): Promise<unknown>;
  /** Stops it if it runs, and starts another one in the same folder, with the files as they are now. */
  abstract restart(options?: RestartParts): Promise<void>;
  /** Ends it, removes its folder, and checks what it has printed. */
  abstract close(): Promise<void>;

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get configPath(): string {
    if (this.#configPath === undefined) throw new Error("this gateway has no configuration file");
    return this.#configPath;
  }

  /** What startGateway() would write for this configuration. */
  configText(config: ConfigDocument): string {
    return configTextOf(withFreePort({ config })) as string;
  }

  /** Edits the configuration file in place. */
  writeConfig(config: ConfigDocument): void {
    writeFileSync(this.configPath, this.configText(config));
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

  async waitForHealth(name: string, isHealthy: boolean): Promise<BackendStatus> {
    let last: BackendStatus | undefined;
    return waitFor(
      `backend ${name} becomes ${isHealthy ? "healthy" : "unhealthy"}`,
      async () => {
        last = await this.backend(name);
        return last.is_healthy === isHealthy && last;
      },
      { intervalMs: 10, explain: () => `last status: ${JSON.stringify(last)}` },
    );
  }

  async waitForCircuit(name: string, circuit: BackendStatus["circuit"]): Promise<BackendStatus> {
    let last: BackendStatus | undefined;
    return waitFor(
      `the circuit of ${name} becomes ${circuit}`,
      async () => {
        last = await this.backend(name);
        return last.circuit === circuit && last;
      },
      { intervalMs: 10, explain: () => `last status: ${JSON.stringify(last)}` },
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export async function waitForFirstChecks(url: string): Promise<void> {
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
    { explain: () => JSON.stringify(last) },
  );
}
