// Sends traces and metrics to a receiver of OpenTelemetry: what is recorded of requests within a second, and all metrics at
// the interval. Loaded where telemetry.otlp names a receiver.

import type { Backend } from "../backends/backend.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { otherWork } from "../lib/other-work.ts";
import type { Logger } from "../logging/logger.ts";
import type { MetricFamily } from "../metrics/registry.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import type { SpanRecorder } from "../pipeline/request-spans.ts";
import { SCHEMA_URL } from "./attributes.ts";
import type { Origin, OtlpEncoding, OtlpMetric } from "./data.ts";
import { jsonEncoding } from "./json.ts";
import { metricsOf } from "./metric-points.ts";
import { createProtobufEncoding } from "./protobuf.ts";
import { createRecorder } from "./recorder.ts";
import { createSender, type ExportDestination, type Signal } from "./sender.ts";
import { createSpanQueue } from "./span-queue.ts";

type OtlpSettings = Settings["telemetry"]["otlp"];

/** Where the numbers of the exporter itself are counted. */
interface ExporterCounters {
  otlpExported(signal: Signal, isOk: boolean, times?: number): void;
  otlpDropped(spans: number): void;
}

export interface ExporterParts {
  settings: OtlpSettings;
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  counters: ExporterCounters;
  /** Undefined in a process that has no metrics of its own. */
  metrics: { families(): Iterable<MetricFamily>; backends(): Iterable<Backend> } | undefined;
}

export interface Exporter {
  recorder: SpanRecorder;
  /** From now on everything goes where these say, and what waits, too. */
  apply(settings: OtlpSettings): void;
  isUp(signal: Signal): boolean;
  /** Sends what there is, for so long at most; what was not taken by then is dropped. */
  stop(withinMs: number): Promise<void>;
}

const POINTS_PER_STEP = 500;

export function createExporter({ settings, clock, log, counters, metrics }: ExporterParts): Exporter {
  let current = settings;
  const startUs = clock.wallTime() * 1000;
  // These stand at 0 from the start, so that the first event is seen as an increase.
  counters.otlpDropped(0);
  for (const signal of ["traces", "metrics"] as const) {
    for (const isOk of [true, false]) counters.otlpExported(signal, isOk, 0);
  }
  const stopping = new AbortController();
  const origin = originOf();
  const protobuf = createProtobufEncoding();
  const encoding = (): OtlpEncoding => (current.protocol === "http/json" ? jsonEncoding : protobuf);

  const senderOf = (signal: Signal) =>
    createSender({
      signal,
      destination: () => destinationOf(current, signal),
      log,
      exported: (isOk) => counters.otlpExported(signal, isOk),
      clock,
    });
  const senders = { traces: senderOf("traces"), metrics: senderOf("metrics") };
  const queue = createSpanQueue({
    ...{ origin, encoding, sender: senders.traces, stop: stopping.signal },
    dropped: counters.otlpDropped,
  });
  const recorder = createRecorder({ ratio: () => current.sampling_ratio, clock, add: queue.add });

  async function readMetrics({ families, backends }: NonNullable<ExporterParts["metrics"]>): Promise<OtlpMetric[]> {
    const named = new Map([...backends()].map((backend) => [backend.name, backend]));
    const read: OtlpMetric[] = [];
    let sincePause = 0;
    for (const family of families()) {
      read.push(...metricsOf(family, (name) => named.get(name)));
      sincePause += family.numbers.length + family.histograms.length;
      if (sincePause < POINTS_PER_STEP) continue;
      sincePause = 0;
      await otherWork();
    }
    return read;
  }

  let sendingMetrics: Promise<void> | undefined;
  async function sendMetrics(): Promise<void> {
    if (metrics === undefined) return;
    const read = await readMetrics(metrics);
    const written = encoding();
    const body = written.metrics(origin, { startUs, atUs: clock.wallTime() * 1000, metrics: read });
    await senders.metrics.send({ body, encoding: written }, stopping.signal);
  }
  /** One at a time: the next one says all that this one does. */
  function tickMetrics(): Promise<void> {
    sendingMetrics ??= sendMetrics().finally(() => {
      sendingMetrics = undefined;
    });
    return sendingMetrics;
  }
  function everyInterval(): Timer {
    const timer = setInterval(() => void tickMetrics(), current.interval);
    timer.unref();
    return timer;
  }
  let timer = everyInterval();

  return {
    recorder,
    apply(next) {
      const hasMoved = next.endpoint !== current.endpoint || !Bun.deepEquals(next.headers, current.headers);
      const isOtherInterval = next.interval !== current.interval;
      current = next;
      if (hasMoved) for (const sender of [senders.traces, senders.metrics]) sender.wake();
      if (!isOtherInterval) return;
      clearInterval(timer);
      timer = everyInterval();
    },
    isUp: (signal) => senders[signal].isUp(),
    async stop(withinMs) {
      clearInterval(timer);
      const late = setTimeout(() => stopping.abort(), withinMs);
      for (const sender of [senders.traces, senders.metrics]) sender.hurry();
      // Metrics that are being sent now hold older numbers.
      const lastMetrics = (sendingMetrics ?? Promise.resolve()).then(tickMetrics);
      await Promise.all([queue.flush(), lastMetrics]);
      clearTimeout(late);
      stopping.abort();
    },
  };
}

function destinationOf({ endpoint, headers }: OtlpSettings, signal: Signal): ExportDestination | undefined {
  return endpoint === undefined ? undefined : { url: `${endpoint.replace(/\/+$/, "")}/v1/${signal}`, headers };
}

function originOf(): Origin {
  const { hostname } = process.getBuiltinModule("node:os");
  return {
    resource: [
      ["service.name", SERVICE_NAME],
      ["service.version", VERSION],
      ["service.instance.id", crypto.randomUUID()],
      ["host.name", hostname()],
      ["process.pid", process.pid],
      ["process.runtime.name", "bun"],
      ["process.runtime.version", Bun.version],
    ],
    scope: { name: SERVICE_NAME, version: VERSION },
    schemaUrl: SCHEMA_URL,
  };
}
