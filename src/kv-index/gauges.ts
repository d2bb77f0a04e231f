// The gauges of the index of KV caches.

import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricReading, MetricsRegistry } from "../metrics/registry.ts";
import type { EventSourceView } from "./event-source.ts";
import type { KvIndexStats } from "./kv-index.ts";

interface IndexStatistics {
  stats(): KvIndexStats & { eventSources: readonly EventSourceView[] };
}

/** @param kvIndex - undefined while it is off */
export function addKvIndexGauges(registry: MetricsRegistry, kvIndex: () => IndexStatistics | undefined): void {
  function each(
    instrument: Parameters<MetricsRegistry["read"]>[0],
    read: (stats: ReturnType<IndexStatistics["stats"]>) => Iterable<MetricReading>,
  ): void {
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
function perBackend(sources: readonly EventSourceView[], value: (source: EventSourceView) => number): MetricReading[] {
  const sums = new Map<string, number>();
  for (const source of sources) sums.set(source.backend, (sums.get(source.backend) ?? 0) + value(source));
  return [...sums].map(([name, sum]) => ({ labels: [name], value: sum }));
}
