// What is counted when it happens in the gateway: rare events, beside those of requests.

import { ERRORS } from "../errors/catalog.ts";
import { INSTRUMENTS } from "./instruments.ts";
import type { MetricsRegistry } from "./registry.ts";

const UPLOAD_RESULTS = ["stored", "refused", "failed"] as const;

export type UploadResult = (typeof UPLOAD_RESULTS)[number];

/** Refusals that alerts look at. */
const TELLING_REFUSALS = [ERRORS.invalidApiKey, ERRORS.expiredApiKey, ERRORS.rateLimited];

const RECORDING_RESULTS = ["kept", "dropped", "failed"] as const;

export type RecordingResult = (typeof RECORDING_RESULTS)[number];

export type GatewayEvents = ReturnType<typeof countGatewayEvents>;

export function countGatewayEvents(registry: MetricsRegistry) {
  const { rateLimitRefusals, translationDrops, circuitChanges, configReloads, historyWrites, fileUploads } =
    INSTRUMENTS;
  const resultOf = (isOk: boolean) => (isOk ? "success" : "failure");
  // These stand at 0 from the start, so that the first event is seen as an increase.
  for (const isOk of [true, false]) {
    registry.counter(configReloads, resultOf(isOk));
    registry.counter(historyWrites, resultOf(isOk));
  }
  registry.counter(INSTRUMENTS.requestsLost);
  for (const result of UPLOAD_RESULTS) registry.counter(fileUploads, result);
  for (const result of RECORDING_RESULTS) registry.counter(INSTRUMENTS.recordings, result);
  for (const { status, type, code } of TELLING_REFUSALS) {
    registry.counter(INSTRUMENTS.refusals, String(status), typeof code === "string" ? code : type);
  }
  for (const scope of ["client", "key", "global", "backend"]) registry.counter(rateLimitRefusals, scope);
  return {
    rateLimited: (scope: string) => void registry.counter(rateLimitRefusals, scope).value++,
    budgetRefused: (rule: string) => void registry.counter(INSTRUMENTS.budgetRefusals, rule).value++,
    notified: (target: string, outcome: string) =>
      void registry.counter(INSTRUMENTS.notifications, target, outcome).value++,
    /** A request was refused before a backend was asked; `code` is of the catalogue of errors. */
    refused: (status: number, code: string) =>
      void registry.counter(INSTRUMENTS.refusals, String(status), code).value++,
    /** A translation could not carry a feature. */
    dropped: (feature: string) => void registry.counter(translationDrops, feature).value++,
    circuitChanged: (change: { backend: string; to: string }) =>
      void registry.counter(circuitChanges, change.backend, change.to).value++,
    configReloaded: (isOk: boolean) => void registry.counter(configReloads, resultOf(isOk)).value++,
    fileUploaded: (result: UploadResult) => void registry.counter(fileUploads, result).value++,
    rated: (route: string, arm: string, score: number) => {
      registry.counter(INSTRUMENTS.routeFeedback, route, arm).value++;
      registry.counter(INSTRUMENTS.routeFeedbackScore, route, arm).value += score;
    },
    recorded: (result: RecordingResult, times = 1) => {
      registry.counter(INSTRUMENTS.recordings, result).value += times;
    },
    queueWaited: (className: string, durationMs: number) =>
      registry.histogram(INSTRUMENTS.queueWait, className).observe(durationMs / 1000),
    queueShed: (className: string, reason: string) =>
      void registry.counter(INSTRUMENTS.queueShed, className, reason).value++,
    /** `durationMs`: of one of them. */
    hookCalled: (hook: string, event: string, verdict: string, durationMs: number, times: number) => {
      registry.counter(INSTRUMENTS.hookCalls, hook, event, verdict).value += times;
      registry.histogram(INSTRUMENTS.hookDuration, hook, event).observe(durationMs / 1000);
    },
    hookRestarted: (hook: string, cause: string) =>
      void registry.counter(INSTRUMENTS.hookRestarts, hook, cause).value++,
    batchLine: (endpoint: string, isError: boolean) =>
      void registry.counter(INSTRUMENTS.batchLines, endpoint, isError ? "failed" : "completed").value++,
    redisUnanswered: (use: string) => void registry.counter(INSTRUMENTS.redisUnanswered, use).value++,
    otlpExported: (signal: string, isOk: boolean, times = 1) => {
      registry.counter(INSTRUMENTS.otlpExports, signal, resultOf(isOk)).value += times;
    },
    otlpDropped: (spans: number) => {
      registry.counter(INSTRUMENTS.otlpDropped).value += spans;
    },
    requestsLost: (count: number) => {
      registry.counter(INSTRUMENTS.requestsLost).value += count;
    },
    historyWritten: (isOk: boolean) => void registry.counter(historyWrites, resultOf(isOk)).value++,
  };
}
