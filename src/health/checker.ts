// The health checker: one timer per backend that reschedules itself, and the newest record of each backend.

import type { Backend } from "../backends/backend.ts";
import type { HealthState } from "../backends/board.ts";
import { createPacer, timerMs } from "../backends/control-request.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { type ProbeOutcome, probeBackend, probePlan } from "./probe.ts";
import { applyVerdict, type HealthRecord, initialHealth } from "./state-machine.ts";

export interface CheckReport {
  name: string;
  previousState: HealthState;
  record: HealthRecord;
  outcome: ProbeOutcome;
}

/** The last check, for status views. */
export interface HealthView {
  record: HealthRecord;
  /** Unix milliseconds; undefined before the first check. */
  lastCheckAtMs: number | undefined;
  lastOutcome: ProbeOutcome | undefined;
  /** Clock milliseconds; past while a check is under way. */
  nextCheckMs: number;
}

export interface HealthChecker {
  /**
   * Checks the backend now, and from now on; resolves when this check is over. One that is watched already keeps its
   * record, but a check under way starts over, because the backend may have got another key or probe.
   */
  watch(name: string): Promise<void>;
  /** Ends checks of the backend, one under way included, and forgets it. */
  unwatch(name: string): void;
  /** New settings: they count from the next check on, which comes no later than they say. */
  apply(settings: Settings["health_checks"]): void;
  view(name: string): HealthView | undefined;
  /** Checks at once, or joins the check that runs; resolves when it is over. */
  check(name: string): Promise<void>;
  /** Asks for a check as soon as the last one is not brand-new. */
  suspect(name: string): void;
  stop(): Promise<void>;
}

interface HealthCheckerParts {
  /** The backend as it is known now: the kind, and with it the probe, may have been recognised meanwhile. */
  backend: (name: string) => Backend;
  settings: Settings["health_checks"];
  transport: Transport;
  clock: Clock;
  log: Logger;
  random: () => number;
  onCheck: (report: CheckReport) => void;
}

/** However many requests fail, suspicion alone checks a backend no more often than this. */
const SUSPECT_SPACING_MS = 250;
/** Part of the interval over which steady checks are spread, so that they drift apart. */
const JITTER = 0.2;

interface Watch extends HealthView {
  name: string;
  timer: Timer | undefined;
  finishedMs: number;
  running: Promise<void> | undefined;
  stopping: AbortController;
}

export function createHealthChecker(options: HealthCheckerParts): HealthChecker {
  const { clock, log } = options;
  let { settings } = options;
  let isStopped = false;
  const pacer = createPacer();
  const watches = new Map<string, Watch>();

  function schedule(watch: Watch, delayMs: number): void {
    clearTimeout(watch.timer);
    if (watch.stopping.signal.aborted) return;
    watch.nextCheckMs = clock.now() + delayMs;
    watch.timer = setTimeout(() => void run(watch), timerMs(delayMs));
  }

  function run(watch: Watch): Promise<void> {
    if (watch.stopping.signal.aborted) return Promise.resolve();
    clearTimeout(watch.timer);
    watch.running ??= checkOnce(watch).finally(() => {
      watch.running = undefined;
    });
    return watch.running;
  }

  async function checkOnce(watch: Watch): Promise<void> {
    const { signal } = watch.stopping;
    await pacer.enter();
    if (signal.aborted) return;
    const backend = options.backend(watch.name);
    const tools = { transport: options.transport, clock, stop: signal };
    const outcome = await probeBackend(backend, probePlan(backend, settings), tools);
    if (signal.aborted) return;

    const previousState = watch.record.state;
    const { record, nextCheckInMs } = applyVerdict(watch.record, outcome.verdict, settings, clock.now());
    watch.record = record;
    watch.lastOutcome = outcome;
    watch.lastCheckAtMs = clock.wallTime();
    watch.finishedMs = clock.now();
    const isSteady = record.state === "ready" && outcome.verdict === "healthy";
    schedule(watch, isSteady ? nextCheckInMs * (1 - JITTER * options.random()) : nextCheckInMs);
    if (record.state !== previousState) logChange(log, watch.name, previousState, record, outcome);
    options.onCheck({ name: watch.name, previousState, record, outcome });
  }

  function end(watch: Watch): void {
    watch.stopping.abort();
    clearTimeout(watch.timer);
  }

  return {
    watch(name) {
      const known = watches.get(name);
      if (known !== undefined) end(known);
      const watch: Watch = {
        name,
        record: known?.record ?? initialHealth(clock.now()),
        lastCheckAtMs: known?.lastCheckAtMs,
        lastOutcome: known?.lastOutcome,
        timer: undefined,
        nextCheckMs: clock.now(),
        finishedMs: Number.NEGATIVE_INFINITY,
        running: undefined,
        stopping: new AbortController(),
      };
      if (isStopped) watch.stopping.abort();
      watches.set(name, watch);
      return run(watch);
    },
    unwatch(name) {
      const watch = watches.get(name);
      if (watch !== undefined) end(watch);
      watches.delete(name);
    },
    apply(next) {
      settings = next;
      for (const watch of watches.values()) {
        if (watch.running === undefined && watch.nextCheckMs > clock.now() + settings.interval) {
          schedule(watch, settings.interval);
        }
      }
    },
    view: (name) => watches.get(name),
    async check(name) {
      const watch = watches.get(name);
      if (watch) await run(watch);
    },
    suspect(name) {
      const watch = watches.get(name);
      if (watch === undefined || watch.running !== undefined) return;
      const nowMs = clock.now();
      const delayMs = Math.max(0, watch.finishedMs + SUSPECT_SPACING_MS - nowMs);
      if (nowMs + delayMs < watch.nextCheckMs) schedule(watch, delayMs);
    },
    async stop() {
      isStopped = true;
      for (const watch of watches.values()) end(watch);
      pacer.close();
      await Promise.all([...watches.values()].map((watch) => watch.running));
    },
  };
}

function logChange(
  log: Logger,
  name: string,
  previous: HealthState,
  record: HealthRecord,
  outcome: ProbeOutcome,
): void {
  const fields = {
    backend: name,
    state: record.state,
    previous_state: previous,
    ...(outcome.reason === undefined ? {} : { reason: outcome.reason }),
    response_time_ms: Math.round(outcome.latencyMs),
  };
  const message = `backend ${name} is ${record.state}${outcome.reason === undefined ? "" : `: ${outcome.reason}`}`;
  if (record.state === "ready" || record.state === "warming_up") log.info(fields, message);
  else log.warn(fields, message);
}
