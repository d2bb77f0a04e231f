// The simulation's clients in front of the real gateway and engines that are real servers, each in a process of its own.

import { AdminClient } from "../support/admin-client.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import {
  type Front,
  inputService,
  type Outcome,
  outputService,
  PATIENCE_MS,
  type Request,
  type Scenario,
  SMALL_TENANTS,
  startClients,
} from "./fair-queue.ts";
import { RealTime } from "./real-time.ts";

/** `off`: requests wait in the engines. */
export type Queue = "off" | "a number" | "auto";

export interface Measured extends Outcome {
  /** Answers other than 200 and 429, and streams that broke off. */
  failed: number;
  /** Part of one core that the gateway used. */
  gatewayCores: number;
}

const BYTES_PER_TOKEN = 4;
const TENANTS = ["heavy", ...Array.from({ length: SMALL_TENANTS }, (_, index) => `small ${index}`)];
const keyOf = (tenant: string) => `secret-of-${tenant.replace(" ", "-")}`;

export async function runOverSockets(policy: Queue, scenario: Scenario): Promise<Measured> {
  const engines = await startEngines(scenario);
  try {
    const gateway = await startGatewayProcess({
      awaitHealth: false,
      config: {
        ...{ retry: { max_attempts: 1 }, health_checks: { enabled: false }, logging: { level: "error" } },
        backends: engines.ports.map((port, index) => ({
          ...{ name: `engine-${index}`, url: `http://127.0.0.1:${port}`, models: ["m"] },
        })),
        api_keys: { keys: TENANTS.map((tenant) => ({ id: tenant.replace(" ", "-"), key: keyOf(tenant) })) },
        admission: {
          enabled: policy !== "off",
          per_backend: { max_concurrent: policy === "auto" ? "auto" : scenario.shape.slots },
          queue: { fair_by: ["key"] },
        },
      },
    });
    try {
      return await measure(gateway, policy, scenario);
    } finally {
      await gateway.close();
    }
  } finally {
    await engines.stop();
  }
}

async function startEngines({ engines, shape }: Scenario) {
  const program = [process.execPath, `${import.meta.dir}/engine-servers.ts`, String(engines), JSON.stringify(shape)];
  const child = Bun.spawn(program, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  async function stop(): Promise<void> {
    await child.stdin.end();
    await child.exited;
  }
  return { ports: JSON.parse(new TextDecoder().decode(value)) as number[], stop };
}

async function measure(gateway: ProcessGateway, policy: Queue, scenario: Scenario): Promise<Measured> {
  const time = new RealTime();
  const front = new SocketFront(gateway.url, time);
  const measured = startClients(time, scenario, front);
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const cpuMs: number[] = [];
  time.schedule(scenario.warmUpMs, () => {
    front.failed = 0;
    cpuMs.push(cpuMsOf(gateway.pid));
  });
  time.schedule(scenario.warmUpMs + scenario.measuredMs, resolve);
  await over;
  cpuMs.push(cpuMsOf(gateway.pid));
  const limit = policy === "off" ? Number.POSITIVE_INFINITY : await medianLimit(gateway);
  const outcome = measured(limit);
  const { failed } = front;
  time.end();
  await front.end();
  const [before = 0, after = 0] = cpuMs;
  return { ...outcome, failed, gatewayCores: (after - before) / scenario.measuredMs };
}

async function medianLimit(gateway: ProcessGateway): Promise<number> {
  const queue = await new AdminClient(gateway).ok("GET", "/admin/queue");
  const { backends } = queue as unknown as { backends: { max_concurrent: number | null }[] };
  const limits = backends.map(({ max_concurrent }) => max_concurrent ?? 0).toSorted((one, other) => one - other);
  return limits[limits.length >> 1] ?? 0;
}

/** 0 where the system does not tell. */
function cpuMsOf(pid: number): number {
  const { stdout } = Bun.spawnSync(["cat", `/proc/${pid}/stat`]);
  const fields = stdout.toString().split(") ")[1]?.split(" ") ?? [];
  const TICK_MS = 10;
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
}

/** Asks the gateway as many clients at once. */
class SocketFront implements Front {
  readonly service = new Map<string, number>();
  failed = 0;
  readonly #url: string;
  readonly #time: RealTime;
  readonly #ended = new AbortController();
  readonly #open = new Set<Promise<void>>();

  constructor(url: string, time: RealTime) {
    this.#url = url;
    this.#time = time;
  }

  send(request: Request): void {
    const asking = this.#ask(request).finally(() => this.#open.delete(asking));
    this.#open.add(asking);
  }

  /** All clients leave. */
  async end(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#open);
  }

  async #ask(request: Request): Promise<void> {
    const leaving = new AbortController();
    const patience = setTimeout(() => leaving.abort(), PATIENCE_MS);
    const signal = AbortSignal.any([leaving.signal, this.#ended.signal]);
    try {
      const response = await fetch(`${this.#url}/v1/chat/completions`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${keyOf(request.tenant)}` },
        body: bodyOf(request),
        signal,
      });
      if (response.status === 200) await this.#read(response, request, () => clearTimeout(patience));
      else {
        await response.text();
        if (response.status !== 429) this.failed++;
        request.over(false, 1000 * Number(response.headers.get("retry-after") ?? 1));
      }
    } catch {
      if (this.#ended.signal.aborted) return;
      if (!leaving.signal.aborted) this.failed++;
      request.over(false, 0);
    } finally {
      clearTimeout(patience);
    }
  }

  async #read(response: Response, request: Request, firstToken: () => void): Promise<void> {
    const decoder = new TextDecoder();
    let end = "";
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      end = (end + decoder.decode(bytes, { stream: true })).slice(-MOST_OF_END);
      if (request.firstMs !== undefined || !end.includes('"content":"')) continue;
      request.firstMs = this.#time.nowMs;
      firstToken();
      this.#serve(request, inputService(request));
    }
    if (!end.endsWith("data: [DONE]\n\n")) throw new Error("the stream broke off");
    this.#serve(request, outputService(request));
    request.over(true, 0);
  }

  #serve({ tenant }: Request, tokens: number): void {
    this.service.set(tenant, (this.service.get(tenant) ?? 0) + tokens);
  }
}

/** Holds any event of the engines. */
const MOST_OF_END = 1024;

function bodyOf({ input, cached, output }: Request): string {
  const text = (tokens: number) => "word".padEnd(tokens * BYTES_PER_TOKEN, " and");
  return JSON.stringify({
    ...{ model: "m", stream: true, stream_options: { include_usage: true }, user: `${input} ${cached} ${output}` },
    messages: [
      { role: "system", content: text(cached) },
      { role: "user", content: text(input - cached) },
    ],
  });
}
