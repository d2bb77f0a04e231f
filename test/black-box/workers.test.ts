// Several processes on one port: an operator and a client cannot tell how many there are, and one that dies is replaced.

import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { type ProcessGateway, runCommand } from "../support/gateway-process.ts";
import { chat } from "../support/openai-answers.ts";
import { isAlive } from "../support/process-groups.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

/** SIGNALBOX_CRASH_ROUNDS: as often as a release has to stand it. */
const { SIGNALBOX_CRASH_ROUNDS: rounds } = process.env;
const isLong = rounds !== undefined;
const KILLS = isLong ? Number(rounds) : 4;
const CHANGES = isLong ? 2 * KILLS : 30;
const WORKERS = 2;

interface Worker {
  pid: number;
  state: string;
}

/** Each request on a connection of its own, so that any worker may get it. */
const ALONE = { keepalive: false, headers: { connection: "close" } };

function start(more: Partial<ConfigDocument> = {}, answer = chat("hello")): Promise<ProcessGateway> {
  const backend = bed.backend({ answer });
  const server = { bind_address: "127.0.0.1:0", workers: WORKERS, ...more.server };
  return bed.process({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }], ...more, server } });
}

async function workersOf(gateway: ProcessGateway): Promise<Worker[]> {
  const response = await gateway.fetch("/admin/workers", ALONE);
  return ((await response.json()) as { workers: Worker[] }).workers;
}

function waitForWorkers(gateway: ProcessGateway, without: readonly number[] = []): Promise<Worker[]> {
  return waitFor(
    "all workers run",
    async () => {
      const workers = await workersOf(gateway).catch(() => []);
      const isWhole = workers.length === WORKERS && workers.every(({ state }) => state === "running");
      return isWhole && !workers.some(({ pid }) => without.includes(pid)) && workers;
    },
    { intervalMs: 50 },
  );
}

/** A worker was replaced for this reason. Whoever asks one that hangs asks anew. */
async function waitForRestart(gateway: ProcessGateway, reason: string): Promise<void> {
  const signal = () => AbortSignal.timeout(2_000);
  await waitFor(
    `a restart: ${reason}`,
    async () => {
      const response = await gateway.fetch("/admin/workers", { ...ALONE, signal: signal() }).catch(() => undefined);
      const { restarts } = ((await response?.json()) ?? { restarts: {} }) as { restarts: Record<string, number> };
      return (restarts[reason] ?? 0) > 0;
    },
    { timeoutMs: 40_000, intervalMs: 100 },
  );
}

async function read<Answer>(gateway: ProcessGateway, path: string): Promise<Answer> {
  return (await (await gateway.fetch(path, ALONE)).json()) as Answer;
}

function mayMigrate(): boolean {
  return readFileSync("/proc/sys/net/ipv4/tcp_migrate_req", "utf8").trim() === "1";
}

/** Which worker has answered. */
function workerOf(response: Response): string {
  return (response.headers.get("x-signalbox-request-id") ?? "").split("-", 1)[0] as string;
}

