// Forgets samples that are too old, and gives the space back. In small steps, between which requests get their turn.

import { DAY_MS, type HistorySettings } from "./settings.ts";
import type { HistoryStore } from "./store.ts";

/** Lets everything run that is waiting. */
const otherWork = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Retention holds whether or not compaction is switched on: nothing here grows for ever. */
export async function forgetOld(
  store: HistoryStore,
  { retention_days }: Pick<HistorySettings, "retention_days">,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && store.forgetStep(nowMs - retention_days * DAY_MS)) await otherWork();
}

export async function compact(
  store: HistoryStore,
  settings: Pick<HistorySettings, "retention_days">,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  await forgetOld(store, settings, nowMs, signal);
  if (signal.aborted) return;
  store.forgetSeries(nowMs - settings.retention_days * DAY_MS);
  while (!signal.aborted && store.shrinkStep()) await otherWork();
}
