// The one place where finished requests and their attempts are counted, in statistics and metrics together.

import type { AttemptOutcome, BackendRow, StatsCollector, StatsHandle } from "../stats/collector.ts";
import { type FinishedRequest, OTHER } from "../stats/finished-request.ts";
import type { AttemptSeries, MetricsHandle, RequestMetrics } from "./request-metrics.ts";

export interface Observer {
  /** Once per attempt at a backend, when it is over. `firstTokenMs` is known of streams, `failure` where it failed. */
  attempted(
    backend: string,
    outcome: AttemptOutcome,
    failure: string | undefined,
    durationMs: number,
    firstTokenMs: number | undefined,
  ): void;
  /** To be called exactly once per request, when its answer is over, whatever became of it. */
  finished(request: FinishedRequest): void;
}

interface Handle {
  stats: StatsHandle;
  metrics: MetricsHandle | undefined;
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
  const models = new Map<string, Map<string, Handle>>();
  /** Bounded by the collector, too. */
  const attempts = new Map<string, AttemptHandle>();
  let epoch = collector.epoch;

  function forgetOldHandles(): void {
    if (collector.epoch === epoch) return;
    epoch = collector.epoch;
    models.clear();
    attempts.clear();
  }

  function attemptHandle(wanted: string): AttemptHandle {
    const name = collector.backendName(wanted);
    let handle = attempts.get(name);
    if (handle === undefined) {
      handle = { row: collector.backendRow(name), series: metrics?.attempts(name) };
      attempts.set(name, handle);
    }
    return handle;
  }

  function handleOf(model: string, backend: string | undefined, wasServed: boolean): Handle {
    return models.get(model)?.get(backend ?? NO_BACKEND) ?? newHandle(model, backend, wasServed);
  }

  function newHandle(wantedModel: string, wantedBackend: string | undefined, wasServed: boolean): Handle {
    // Nothing is kept under a name that clients invent.
    const model = collector.isCountedByName(wantedModel, wasServed) ? wantedModel : OTHER;
    const backend = wantedBackend === undefined ? undefined : collector.backendName(wantedBackend);
    let backends = models.get(model);
    if (backends === undefined) {
      backends = new Map();
      models.set(model, backends);
    }
    let handle = backends.get(backend ?? NO_BACKEND);
    if (handle === undefined) {
      handle = { stats: collector.handle(model, backend), metrics: metrics?.handle(model, backend) };
      backends.set(backend ?? NO_BACKEND, handle);
    }
    return handle;
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
      if (handle.metrics !== undefined) metrics?.finished(handle.metrics, request, cost);
    },
  };
}
