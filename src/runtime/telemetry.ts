// What is known of requests that are over, put together: statistics, metrics and their history, errors, stories.

import type { BackendEntry } from "../backends/board.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { currencyOf } from "../config/sections/currency.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolveDataPath } from "../config/values/paths.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { watchEventLoopLag } from "../metrics/event-loop-lag.ts";
import { countGatewayEvents, type GatewayEvents } from "../metrics/gateway-events.ts";
import { HistorySampler, type HistorySettings } from "../metrics/history/sampler.ts";
import { HistoryStore } from "../metrics/history/store.ts";
import { createObserver } from "../metrics/observer.ts";
import { MetricsRegistry } from "../metrics/registry.ts";
import { createRequestMetrics } from "../metrics/request-metrics.ts";
import { createArmBook } from "../model-routes/arm-book.ts";
import { createModelMetadata, type ModelMetadataSource } from "../models/metadata.ts";
import { pricesIn } from "../models/prices.ts";
import { createOtlpPart } from "../otlp/otlp-part.ts";
import { createBooks, createReporter } from "../pipeline/observe.ts";
import { RequestLog, type RequestLogSettings } from "../request-log/log.ts";
import type { CircuitChange } from "../routing/circuits.ts";
import { StatsCollector } from "../stats/collector.ts";
import { nanosOf } from "../stats/costs.ts";
import { ErrorRecorder } from "../stats/error-recorder.ts";
import { Happenings, type HealthChange } from "../stats/happenings.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { SnapshotFile } from "../stats/snapshot-file.ts";
import { Stories } from "../stats/stories.ts";
import { addGauges, type GaugeSources } from "./gauges.ts";

type ShownOwners = Pick<
  GaugeSources,
  | "fleet"
  | "cache"
  | "redis"
  | "files"
  | "batches"
  | "kvIndex"
  | "queue"
  | "ledger"
  | "configVersion"
  | "configReloadOk"
  | "workers"
>;

export function createTelemetry(snapshot: ConfigSnapshot, home: string | undefined, clock: Clock, log: Logger) {
  const { settings, baseDir } = snapshot;
  let priceOf = pricesIn(metadataOf(snapshot));
  const dataPath = (path: string) => resolveDataPath(path, { dataDir: settings.server.data_dir, baseDir, home });
  const historySettings = ({ metrics }: Settings): HistorySettings => ({
    ...metrics.persistence,
    path: dataPath(settings.metrics.persistence.path),
  });
  const requestsPath = dataPath(settings.admin.requests.path);
  const requestSettings = ({ admin }: Settings) => ({ ...admin.requests, path: requestsPath });
  const wallTime = () => clock.wallTime();

  const collector = new StatsCollector({
    settings: statsSettings(settings),
    clock,
    priceOf: (model, backend) => priceOf(model, backend),
  });
  const registry = new MetricsRegistry();
  let isByKey = settings.metrics.by_key;
  // Switched off, metrics cost a request nothing; switching them needs a restart to be counted from the start anyway.
  const requestMetrics = settings.metrics.enabled ? createRequestMetrics(registry, () => isByKey) : undefined;
  const lag = watchEventLoopLag(clock.now);
  const events = countGatewayEvents(registry);
  const errors = new ErrorRecorder({ clock });
  const happenings = new Happenings();
  const { stories, requestLog } = keepRequests({
    settings: settings.admin.requests.enabled ? requestSettings(settings) : undefined,
    ...{ clock, log, events, happenings },
  });
  const observer = createObserver(collector, requestMetrics);
  let backends: () => readonly BackendEntry[] = () => [];
  const metrics = {
    families: () => registry.families(),
    backends: () => backends().map(({ backend }) => backend),
  };
  const arms = createArmBook(clock.now);
  const books = createBooks({ observer, stories, errors, events, arms });
  const otlp = createOtlpPart(snapshot, { clock, log, counters: events, metrics });
  const reporter = createReporter(books, otlp.spans);

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
    history &&
    new HistorySampler({
      ...{ settings: historySettings(settings), store: history, log, wallTime },
      read: () => registry.samples(),
      written: (isOk) => events.historyWritten(isOk),
    });

  return {
    reporter,
    books,
    collector,
    registry,
    /** Undefined while no history is kept. */
    history,
    errors,
    stories,
    arms,
    /** Undefined: they are kept in memory only. */
    requestLog,
    events,
    happenings,
    /** Receives events of the fleet. */
    ofBackends: {
      circuitChanged(change: CircuitChange) {
        events.circuitChanged(change);
        happenings.circuitChanged(change);
      },
      healthChanged: (change: HealthChange) => happenings.healthChanged(change),
    },
    /** By the prices of now, in 10^-9 of the currency's unit. */
    costOf: (record: RequestRecord) => costBy(priceOf, record),
    /** Files whose last write failed, each with the reason. */
    storageProblems: () => [statsFile, sampler, requestLog].map((keeper) => keeper?.problem).filter(isTold),
    /** Lets the metrics show what others own. */
    show(owners: ShownOwners): void {
      backends = () => owners.fleet.board.entries;
      addGauges(registry, {
        ...owners,
        otlp,
        openStreams: reporter.openStreams,
        eventLoopLag: () => lag.read(),
        wallTime,
      });
    },
    /** Runs before the first request. */
    async restore(): Promise<void> {
      await statsFile.restore();
      statsFile.start();
      sampler?.start();
      requestLog?.start();
    },
    follow(next: ConfigSnapshot): void {
      priceOf = pricesIn(metadataOf(next));
      isByKey = next.settings.metrics.by_key;
      collector.apply(statsSettings(next.settings));
      collector.pricesChanged();
      sampler?.apply(historySettings(next.settings));
      requestLog?.apply(requestSettings(next.settings));
      otlp.follow(next);
    },
    /** Everything is written, and sent as far as `withinMs` allows. */
    async stop(withinMs: number): Promise<void> {
      lag.stop();
      requestLog?.stop();
      await otlp.stop(withinMs);
      await sampler?.stop();
      await statsFile.stop();
      history?.close();
    },
  };
}

function statsSettings(settings: Settings) {
  return { ...settings.admin.stats, currency: currencyOf(settings) };
}

interface KeepRequestsParts {
  /** Undefined: requests are kept in memory only. */
  settings: RequestLogSettings | undefined;
  clock: Clock;
  log: Logger;
  events: GatewayEvents;
  happenings: Happenings;
}

/** Keeps requests in memory, and on disk when they are over. */
function keepRequests({ settings, clock, log, events, happenings }: KeepRequestsParts) {
  const stories: Stories = new Stories({
    clock,
    happenings: {
      requestEnded(story) {
        requestLog?.add(story);
        happenings.requestEnded(story);
      },
    },
  });
  const startedAt = (story: RequestRecord) => stories.startedAt(story);
  const lost = events.requestsLost;
  const requestLog = settings && new RequestLog({ settings, clock, log, startedAt, lost });
  return { stories, requestLog };
}

function metadataOf({ settings, attachments }: ConfigSnapshot): ModelMetadataSource {
  return createModelMetadata({ backends: settings.backends, external: attachments.metadata, facts: attachments.facts });
}

function isTold(problem: string | undefined): problem is string {
  return problem !== undefined;
}

function costBy(priceOf: ReturnType<typeof pricesIn>, record: RequestRecord): number {
  const { usage, answeredBy, model, backend } = record;
  return usage === undefined ? 0 : nanosOf(usage, priceOf(answeredBy ?? model, backend));
}
