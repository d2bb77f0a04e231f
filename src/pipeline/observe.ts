// The single place where a request that is over is reported: to statistics and metrics, to the errors that an operator can
// look up, and to the story of the request.

import { ERRORS } from "../errors/catalog.ts";
import type { GatewayEvents } from "../metrics/gateway-events.ts";
import type { Observer } from "../metrics/observer.ts";
import type { ErrorReport, FailedAttempt } from "../stats/error-recorder.ts";
import type { AttemptStep, Stories, StoryStep } from "../stats/stories.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import { isBackendsFault } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { SpansInUse } from "./request-spans.ts";

export type RequestReporter = ReturnType<typeof createReporter>;

export const CLIENT_CLOSED_REQUEST = 499;

export function createReporter(
  observer: Observer,
  stories: Pick<Stories, "begin" | "finish">,
  errors: { record(report: ErrorReport): unknown },
  events: Pick<GatewayEvents, "dropped">,
  spans: SpansInUse = { recorder: undefined },
) {
  let openStreams = 0;
  return {
    openStreams: () => openStreams,
    /** The request was read: its story begins. */
    begun(context: RequestContext): void {
      const { id, ownId, caller, record, startedAtMs } = context;
      const { operation = "", model = "", stream } = record;
      const keyId = caller?.keyId;
      record.story = stories.begin({ id: ownId, requestId: id, operation, model, stream, startedAtMs, keyId });
      if (stream) openStreams++;
      if (spans.recorder !== undefined) record.spans = spans.recorder.begin(context);
    },
    /** Called once per attempt at a backend, when it is over. `firstTokenMs` is known of streams. */
    attempted(
      backend: string,
      failure: UpstreamFailure | undefined,
      durationMs: number,
      firstTokenMs: number | undefined,
    ): void {
      const outcome = failure === undefined ? "succeeded" : isBackendsFault(failure) ? "failed" : "neither";
      const label = failure === undefined ? undefined : failureLabel(failure);
      observer.attempted(backend, outcome, label, durationMs, firstTokenMs);
    },
    /** Called once per request, when its answer is over; status 499 when the client left. */
    finished(context: RequestContext, status: number, durationMs: number): void {
      const { id, ownId, caller, record } = context;
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
          retried: record.attempts > 1 ? retriedAttempts(story.steps) : undefined,
          fallback: record.fallbackReason,
          cache: record.cache,
          shared: record.shared,
          failure,
          keyId: caller?.keyId,
          userId: caller?.userId,
          organizationId: caller?.organizationId,
        });
      }
      for (const feature of record.dropped ?? []) events.dropped(feature);
      if (story.isKept) {
        if (record.stream) openStreams--;
        story.cache = record.cache;
        if (record.attempts === 0 && failure !== undefined) {
          story.add({ kind: "refused", atMs: durationMs, reason: failure });
        }
        const { firstByteMs, backendMs, fallbackModel: answeredBy, usage } = record;
        stories.finish(story, {
          status,
          durationMs,
          failure,
          streamBroke: record.streamFailure !== undefined,
          backend,
          answeredBy,
          firstByteMs,
          backendMs,
          promptTokens: usage?.input.total,
          completionTokens: usage?.output.total,
        });
      }
      // A caller whose trace it is wants to see in it that the request came here, and why it went no further.
      if (record.refused !== undefined) record.spans = spans.recorder?.begin(context);
      record.spans?.finished(context, status, durationMs, failure);
      // A client that left is no error of anybody, and scanners shall not push out what concerns models.
      if (failure === undefined || status === CLIENT_CLOSED_REQUEST || isElsewhere(record)) return;
      const { type = failure, code = null, message = failure } = record.error ?? {};
      const attempts = attemptsOf(story.steps);
      errors.record({ id: ownId, requestId: id, status, type, code, message, model, backend, attempts });
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

/** The attempts that another one followed. */
function retriedAttempts(steps: readonly StoryStep[]): AttemptStep[] {
  return steps.filter((step) => step.kind === "attempt").slice(0, -1);
}

function attemptsOf(steps: readonly StoryStep[]): FailedAttempt[] {
  const failed: FailedAttempt[] = [];
  for (const step of steps) {
    if (step.kind !== "attempt" || step.failure === undefined) continue;
    failed.push({
      backend: step.backend,
      model: step.model,
      failure: step.failure,
      durationMs: step.durationMs === undefined ? undefined : Math.round(step.durationMs),
    });
  }
  return failed;
}
