// What is counted when it happens in the gateway: rare events, beside those of requests.

import { INSTRUMENTS } from "./instruments.ts";
import type { MetricsRegistry } from "./registry.ts";

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

function ok(
  registry: MetricsRegistry,
  instrument: (typeof INSTRUMENTS)["configReloads" | "historyWrites"],
): (isOk: boolean) => { value: number } {
  const success = registry.counter(instrument, "success");
  const failure = registry.counter(instrument, "failure");
  return (isOk) => (isOk ? success : failure);
}
