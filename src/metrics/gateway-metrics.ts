// Metrics of backends and of the gateway itself: most are read from their owners when somebody asks, so that they cost a
// request nothing; the rest are counted by rare events.

import { INSTRUMENTS } from "./instruments.ts";
import type { MetricsRegistry, Reading } from "./registry.ts";

/** One backend as its owners know it at this moment. */
export interface BackendReading {
  name: string;
  kind: string;
  /** Requests may be sent to it. */
  available: boolean;
  health: string;
  circuit: string;
  inFlight: number;
  totalRequests: number;
  failedRequests: number;
  latencyMs: number | undefined;
}

export interface CacheReading {
  entries: number;
  bytes: number;
  evictions: number;
}

/** Where the values are read. */
export interface MetricSources {
  version: string;
  runtime: string;
  /** Milliseconds since 1970. */
  startedAtMs: number;
  wallTime(): number;
  backends(): Iterable<BackendReading>;
  openStreams(): number;
  /** Seconds. */
  eventLoopLag(): number;
  configVersion(): number;
  /** False while the configuration file is broken. */
  configReloadOk(): boolean;
  /** Undefined while the cache is off, or where it cannot say at once. */
  cache(): CacheReading | undefined;
}

export const HEALTH_STATES = ["unknown", "ready", "warming_up", "down", "unhealthy"] as const;
export const CIRCUIT_STATES = ["closed", "open", "half_open"] as const;

/** What is counted when it happens. */
export interface GatewayEvents {
  rateLimited(scope: string): void;
  /** A translation could not carry a feature. */
  dropped(feature: string): void;
  circuitChanged(change: { backend: string; to: string }): void;
  configReloaded(isOk: boolean): void;
  historyWritten(isOk: boolean): void;
}

export function countGatewayEvents(registry: MetricsRegistry): GatewayEvents {
  // These stand at 0 from the start, so that the first event is seen as an increase.
  const reloads = ok(registry, INSTRUMENTS.configReloads);
  const historyWrites = ok(registry, INSTRUMENTS.historyWrites);
  for (const scope of ["client", "key", "global", "backend"]) registry.counter(INSTRUMENTS.rateLimitRefusals, scope);
  return {
    rateLimited: (scope) => void registry.counter(INSTRUMENTS.rateLimitRefusals, scope).value++,
    dropped: (feature) => void registry.counter(INSTRUMENTS.translationDrops, feature).value++,
    circuitChanged: ({ backend, to }) => void registry.counter(INSTRUMENTS.circuitChanges, backend, to).value++,
    configReloaded: (isOk) => void reloads(isOk).value++,
    historyWritten: (isOk) => void historyWrites(isOk).value++,
  };
}

export function readGateway(registry: MetricsRegistry, sources: MetricSources): void {
  const { version, runtime, startedAtMs, wallTime } = sources;

  function* perBackend(value: (backend: BackendReading) => number | undefined): Generator<Reading> {
    for (const backend of sources.backends()) {
      const read = value(backend);
      if (read !== undefined) yield { labels: [backend.name], value: read };
    }
  }

  function* perState(states: readonly string[], stateOf: (backend: BackendReading) => string): Generator<Reading> {
    for (const backend of sources.backends()) {
      const current = stateOf(backend);
      for (const state of states) yield { labels: [backend.name, state], value: state === current ? 1 : 0 };
    }
  }

  function* perKind(): Generator<Reading> {
    for (const { name, kind, available } of sources.backends())
      yield { labels: [name, kind], value: available ? 1 : 0 };
  }

  registry.read(INSTRUMENTS.backendUp, perKind);
  registry.read(INSTRUMENTS.backendHealth, () => perState(HEALTH_STATES, ({ health }) => health));
  registry.read(INSTRUMENTS.circuitState, () => perState(CIRCUIT_STATES, ({ circuit }) => circuit));
  registry.read(INSTRUMENTS.backendInFlight, () => perBackend(({ inFlight }) => inFlight));
  registry.read(INSTRUMENTS.backendAttempts, () => perBackend(({ totalRequests }) => totalRequests));
  registry.read(INSTRUMENTS.backendFailures, () => perBackend(({ failedRequests }) => failedRequests));
  registry.read(INSTRUMENTS.backendLatency, () =>
    perBackend(({ latencyMs }) => (latencyMs === undefined ? undefined : latencyMs / 1000)),
  );

  const cached = (value: (cache: CacheReading) => number) => (): Reading[] => {
    const cache = sources.cache();
    return cache === undefined ? [] : [{ labels: [], value: value(cache) }];
  };
  registry.read(
    INSTRUMENTS.cacheEntries,
    cached(({ entries }) => entries),
  );
  registry.read(
    INSTRUMENTS.cacheBytes,
    cached(({ bytes }) => bytes),
  );
  registry.read(
    INSTRUMENTS.cacheEvictions,
    cached(({ evictions }) => evictions),
  );

  const single = (value: () => number) => (): Reading[] => [{ labels: [], value: value() }];
  registry.read(INSTRUMENTS.buildInfo, () => [{ labels: [version, runtime], value: 1 }]);
  registry.read(
    INSTRUMENTS.uptime,
    single(() => (wallTime() - startedAtMs) / 1000),
  );
  registry.read(
    INSTRUMENTS.startTime,
    single(() => startedAtMs / 1000),
  );
  registry.read(INSTRUMENTS.openStreams, single(sources.openStreams));
  registry.read(INSTRUMENTS.eventLoopLag, single(sources.eventLoopLag));
  registry.read(INSTRUMENTS.configVersion, single(sources.configVersion));
  registry.read(
    INSTRUMENTS.configReloadOk,
    single(() => (sources.configReloadOk() ? 1 : 0)),
  );
  registry.read(
    INSTRUMENTS.residentMemory,
    single(() => process.memoryUsage.rss()),
  );
  registry.read(
    INSTRUMENTS.heapMemory,
    single(() => process.memoryUsage().heapUsed),
  );
  registry.read(INSTRUMENTS.cpuSeconds, single(cpuSeconds));
}

function ok(
  registry: MetricsRegistry,
  instrument: (typeof INSTRUMENTS)["configReloads" | "historyWrites"],
): (isOk: boolean) => { value: number } {
  const success = registry.counter(instrument, "success");
  const failure = registry.counter(instrument, "failure");
  return (isOk) => (isOk ? success : failure);
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