async function counters(gateway: ProcessGateway): Promise<Map<string, number>> {
  const text = await (await gateway.fetch("/metrics", ALONE)).text();
  const lines = text.split("\n").filter((line) => /^\w+_(total|count)[ {]/.test(line));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

/** A request that failed. */
interface Failed {
  how: string;
  beganMs: number;
  endedMs: number;
}

/** Asks all the time, each of so many callers one request after the other. */
function load(gateway: ProcessGateway, callers: number, init: RequestInit = ALONE) {
  let isOver = false;
  const failed: Failed[] = [];
  let succeeded = 0;
  const running = Array.from({ length: callers }, async () => {
    while (!isOver) {
      const beganMs = performance.now();
      const status = await gateway
        .chat({}, init)
        .then(async (response) => (await response.text()) && response.status)
        .catch((error: { code?: string }) => error.code ?? String(error));
      if (status === 200) succeeded++;
      else failed.push({ how: String(status), beganMs, endedMs: performance.now() });
    }
  });
  return {
    failed,
    succeeded: () => succeeded,
    async stop() {
      isOver = true;
      await Promise.all(running);
    },
  };
}

test("requests reach every worker, and statistics, stories and metrics know all of them", async () => {
  const gateway = await start();
  const answered: Response[] = [];
  for (let index = 0; index < 40; index++) {
    const response = await gateway.chat({}, ALONE);
    await response.text();
    answered.push(response);
  }
  expect(new Set(answered.map(workerOf)).size).toBe(WORKERS);
  const stats = await read<{ overall: { total_requests: number } }>(gateway, "/admin/stats");
  expect(stats.overall.total_requests).toBe(40);
  for (const response of answered) {
    const id = response.headers.get("x-signalbox-request-id") as string;
    expect(await read(gateway, `/admin/requests/${id}`)).toMatchObject({ id, outcome: "succeeded", backend: "a" });
  }
  const requests = [...(await counters(gateway))].filter(([name]) => name.startsWith("signalbox_requests_total"));
  expect(requests.map(([, value]) => value)).toEqual([40]);
  expect(await gateway.backend("a")).toMatchObject({ total_requests: 40, in_flight: 0 });
  await gateway.close();
});

test("of workers that are killed under load only their own connections fail, and counters never go back", async () => {
  const gateway = await start({}, { ...chat("hello"), beforeHeadersMs: 20 });
  await waitForWorkers(gateway);
  const asking = load(gateway, 8);
  const deaths: { killedMs: number; goneMs: number }[] = [];
  let before = await counters(gateway);
  for (let index = 0; index < KILLS; index++) {
    const workers = await waitForWorkers(gateway);
    const victim = workers[Math.floor(Math.random() * workers.length)] as Worker;
    await Bun.sleep(100);
    const killedMs = performance.now();
    process.kill(victim.pid, "SIGKILL");
    // Until the kernel has ended it, it still takes connections for it.
    await waitFor("it is gone", () => !existsSync(`/proc/${victim.pid}`), { intervalMs: 2 });
    deaths.push({ killedMs, goneMs: performance.now() });
    await waitForWorkers(gateway, [victim.pid]);
    const after = await counters(gateway);
    const wentBack = [...before].filter(([name, value]) => !((after.get(name) ?? Number.NaN) >= value));
    expect(wentBack.map(([name, value]) => `${name} was ${value}, is ${after.get(name)}`)).toEqual([]);
    before = after;
  }
  await asking.stop();
  // Whoever was under way at a death may have been there, or was waiting to be accepted; nobody else.
  const late = asking.failed.flatMap(({ how, beganMs, endedMs }) => {
    if (deaths.some(({ killedMs, goneMs }) => beganMs < goneMs && endedMs > killedMs)) return [];
    const since = deaths.map(({ goneMs }) => Math.round(beganMs - goneMs)).filter((ms) => Math.abs(ms) < 1_000);
    return [`${how} after ${Math.round(endedMs - beganMs)} ms, begun ${since} ms after a worker was gone`];
  });
  expect(late).toEqual([]);
  expect(asking.failed.length).toBeLessThanOrEqual(KILLS * 8);
  const { overall } = await read<{ overall: { total_requests: number } }>(gateway, "/admin/stats");
  // What a worker had not told yet is lost with it: the last quarter of a second.
  expect(overall.total_requests).toBeGreaterThanOrEqual(asking.succeeded() - KILLS * 200);
  expect(overall.total_requests).toBeLessThanOrEqual(asking.succeeded() + asking.failed.length);
  await gateway.waitUntilIdle();
  await gateway.close();
}, 600_000);

test("a request whose worker died counts as failed, and can be looked up", async () => {
  const gate = Promise.withResolvers<void>();
  const gateway = await start({}, { ...chat("never"), headersAfter: gate.promise });
  const workers = await waitForWorkers(gateway);
  const pending = gateway.chat({}, ALONE).catch(() => undefined);
  await waitFor("it is under way", async () => {
    const { requests } = await read<{ requests: { backend: string | null }[] }>(gateway, "/admin/requests");
    return requests[0]?.backend === "a";
  });
  for (const { pid } of workers) process.kill(pid, "SIGKILL");
  await pending;
  await waitForWorkers(
    gateway,
    workers.map(({ pid }) => pid),
  );
  gate.resolve();
  expect(await read(gateway, "/admin/requests")).toMatchObject({
    requests: [{ finished: true, outcome: "failed", status: 502, failure: "process_lost" }],
  });
  expect(await read(gateway, "/admin/stats")).toMatchObject({ overall: { total_requests: 1, failed_requests: 1 } });
  expect(await read(gateway, "/admin/errors/recent")).toMatchObject({ errors: [{ type: "process_lost" }] });
  await gateway.close();
});

test("a change is in force on every worker when it is answered", async () => {
  const gateway = await start({ model_aliases: { alias: "m" } });
  const message = { max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
  for (let index = 0; index < CHANGES; index++) {
    const model = index % 2 === 0 ? "other" : "alias";
    const response = await gateway.fetch("/admin/config/model_aliases", {
      ...ALONE,
      method: "PUT",
      headers: { "Content-Type": "application/json", connection: "close" },
      body: JSON.stringify({ [model]: "m" }),
    });
    expect(response.status).toBe(200);
    const seen = new Set<string>();
    for (let round = 0; round < 8; round++) {
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => gateway.post("/v1/messages", { ...message, model }, ALONE)),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      for (const answer of answers) seen.add(workerOf(answer));
      if (seen.size === WORKERS) break;
    }
    expect(seen.size).toBe(WORKERS);
  }
  await gateway.close();
}, 300_000);

test("a restart of the workers fails no request, and loses none", async () => {
  const gateway = await start();
  const before = await waitForWorkers(gateway);
  // Also those that stay on their connections.
  const asking = [load(gateway, 4), load(gateway, 4, {})];
  const response = await gateway.fetch("/admin/workers/restart", { ...ALONE, method: "POST" });
  expect(await response.json()).toMatchObject({ success: true, replaced: WORKERS });
  await waitForWorkers(
    gateway,
    before.map(({ pid }) => pid),
  );
  await Promise.all(asking.map(({ stop }) => stop()));
  const [afresh, kept] = asking.map(({ failed }) => failed);
  expect(kept).toEqual([]);
  // The kernel resets what it has taken when a port is closed, unless it may hand that on: clients connect again.
  expect(afresh?.length).toBeLessThanOrEqual(mayMigrate() ? 0 : WORKERS);
  expect(await read<object>(gateway, "/admin/workers")).toMatchObject({ restarts: { crash: 0, request: WORKERS } });
  const metrics = await (await gateway.fetch("/metrics", ALONE)).text();
  expect(metrics).toContain(`signalbox_workers{state="running"} ${WORKERS}\n`);
  expect(metrics).toContain(`signalbox_worker_restarts_total{reason="request"} ${WORKERS}\n`);
  // Those that have ended have told everything.
  await waitFor("they have ended", () => !before.some(({ pid }) => isAlive(pid)), { timeoutMs: 30_000 });
  const stats = await read<{ overall: { total_requests: number } }>(gateway, "/admin/stats");
  expect(stats.overall.total_requests).toBe(asking.reduce((sum, { succeeded }) => sum + succeeded(), 0));
  await gateway.close();
});

test("whoever listens to events is sent to the new workers, and does not hold up the old ones", async () => {
  const gateway = await start({ server: { workers: WORKERS, shutdown_timeout: "5m" } });
  const before = await waitForWorkers(gateway);
  const listeners = await Promise.all(Array.from({ length: 8 }, () => gateway.fetch("/admin/events", ALONE)));
  expect((await gateway.fetch("/admin/workers/restart", { ...ALONE, method: "POST" })).status).toBe(200);
  for (const listener of listeners) expect(await listener.text()).toContain("events of Signalbox");
  await waitFor("they have ended", () => !before.some(({ pid }) => isAlive(pid)), { timeoutMs: 30_000 });
  await gateway.close();
}, 60_000);

/** In the long form alone: it waits for times that nobody would set shorter. */
const testLong = isLong ? test : () => {};

testLong(
  "a worker above its memory limit is replaced, and no request fails",
  async () => {
    const gateway = await start({ server: { workers: WORKERS, worker_memory_limit: 64 * 1024 * 1024 } });
    const asking = load(gateway, 4, {});
    await waitForRestart(gateway, "memory");
    await asking.stop();
    expect(asking.failed).toEqual([]);
    await gateway.close();
  },
  120_000,
);

testLong(
  "a worker that answers nothing is killed and replaced",
  async () => {
    const gateway = await start();
    const [victim] = (await waitForWorkers(gateway)) as [Worker];
    process.kill(victim.pid, "SIGSTOP");
    await waitForRestart(gateway, "hang");
    await waitForWorkers(gateway, [victim.pid]);
    await gateway.close();
  },
  120_000,
);

test("without workers there is nothing to restart", async () => {
  const gateway = await start({ server: { workers: 1 } });
  expect((await gateway.fetch("/admin/workers/restart", { method: "POST" })).status).toBe(409);
  expect(await read<object>(gateway, "/admin/workers")).toMatchObject({ enabled: false, workers: [] });
  await gateway.close();
});

test("a limit admits exactly what it says, whoever is asked", async () => {
  const limits = { requests_per_second: 1, burst_capacity: 20 };
  const plenty = { requests_per_second: 1000, burst_capacity: 1000 };
  const rate_limiting = {
    enabled: true,
    limits: { per_client: limits, per_api_key: plenty, per_backend: plenty, global: plenty },
  };
  const gateway = await start({ rate_limiting });
  const startedMs = performance.now();
  const answers = await Promise.all(Array.from({ length: 60 }, () => gateway.chat({}, ALONE)));
  const earned = Math.ceil((performance.now() - startedMs) / 1_000); // a token a second
  const admitted = answers.filter(({ status }) => status === 200).length;
  expect(admitted).toBeGreaterThanOrEqual(20);
  expect(admitted).toBeLessThanOrEqual(20 + earned);
  expect(new Set(answers.map(workerOf)).size).toBe(WORKERS);
  await gateway.close();
});

test("what one worker keeps is a hit for all", async () => {
  const gateway = await start({ response_cache: { enabled: true } });
  const ask = () => gateway.chat({ temperature: 0 }, ALONE);
  const first = await ask();
  await first.text();
  expect(first.headers.get("x-cache")).toBe("MISS");
  const seen = new Set<string>();
  for (let index = 0; index < 20; index++) {
    const response = await ask();
    await response.text();
    seen.add(workerOf(response));
    expect(response.headers.get("x-cache")).toBe("HIT");
  }
  expect(seen.size).toBe(WORKERS);
  expect(await read<object>(gateway, "/admin/response-cache")).toMatchObject({ hits: 20, misses: 1, entries: 1 });
  await gateway.close();
});

test("a conversation goes on wherever it is", async () => {
  const gateway = await start();
  let previous: string | undefined;
  const seen = new Set<string>();
  for (let turn = 0; turn < 12; turn++) {
    const response = await gateway.post(
      "/v1/responses",
      { model: "m", input: "go on", previous_response_id: previous },
      ALONE,
    );
    expect(response.status).toBe(200);
    seen.add(workerOf(response));
    previous = ((await response.json()) as { id: string }).id;
  }
  expect(seen.size).toBe(WORKERS);
  await gateway.close();
});

test("the death of the primary ends the workers at once, and leaves nothing behind", async () => {
  const gateway = await start();
  const workers = await waitForWorkers(gateway);
  gateway.process.kill("SIGKILL");
  await waitFor("no worker is left", () => !workers.some(({ pid }) => isAlive(pid)));
});

test("a port that somebody else has ends the start, gateways with workers included", async () => {
  const gateway = await start();
  const server = { bind_address: `127.0.0.1:${gateway.port}`, workers: WORKERS };
  const run = await runCommand({ config: { server } });
  expect(run.exitCode).toBe(1);
  expect(run.stderr).toContain("server.bind_address: cannot listen on");
  await gateway.close();
});

test("a folder for temporary files that cannot be written to ends the start with a word about it", async () => {
  const config = { server: { bind_address: "127.0.0.1:0", workers: WORKERS } };
  const run = await runCommand({ config, environment: { TMPDIR: "/proc" } });
  expect(run.exitCode).toBe(1);
  expect(run.stderr).toContain("server.workers: no folder can be made in /proc (ENOENT). Set TMPDIR to one");
});

test("admin requests are judged by who sent them, and the way to the primary is closed to others", async () => {
  const backend = bed.backend({ answer: chat("hello") });
  const gateway = await bed.process({
    config: {
      server: { bind_address: "127.0.0.1:0", workers: WORKERS },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
    environment: { TMPDIR: "." },
  });
  const forged = { "x-signalbox-primary": "guess", "x-signalbox-origin": "%7B%7D", "x-forwarded-for": "127.0.0.1" };
  expect((await gateway.fetch("/admin/config", { headers: forged })).status).toBe(403);
  const folder = readdirSync(gateway.folder).find((name) => name.startsWith("signalbox-")) as string;
  const socket = join(gateway.folder, folder, "primary.sock");
  const direct = await fetch("http://localhost/", { unix: socket, headers: forged } as RequestInit);
  expect(direct.status).toBe(403);
  expect(await gateway.stop()).toBe(0);
  expect(existsSync(socket)).toBe(false);
});

test("a unix socket is served beside the port", async () => {
  const gateway = await start({ server: { bind_address: ["127.0.0.1:0", "unix:gateway.sock"] } });
  const unix = join(gateway.folder, "gateway.sock");
  const response = await fetch("http://localhost/v1/models", { unix } as RequestInit);
  expect(response.status).toBe(200);
  const admin = await fetch("http://localhost/admin/workers", { unix } as RequestInit);
  expect(await admin.json()).toMatchObject({ enabled: true });
  await gateway.close();
});

test("at the end streams under way finish", async () => {
  const gate = Promise.withResolvers<void>();
  const gateway = await start({}, { ...chat("at last"), headersAfter: gate.promise });
  const pending = Array.from({ length: 6 }, () => gateway.chat({}, ALONE));
  await waitFor("all are under way", async () => (await gateway.backend("a")).in_flight === 6);
  const stopped = gateway.stop();
  await Bun.sleep(100);
  gate.resolve();
  for (const response of await Promise.all(pending)) expect(response.status).toBe(200);
  expect(await stopped).toBe(0);
});
