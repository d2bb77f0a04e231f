// The health of one backend as a pure state machine: record and probe verdict in, next record and next check out.
// docs/backends.md describes its states.

import type { HealthState } from "../backends/board.ts";
import type { Settings } from "../config/sections/registry.ts";

/** `warming`: the backend is alive but says that it is still loading; neither a success nor a failure. */
export type ProbeVerdict = "healthy" | "warming" | "failed";

export type HealthPolicy = Pick<
  Settings["health_checks"],
  "interval" | "warmup_check_interval" | "max_warmup_duration" | "unhealthy_threshold" | "healthy_threshold"
>;

export interface HealthRecord {
  state: HealthState;
  consecutiveFailures: number;
  consecutiveSuccesses: number;
  /** Clock time at which the state was entered. */
  stateSinceMs: number;
  /** Clock time from which frequent checks of an unusable backend are counted. */
  hurrySinceMs: number;
  lastVerdict: ProbeVerdict | undefined;
}

/** An unhealthy backend that answered once is asked again this soon, so that it need not wait for its traffic. */
const CONFIRM_AFTER_MS = 250;

export function initialHealth(nowMs: number): HealthRecord {
  return {
    state: "unknown",
    consecutiveFailures: 0,
    consecutiveSuccesses: 0,
    stateSinceMs: nowMs,
    hurrySinceMs: nowMs,
    lastVerdict: undefined,
  };
}

export function applyVerdict(previous: HealthRecord, verdict: ProbeVerdict, policy: HealthPolicy, nowMs: number) {
  const consecutiveFailures = verdict === "failed" ? previous.consecutiveFailures + 1 : 0;
  const consecutiveSuccesses = verdict === "healthy" ? previous.consecutiveSuccesses + 1 : 0;
  const state = nextState(previous, verdict, consecutiveFailures, consecutiveSuccesses, policy, nowMs);
  const entered = state !== previous.state;
  // An engine that was gone and now says "loading" has been restarted: it gets frequent checks again.
  const cameAlive = verdict === "warming" && previous.lastVerdict === "failed";
  const record: HealthRecord = {
    state,
    consecutiveFailures,
    consecutiveSuccesses,
    stateSinceMs: entered ? nowMs : previous.stateSinceMs,
    hurrySinceMs: entered || cameAlive ? nowMs : previous.hurrySinceMs,
    lastVerdict: verdict,
  };
  return { record, nextCheckInMs: Math.max(1, nextCheckInMs(record, policy, nowMs)) };
}

function nextState(
  previous: HealthRecord,
  verdict: ProbeVerdict,
  failures: number,
  successes: number,
  policy: HealthPolicy,
  nowMs: number,
): HealthState {
  if (failures >= policy.unhealthy_threshold) return "unhealthy";
  const { state } = previous;
  switch (verdict) {
    case "healthy":
      return state === "unhealthy" && successes < policy.healthy_threshold ? "unhealthy" : "ready";
    case "warming":
      // Only successes lead out of unhealthy; an engine that loads forever must not get a second warm-up for free.
      if (state === "unhealthy" || warmedTooLong(previous, policy, nowMs)) return "unhealthy";
      return "warming_up";
    case "failed":
      if (state === "unknown") return "down";
      return warmedTooLong(previous, policy, nowMs) ? "unhealthy" : state;
  }
}

function warmedTooLong(record: HealthRecord, policy: HealthPolicy, nowMs: number): boolean {
  return record.state === "warming_up" && nowMs - record.stateSinceMs >= policy.max_warmup_duration;
}

function nextCheckInMs(record: HealthRecord, policy: HealthPolicy, nowMs: number): number {
  const shortMs = Math.min(policy.warmup_check_interval, policy.interval);
  switch (record.state) {
    case "ready":
      // After a first failure the next checks follow quickly: a dead backend is found out in seconds, not in minutes.
      return record.consecutiveFailures > 0 ? shortMs : policy.interval;
    case "warming_up":
      return Math.min(shortMs, record.stateSinceMs + policy.max_warmup_duration - nowMs);
    default:
      if (record.consecutiveSuccesses > 0) return Math.min(shortMs, CONFIRM_AFTER_MS);
      return nowMs - record.hurrySinceMs < policy.max_warmup_duration ? shortMs : policy.interval;
  }
}
