// The single place where a request that is over is reported: to statistics and metrics, to the errors that an operator can
// look up, and to the story of the request.

import { ERRORS } from "../errors/catalog.ts";
import type { ErrorRecorder, FailedAttempt } from "../errors/recorder.ts";
import type { Observer } from "../metrics/observer.ts";
import type { RequestLog, StoryStep } from "../stats/request-log.ts";
import type { RequestContext } from "./context.ts";

export interface RequestReporter {
  /** The request was read: its story begins. */
  begun(context: RequestContext): void;
  /** Called once per request, when its answer is over; status 499 when the client left. */
  finished(context: RequestContext, status: number, durationMs: number): void;
}

export interface ReporterParts {
  observer: Observer;
  requests: RequestLog;
  errors: ErrorRecorder;
}

export const CLIENT_CLOSED_REQUEST = 499;

export function createReporter({ observer, requests, errors }: ReporterParts): RequestReporter {
  return {
    begun({ id, record, startedAtMs }) {
      const { operation = "", model = "", stream } = record;
      record.story = requests.begin({ requestId: id, operation, model, stream, startedAtMs });
    },
    finished({ id, caller, record }, status, durationMs) {
      const { operation, model, story, backend } = record;
      const failure = status >= 400 || record.streamFailure !== undefined ? failureOf(record, status) : undefined;
      if (operation !== undefined && model !== undefined) {
        observer.finished({
          operation,
          model,
          answeredBy: record.fallbackModel,
          backend,
          status,
          durationMs,
          firstByteMs: record.firstByteMs,
          stream: record.stream,
          usage: record.usage,
          attempts: record.attempts,
          fallback: record.fallbackReason,
          cache: record.cache,
          shared: record.shared,
          failure,
          keyId: caller?.keyId,
        });
      }
      if (story !== undefined) {
        story.cache = record.cache;
        if (record.attempts === 0 && failure !== undefined) {
          story.add({ kind: "refused", atMs: durationMs, reason: failure });
        }
        const { firstByteMs, fallbackModel: answeredBy } = record;
        requests.finish(story, {
          status,
          durationMs,
          failure,
          backend,
          answeredBy,
          keyId: caller?.keyId,
          firstByteMs,
        });
      }
      // A client that left is no error of anybody, and scanners shall not push out what concerns models.
      if (failure === undefined || status === CLIENT_CLOSED_REQUEST || isElsewhere(record)) return;
      const { type = failure, code = null, message = failure } = record.error ?? {};
      errors.record({ requestId: id, status, type, code, message, model, backend, attempts: attemptsOf(story?.steps) });
    },
  };
}

/** Refusals of the admin API and of paths that do not exist; the access log has them. */
function isElsewhere({ path, error }: RequestContext["record"]): boolean {
  return path.startsWith("/admin") || error?.type === ERRORS.routeNotFound.type;
}

function failureOf({ streamFailure, failure }: RequestContext["record"], status: number): string {
  if (status === CLIENT_CLOSED_REQUEST) return "aborted";
  return streamFailure ?? failure ?? `status_${status}`;
}

function attemptsOf(steps: readonly StoryStep[] | undefined): FailedAttempt[] {
  const failed: FailedAttempt[] = [];
  for (const step of steps ?? []) {
    if (step.kind !== "attempt" || step.failure === undefined) continue;
    failed.push({
      backend: step.backend,
      model: step.model,
      failure: step.failure,
      duration_ms: step.durationMs === undefined ? undefined : Math.round(step.durationMs),
    });
  }
  return failed;
}
