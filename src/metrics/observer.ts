// The one place where finished requests and their attempts are counted, in statistics and metrics together.

import { getOrMake } from "../lib/get-or-make.ts";
import type { AttemptOutcome, BackendRow, StatsCollector, StatsHandle } from "../stats/collector.ts";
import { OTHER } from "../stats/counted.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { AttemptSeries, KeyOfRequest, ModelSeries, RequestMetrics } from "./request-metrics.ts";

export interface Observer {
  /** Once per attempt at a backend, when it is over. `firstTokenMs` is known of streams, `failure` where it failed. */
  attempted(
    backend: string,
    outcome: AttemptOutcome,
    failure: string | undefined,
    durationMs: number,
    firstTokenMs: number | undefined,
  ): void;
  /** To be called exactly once per request, when its answer is over, whatever became of it. Returns its cost. */
  finished(request: RequestRecord): number;
  /** In its place for a request that was refused before it was known which model it asks for. */
  turnedAway(caller: KeyOfRequest): void;
}

interface SeriesHandle {
  stats: StatsHandle;
  series: ModelSeries | undefined;
}

interface AttemptHandle {
  row: BackendRow;
  series: AttemptSeries | undefined;
}

/** Stands for "no backend" among the names of backends, which are never empty. */
const NO_BACKEND = "";

/** `metrics` is undefined while they are switched off. */
export function createObserver(collector: StatsCollector, metrics: RequestMetrics | undefined): Observer {
  /** Models that are counted by name, each with its backends: bounded by the collector. */
  const models = new Map<string, Map<string, SeriesHandle>>();
  /** The collector bounds this map, too. */
  const attempts = new Map<string, AttemptHandle>();
  let epoch = collector.epoch;

  function forgetOldHandles(): void {
    if (collector.epoch === epoch) return;
    epoch = collector.epoch;
    models.clear();
    attempts.clear();
  }

  function attemptHandle(backend: string): AttemptHandle {
    return getOrMake(attempts, collector.backendName(backend), (name) => {
      return { row: collector.backendRow(name), series: metrics?.attempts(name) };
    });
  }

  function handleOf(wantedModel: string, wantedBackend: string | undefined, wasServed: boolean): SeriesHandle {
    const known = models.get(wantedModel)?.get(wantedBackend ?? NO_BACKEND);
    if (known !== undefined) return known;
    // Nothing is kept under a name that clients invent.
    const model = collector.isCountedByName(wantedModel, wasServed) ? wantedModel : OTHER;
    const backend = wantedBackend === undefined ? undefined : collector.backendName(wantedBackend);
    const backends = getOrMake(models, model, () => new Map<string, SeriesHandle>());
    return getOrMake(backends, backend ?? NO_BACKEND, () => {
      return { stats: collector.handle(model, backend), series: metrics?.model(model, backend) };
    });
  }

  return {
    attempted(backend, outcome, failure, durationMs, firstTokenMs) {
      forgetOldHandles();
      const { row, series } = attempts.get(backend) ?? attemptHandle(backend);
      collector.attempted(row, outcome, durationMs, firstTokenMs);
      if (series !== undefined) metrics?.attempted(series, failure, durationMs, firstTokenMs);
    },
    finished(request) {
      forgetOldHandles();
      const { model, answeredBy, backend } = request;
      const wasServed = backend !== undefined || request.cache === "HIT";
      const handle = handleOf(model, backend, wasServed);
      const isStandIn = answeredBy !== undefined && answeredBy !== model;
      const answering = isStandIn ? handleOf(answeredBy, backend, wasServed) : handle;
      const cost = collector.finished(handle.stats, answering.stats, request);
      if (handle.series !== undefined) metrics?.finished(handle.series, request, cost);
      return cost;
    },
    turnedAway(caller) {
      collector.turnedAway();
      metrics?.turnedAway(caller);
    },
  };
}
