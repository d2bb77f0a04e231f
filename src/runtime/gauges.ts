// Metrics of backends and of the gateway itself that are read from their owners when somebody asks: they cost a request
// nothing.

import type { BackendEntry } from "../backends/board.ts";
import type { FileUsage } from "../files/file-store.ts";
import { canBeAsked } from "../fleet/can-be-asked.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { EventSourceView } from "../kv-index/event-source.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricsRegistry, Reading } from "../metrics/registry.ts";
import { VERSION } from "../names.ts";
import type { CacheStatistics, ResponseCache } from "../response-cache/cache.ts";
import type { ProcessNumbers } from "../workers/messages.ts";
import type { KvIndexInUse } from "./kv-index-in-use.ts";

export interface GaugeSources {
  fleet: { board: { entries: readonly BackendEntry[] }; circuits: Pick<Fleet["circuits"], "state" | "letsThrough"> };
  /** Undefined while it is off. */
  cache(): Pick<ResponseCache, "stats"> | undefined;
  /** The Redis servers in use, by what they are used for. */
  redis(): readonly { use: string; isThere: boolean }[];
  /** Undefined while files are switched off, and until the store is open. */
  files(): FileUsage | undefined;
  /** Whether the receiver takes what it is sent; undefined while there is none. */
  otlp: { isUp(signal: "traces" | "metrics"): boolean | undefined };
  /** Undefined while it is off. */
  kvIndex(): KvIndexInUse | undefined;
  configVersion(): number;
  /** False while the configuration file is broken. */
  configReloadOk(): boolean;
  openStreams(): number;
  /** Seconds. */
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
const HEALTH_STATES = ["unknown", "ready", "warming_up", "down", "unhealthy"] as const;
const CIRCUIT_STATES = ["closed", "open", "half_open"] as const;

export function addGauges(registry: MetricsRegistry, sources: GaugeSources): void {
  addBackendGauges(registry, sources.fleet);
  if (sources.workers !== undefined) addWorkerGauges(registry, sources.workers);
  addKvIndexGauges(registry, sources);

  function single(instrument: Parameters<MetricsRegistry["read"]>[0], value: () => number): void {
    registry.read(instrument, () => [{ labels: [], value: value() }]);
  }
  const startedAtMs = sources.wallTime();
  registry.read(INSTRUMENTS.buildInfo, () => [{ labels: [VERSION, `bun ${Bun.version}`], value: 1 }]);
  single(INSTRUMENTS.uptime, () => (sources.wallTime() - startedAtMs) / 1000);
  single(INSTRUMENTS.startTime, () => startedAtMs / 1000);
  /** Of all processes together. */
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

  function cached(instrument: Parameters<MetricsRegistry["read"]>[0], field: "entries" | "bytes" | "evictions"): void {
    registry.read(instrument, () => {
      const statistics = sources.cache()?.stats();
      // None for a cache that has to be waited for, or does not know.
      const value = statistics === undefined || statistics instanceof Promise ? null : statistics[field];
      return value === null ? [] : [{ labels: [], value }];
    });
  }
  function inBucket(instrument: Parameters<MetricsRegistry["read"]>[0], read: (told: CacheStatistics) => number): void {
    registry.read(instrument, () => {
      const statistics = sources.cache()?.stats();
      if (statistics === undefined || statistics instanceof Promise || statistics.l2 === undefined) return [];
      return [{ labels: [], value: read(statistics) }];
    });
  }
  inBucket(INSTRUMENTS.cacheBucketUp, ({ connected }) => (connected ? 1 : 0));
  inBucket(INSTRUMENTS.cacheBucketHits, ({ l2 }) => l2?.hits ?? 0);
  inBucket(INSTRUMENTS.cacheBucketDropped, ({ l2 }) => l2?.dropped ?? 0);
  cached(INSTRUMENTS.cacheEntries, "entries");
  cached(INSTRUMENTS.cacheBytes, "bytes");
  cached(INSTRUMENTS.cacheEvictions, "evictions");

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

function addKvIndexGauges(registry: MetricsRegistry, { kvIndex }: Pick<GaugeSources, "kvIndex">): void {
  type Stats = ReturnType<KvIndexInUse["stats"]>;
  function each(instrument: Parameters<MetricsRegistry["read"]>[0], read: (stats: Stats) => Iterable<Reading>): void {
    registry.read(instrument, () => {
      const index = kvIndex();
      return index === undefined ? [] : read(index.stats());
    });
  }
  each(INSTRUMENTS.kvIndexEntries, ({ backends }) =>
    backends.map(({ backend, entries }) => ({ labels: [backend], value: entries })),
  );
  each(INSTRUMENTS.kvIndexDistrusted, ({ backends }) =>
    backends.map(({ backend, distrusted }) => ({ labels: [backend], value: distrusted ? 1 : 0 })),
  );
  each(INSTRUMENTS.kvIndexBytes, ({ bytes }) => [{ labels: [], value: bytes }]);
  each(INSTRUMENTS.kvIndexLookups, ({ hits, lookups }) => [
    { labels: ["hit"], value: hits },
    { labels: ["miss"], value: lookups - hits },
  ]);
  each(INSTRUMENTS.kvIndexSourceConnected, ({ eventSources }) =>
    perBackend(eventSources, ({ connected }) => (connected ? 1 : 0)),
  );
  each(INSTRUMENTS.kvIndexEvents, ({ eventSources }) => perBackend(eventSources, ({ events }) => events));
  each(INSTRUMENTS.kvIndexDropped, ({ eventSources }) => perBackend(eventSources, ({ dropped }) => dropped));
}

/** A backend with several sources is one series. */
function perBackend(sources: readonly EventSourceView[], value: (source: EventSourceView) => number): Reading[] {
  const sums = new Map<string, number>();
  for (const source of sources) sums.set(source.backend, (sums.get(source.backend) ?? 0) + value(source));
  return [...sums].map(([name, sum]) => ({ labels: [name], value: sum }));
}

function addBackendGauges(registry: MetricsRegistry, fleet: GaugeSources["fleet"]): void {
  function* each(value: (entry: BackendEntry) => number | undefined): Generator<Reading> {
    for (const entry of fleet.board.entries) {
      const read = value(entry);
      if (read !== undefined) yield { labels: [entry.backend.name], value: read };
    }
  }
  function* perState(states: readonly string[], stateOf: (entry: BackendEntry) => string): Generator<Reading> {
    for (const entry of fleet.board.entries) {
      const current = stateOf(entry);
      for (const state of states) yield { labels: [entry.backend.name, state], value: state === current ? 1 : 0 };
    }
  }
  function* perKind(): Generator<Reading> {
    for (const entry of fleet.board.entries) {
      const { name, kind } = entry.backend;
      yield { labels: [name, kind.name], value: canBeAsked(entry, fleet.circuits) ? 1 : 0 };
    }
  }
  registry.read(INSTRUMENTS.backendUp, perKind);
  registry.read(INSTRUMENTS.backendHealth, () => perState(HEALTH_STATES, ({ health }) => health));
  registry.read(INSTRUMENTS.circuitState, () =>
    perState(CIRCUIT_STATES, ({ backend }) => fleet.circuits.state(backend.name)),
  );
  registry.read(INSTRUMENTS.backendInFlight, () => each(({ counters }) => counters.inFlight));
  registry.read(INSTRUMENTS.backendAttempts, () => each(({ counters }) => counters.totalRequests));
  registry.read(INSTRUMENTS.backendFailures, () => each(({ counters }) => counters.failedRequests));
  registry.read(INSTRUMENTS.backendLatency, () =>
    each(({ counters: { latencyMs } }) => (latencyMs === undefined ? undefined : latencyMs / 1000)),
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
