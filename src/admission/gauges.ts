// The gauges of the queue.

import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import type { AdmissionView } from "./admission.ts";

/** @param view - undefined while there is no queue */
export function addQueueGauges(registry: MetricsRegistry, view: () => AdmissionView | undefined): void {
  registry.read(INSTRUMENTS.queueWaiting, () =>
    (view()?.models ?? []).map(({ model, class: className, waiting }) => ({
      labels: [model, className],
      value: waiting,
    })),
  );
  const ofBackends = (field: "limit" | "inFlight" | "tokens") => () =>
    (view()?.backends ?? []).flatMap(({ backend, [field]: value }) =>
      value === undefined ? [] : [{ labels: [backend], value }],
    );
  registry.read(INSTRUMENTS.queueSlots, ofBackends("limit"));
  registry.read(INSTRUMENTS.queueInFlight, ofBackends("inFlight"));
  registry.read(INSTRUMENTS.queueTokens, ofBackends("tokens"));
}
