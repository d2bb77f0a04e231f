// Metrics of backends and of the gateway itself that are read from their owners with a scrape: they cost a request
// nothing.

import type { AdmissionView } from "../admission/admission.ts";
import { addQueueGauges } from "../admission/gauges.ts";
import { addBudgetGauges } from "../budgets/gauges.ts";
import type { Ledger } from "../budgets/ledger.ts";
import type { FileUsage } from "../files/file-store.ts";
import { addBackendGauges } from "../fleet/gauges.ts";
import { addKvIndexGauges } from "../kv-index/gauges.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import { VERSION } from "../names.ts";
import type { KvIndexInUse } from "../pipeline/kv-index-part.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import { addCacheGauges } from "../response-cache/gauges.ts";
import type { ProcessNumbers } from "../workers/messages.ts";

export interface GaugeSources {
  fleet: Parameters<typeof addBackendGauges>[1];
  /** Undefined while the cache is off. */
  cache(): Pick<ResponseCache, "stats"> | undefined;
  /** The Redis servers in use, by what they are used for. */
  redis(): readonly { use: string; isThere: boolean }[];
  /** Undefined while files are switched off, and until the store is open. */
  files(): FileUsage | undefined;
  /** True if the receiver took the last request; undefined while there is no receiver. */
  otlp: { isUp(signal: "traces" | "metrics"): boolean | undefined };
  /** Undefined while the index is off. */
  kvIndex(): KvIndexInUse | undefined;
  /** Undefined while there is no queue. */
  queue(): AdmissionView | undefined;
  ledger(): Ledger;
  configVersion(): number;
  /** Batches that are not finished; undefined while none were ever created, or they are switched off. */
  batches(): number | undefined;
  /** False while the configuration file is broken. */
  configReloadOk(): boolean;
  openStreams(): number;
  /** In seconds. */
  eventLoopLag(): number;
  wallTime(): number;
  /** Undefined: there is this process alone. */
  workers?: WorkerSources | undefined;
}

interface WorkerSources {
  numbers(): readonly ProcessNumbers[];
  pastCpuSeconds(): number;
  rows(): readonly { state: string }[];
  restarts(): Readonly<Record<string, number>>;
}

const WORKER_STATES = ["starting", "running", "draining"] as const;

export function addGauges(registry: MetricsRegistry, sources: GaugeSources): void {
  addBackendGauges(registry, sources.fleet);
  if (sources.workers !== undefined) addWorkerGauges(registry, sources.workers);
  addKvIndexGauges(registry, sources.kvIndex);
  addCacheGauges(registry, sources.cache);
  addBudgetGauges(registry, sources.ledger);
  addQueueGauges(registry, sources.queue);

  function single(instrument: Parameters<MetricsRegistry["read"]>[0], value: () => number): void {
    registry.read(instrument, () => [{ labels: [], value: value() }]);
  }
  const startedAtMs = sources.wallTime();
  registry.read(INSTRUMENTS.buildInfo, () => [{ labels: [VERSION, `bun ${Bun.version}`], value: 1 }]);
  single(INSTRUMENTS.uptime, () => (sources.wallTime() - startedAtMs) / 1000);
  single(INSTRUMENTS.startTime, () => startedAtMs / 1000);
  /** Adds up all processes. */
  function sum(own: number, of: (numbers: ProcessNumbers) => number): number {
    return (sources.workers?.numbers() ?? []).reduce((total, numbers) => total + of(numbers), own);
  }
  single(INSTRUMENTS.openStreams, () => sum(sources.openStreams(), ({ openStreams }) => openStreams));
  single(INSTRUMENTS.eventLoopLag, () => {
    const lags = (sources.workers?.numbers() ?? []).map(({ lagSeconds }) => lagSeconds);
    return Math.max(sources.eventLoopLag(), ...lags);
  });
  single(INSTRUMENTS.configVersion, sources.configVersion);
  single(INSTRUMENTS.configReloadOk, () => (sources.configReloadOk() ? 1 : 0));
  single(INSTRUMENTS.residentMemory, () => sum(process.memoryUsage.rss(), ({ residentBytes }) => residentBytes));
  single(INSTRUMENTS.heapMemory, () => sum(process.memoryUsage().heapUsed, ({ heapBytes }) => heapBytes));
  const past = () => cpuSeconds() + (sources.workers?.pastCpuSeconds() ?? 0);
  single(INSTRUMENTS.cpuSeconds, () => sum(past(), (numbers) => numbers.cpuSeconds));

  registry.read(INSTRUMENTS.redisUp, () =>
    sources.redis().map(({ use, isThere }) => ({ labels: [use], value: isThere ? 1 : 0 })),
  );

  registry.read(INSTRUMENTS.otlpUp, () =>
    (["traces", "metrics"] as const).flatMap((signal) => {
      const isUp = isTaken(sources, signal);
      return isUp === undefined ? [] : [{ labels: [signal], value: isUp ? 1 : 0 }];
    }),
  );

  function stored(instrument: Parameters<MetricsRegistry["read"]>[0], field: "count" | "bytes"): void {
    registry.read(instrument, () => {
      const usage = sources.files();
      return usage === undefined ? [] : [{ labels: [], value: usage[field] }];
    });
  }
  registry.read(INSTRUMENTS.openBatches, () => {
    const open = sources.batches();
    return open === undefined ? [] : [{ labels: [], value: open }];
  });
  stored(INSTRUMENTS.files, "count");
  stored(INSTRUMENTS.fileBytes, "bytes");
}

function addWorkerGauges(registry: MetricsRegistry, { rows, restarts }: WorkerSources): void {
  registry.read(INSTRUMENTS.workers, () =>
    WORKER_STATES.map((state) => ({ labels: [state], value: rows().filter((row) => row.state === state).length })),
  );
  registry.read(INSTRUMENTS.workerRestarts, () =>
    Object.entries(restarts()).map(([reason, value]) => ({ labels: [reason], value })),
  );
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Traces are sent by each process, metrics by the one that has them all. */
function isTaken({ otlp, workers }: GaugeSources, signal: "traces" | "metrics"): boolean | undefined {
  const own = otlp.isUp(signal);
  if (own === undefined || signal === "metrics") return own;
  return own && (workers?.numbers() ?? []).every(({ tracesUp }) => tracesUp !== false);
}
