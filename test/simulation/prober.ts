// A health checker in virtual time around the real state machine, with the schedule of the real checker.

import type { BackendRegistry } from "../../src/backends/registry.ts";
import { applyVerdict, type HealthPolicy, type HealthRecord, initialHealth } from "../../src/health/state-machine.ts";
import type { Circuits } from "../../src/routing/circuits.ts";
import { CONDITIONS, type Network } from "./network.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { PlannedEvent, VirtualTime } from "./virtual-time.ts";

const SUSPECT_SPACING_MS = 250;
const JITTER = 0.2;

export interface Prober {
  readonly firstChecks: Promise<void>;
  suspect(name: string): void;
  /** A backend that came (again): nothing is known of it, and it is checked at once. */
  watch(name: string): void;
  unwatch(name: string): void;
  stop(): void;
}

export interface ProberOptions {
  time: VirtualTime;
  random: SeededRandom;
  network: Network;
  registry: BackendRegistry;
  circuits: Pick<Circuits, "recovered">;
  policy: HealthPolicy & { timeout: number };
  onChange(name: string, record: HealthRecord): void;
}

interface Watch {
  record: HealthRecord;
  timer: PlannedEvent | undefined;
  nextCheckMs: number;
  finishedMs: number;
  isRunning: boolean;
}

export function startProber({ time, random, network, registry, circuits, policy, onChange }: ProberOptions): Prober {
  const watches = new Map<string, Watch>();
  const { promise: firstChecks, resolve } = Promise.withResolvers<void>();
  let unchecked = network.backends.size;
  let isStopped = false;

  function schedule(name: string, watch: Watch, delayMs: number): void {
    time.cancel(watch.timer);
    watch.nextCheckMs = time.nowMs + delayMs;
    watch.timer = isStopped ? undefined : time.schedule(delayMs, () => begin(name, watch), true);
  }

  function begin(name: string, watch: Watch): void {
    watch.isRunning = true;
    const { probe } = CONDITIONS[network.backends.get(name)!.condition];
    // What counts is how the backend was when it was asked.
    const answerMs = probe === undefined ? policy.timeout : random.between(1, 20);
    time.schedule(answerMs, () => finish(name, watch, probe ?? "failed"), true);
  }

  function finish(name: string, watch: Watch, verdict: "healthy" | "warming" | "failed"): void {
    const isFirst = watch.finishedMs === Number.NEGATIVE_INFINITY;
    watch.isRunning = false;
    watch.finishedMs = time.nowMs;
    if (isFirst && --unchecked === 0) time.schedule(0, resolve);
    if (watches.get(name) !== watch) return; // removed meanwhile
    const previous = watch.record.state;
    const { record, nextCheckInMs } = applyVerdict(watch.record, verdict, policy, time.nowMs);
    watch.record = record;
    const isSteady = record.state === "ready" && verdict === "healthy";
    schedule(name, watch, isSteady ? nextCheckInMs * (1 - JITTER * random.next()) : nextCheckInMs);
    registry.setHealth(name, record.state);
    const hasRecovered = previous !== "ready" || record.consecutiveSuccesses === 1;
    if (record.state === "ready" && hasRecovered) circuits.recovered(name);
    if (record.state !== previous) onChange(name, record);
  }

  function start(name: string): void {
    const watch: Watch = {
      record: initialHealth(time.nowMs),
      timer: undefined,
      nextCheckMs: 0,
      finishedMs: Number.NEGATIVE_INFINITY,
      isRunning: false,
    };
    watches.set(name, watch);
    schedule(name, watch, 0);
  }

  for (const name of network.backends.keys()) start(name);

  return {
    firstChecks,
    watch(name) {
      unchecked++;
      start(name);
    },
    unwatch(name) {
      const watch = watches.get(name);
      if (watch === undefined) return;
      time.cancel(watch.timer);
      watches.delete(name);
      // Whoever waits for the first checks does not wait for this one.
      if (!watch.isRunning && watch.finishedMs === Number.NEGATIVE_INFINITY && --unchecked === 0) {
        time.schedule(0, resolve);
      }
    },
    suspect(name) {
      const watch = watches.get(name);
      if (watch === undefined || watch.isRunning) return;
      const delayMs = Math.max(0, watch.finishedMs + SUSPECT_SPACING_MS - time.nowMs);
      if (time.nowMs + delayMs < watch.nextCheckMs) schedule(name, watch, delayMs);
    },
    stop() {
      isStopped = true;
      for (const watch of watches.values()) time.cancel(watch.timer);
    },
  };
}
