// What is known of requests that are over, put together: statistics, metrics and their history, errors, stories.

import type { BackendEntry } from "../backends/board.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolveDataPath } from "../config/values/paths.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { watchEventLoopLag } from "../metrics/event-loop-lag.ts";
import { countGatewayEvents } from "../metrics/gateway-events.ts";
import { HistorySampler, type HistorySettings } from "../metrics/history/sampler.ts";
import { HistoryStore } from "../metrics/history/store.ts";
import { createObserver } from "../metrics/observer.ts";
import { MetricsRegistry } from "../metrics/registry.ts";
import { createRequestMetrics } from "../metrics/request-metrics.ts";
import type { ModelMetadataSource } from "../models/metadata.ts";
import { createReporter } from "../pipeline/observe.ts";
import type { CircuitChange } from "../routing/circuits.ts";
import { StatsCollector } from "../stats/collector.ts";
import { ErrorRecorder } from "../stats/error-recorder.ts";
import { Happenings, type HealthChange } from "../stats/happenings.ts";
import { SnapshotFile } from "../stats/snapshot-file.ts";
import { Stories } from "../stats/stories.ts";
import { addGauges, type GaugeSources } from "./gauges.ts";
import { createOtlpOwner } from "./otlp-in-use.ts";

export function createTelemetry(
  { settings, baseDir }: ConfigSnapshot,
  facts: ModelMetadataSource,
  home: string | undefined,
  clock: Clock,
  log: Logger,
) {
  let metadata = facts;
  const dataPath = (path: string) => resolveDataPath(path, { dataDir: settings.server.data_dir, baseDir, home });
  const historySettings = ({ metrics }: Settings): HistorySettings => ({
    ...metrics.persistence,
    path: dataPath(settings.metrics.persistence.path),
  });
  const wallTime = () => clock.wallTime();

  const collector = new StatsCollector({
    settings: settings.admin.stats,
    clock,
    priceOf(model, backend) {
      const pricing = (backend === undefined ? metadata.ofAny(model, []) : metadata.of(model, backend))?.pricing;
      return (
        pricing && {
          inputTokens: pricing.input_tokens ?? 0,
          outputTokens: pricing.output_tokens ?? 0,
          cacheReadTokens: pricing.cache_read_tokens,
          cacheWriteTokens: pricing.cache_write_tokens,
        }
      );
    },
  });
  const registry = new MetricsRegistry();
  let isByKey = settings.metrics.by_key;
  // Switched off, metrics cost a request nothing; switching them needs a restart to be counted from the start anyway.
  const requestMetrics = settings.metrics.enabled ? createRequestMetrics(registry, () => isByKey) : undefined;
  const lag = watchEventLoopLag(clock.now);
  const events = countGatewayEvents(registry);
  const errors = new ErrorRecorder({ clock });
  const happenings = new Happenings();
  const stories = new Stories({ clock, happenings });
  const observer = createObserver(collector, requestMetrics);
  let backends: () => readonly BackendEntry[] = () => [];
  const metrics = {
    families: () => registry.families(),
    backends: () => backends().map(({ backend }) => backend),
  };
  const otlp = createOtlpOwner({ settings, clock, log, counters: events, metrics });
  const reporter = createReporter(observer, stories, errors, events, otlp.spans);

  const { persistence } = settings.admin.stats;
  const statsFile = new SnapshotFile({
    settings: { ...persistence, path: dataPath(persistence.path) },
    collector,
    log,
    wallTime,
  });
  const keepsHistory = settings.metrics.enabled && settings.metrics.persistence.enabled;
  const history = keepsHistory ? new HistoryStore({ path: historySettings(settings).path, log }) : undefined;
  const sampler =
    history === undefined
      ? undefined
      : new HistorySampler({
          settings: historySettings(settings),
          store: history,
          read: () => registry.samples(),
          log,
          wallTime,
          written: (isOk) => events.historyWritten(isOk),
        });

  return {
    reporter,
    observer,
    collector,
    registry,
    /** Undefined while no history is kept. */
    history,
    errors,
    stories,
    events,
    happenings,
    /** What the fleet tells. */
    ofBackends: {
      circuitChanged(change: CircuitChange) {
        events.circuitChanged(change);
        happenings.circuitChanged(change);
      },
      healthChanged: (change: HealthChange) => happenings.healthChanged(change),
    },
    /** What could not be written the last time, each with the reason. */
    storageProblems: () => [statsFile.problem, sampler?.problem].filter((problem) => problem !== undefined),
    /** Lets the metrics show what others own. */
    show(
      owners: Pick<
        GaugeSources,
        "fleet" | "cache" | "redis" | "files" | "kvIndex" | "configVersion" | "configReloadOk" | "workers"
      >,
    ): void {
      backends = () => owners.fleet.board.entries;
      addGauges(registry, {
        ...owners,
        otlp,
        openStreams: reporter.openStreams,
        eventLoopLag: () => lag.read(),
        wallTime,
      });
    },
    /** Before the first request. */
    async restore(): Promise<void> {
      await statsFile.restore();
      statsFile.start();
      sampler?.start();
    },
    apply(next: Settings, nextFacts: ModelMetadataSource): void {
      metadata = nextFacts;
      isByKey = next.metrics.by_key;
      collector.apply(next.admin.stats);
      collector.pricesChanged();
      sampler?.apply(historySettings(next));
      otlp.apply(next);
    },
    /** Everything is written, and sent as far as `withinMs` allows. */
    async stop(withinMs: number): Promise<void> {
      lag.stop();
      await otlp.stop(withinMs);
      await sampler?.stop();
      await statsFile.stop();
      history?.close();
    },
  };
}
