// The single place where a request that is over is reported: to statistics and metrics, to the errors that an operator can
// look up, and to the story of the request.

import { ERRORS } from "../errors/catalog.ts";
import type { GatewayEvents } from "../metrics/gateway-events.ts";
import type { Observer } from "../metrics/observer.ts";
import type { AttemptOutcome } from "../stats/collector.ts";
import type { ErrorReport, FailedAttempt } from "../stats/error-recorder.ts";
import type { FinishedRequest } from "../stats/finished-request.ts";
import { isFailure, type Outcome } from "../stats/outcome.ts";
import type { AttemptStep, Stories, StoryStart, StoryStep } from "../stats/stories.ts";
import { withoutSecrets } from "../stats/without-secrets.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import { isBackendsFault } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { SpansInUse } from "./request-spans.ts";

export type RequestReporter = ReturnType<typeof createReporter>;

export const CLIENT_CLOSED_REQUEST = 499;

export function createReporter(
  observer: Observer,
  stories: Pick<Stories, "begin" | "finish" | "refused">,
  errors: { record(report: ErrorReport): unknown },
  events: Pick<GatewayEvents, "dropped" | "refused">,
  spans: SpansInUse = { recorder: undefined },
) {
  let openStreams = 0;
  return {
    openStreams: () => openStreams,
    /** The request was read: its story begins. */
    begun(context: RequestContext): void {
      const { record } = context;
      record.story = stories.begin(startOf(context));
      if (record.stream) openStreams++;
      if (spans.recorder !== undefined) record.spans = spans.recorder.begin(context);
    },
    /** Called once per attempt at a backend, when it is over. `firstTokenMs` is known of streams. */
    attempted(
      backend: string,
      failure: UpstreamFailure | undefined,
      durationMs: number,
      firstTokenMs: number | undefined,
    ): void {
      const label = failure === undefined ? undefined : failureLabel(failure);
      observer.attempted(backend, attemptOutcome(failure), label, durationMs, firstTokenMs);
    },
    /** Called once per request, when its answer is over; status 499 when the client left. */
    finished(context: RequestContext, status: number, durationMs: number): void {
      const { caller, record } = context;
      const { operation, model, story } = record;
      const outcome = outcomeOf(record, status);
      const isSuccess = outcome === "succeeded";
      const failure = isSuccess ? undefined : failureOf(record, status);
      if (outcome === "stream_broken") record.endedBy ??= NO_TAKEOVER;
      const finished: FinishedRequest = {
        operation: operation ?? "",
        model: model ?? "",
        answeredBy: record.answeredBy,
        backend: record.backend,
        status,
        outcome,
        durationMs,
        firstByteMs: record.firstByteMs,
        backendMs: record.backendMs,
        stream: record.stream,
        usage: record.usage,
        attempts: record.attempts,
        retried: record.attempts > 1 ? retriedAttempts(story.steps) : undefined,
        fallback: record.fallbackReason,
        cache: record.cache,
        shared: record.shared,
        failure,
        code: isSuccess || record.error === undefined ? undefined : codeOf(record.error),
        endedBy: isFailure(outcome) ? record.endedBy : undefined,
        keyId: caller?.keyId,
        userId: caller?.userId,
        endUser: record.user,
        organizationId: caller?.organizationId,
      };
      const isCounted = operation !== undefined && model !== undefined;
      if (isCounted) observer.finished(finished);
      for (const feature of record.dropped ?? []) events.dropped(feature);
      const isOwnRefusal = outcome === "refused" && !story.wasSent && !isOfAdministrators(record);
      if (isOwnRefusal) {
        events.refused(status, finished.code ?? failure ?? "");
        if (!isCounted) observer.turnedAway({ keyId: finished.keyId, organizationId: finished.organizationId });
      }
      if (story.isKept) {
        if (record.stream) openStreams--;
        story.cache = record.cache;
        if (record.attempts === 0 && failure !== undefined) {
          story.add({ kind: "refused", atMs: durationMs, reason: failure });
        }
        stories.finish(story, finished);
      } else if (isOwnRefusal) {
        stories.refused({ ...startOf(context), target: targetOf(record) }, finished);
      }
      // A caller whose trace it is wants to see in it that the request came here, and why it went no further.
      if (record.refused !== undefined) record.spans = spans.recorder?.begin(context);
      record.spans?.finished(context, status, durationMs, failure);
      // Scanners must not push out what concerns models.
      if (failure === undefined || outcome === "client_left" || isElsewhere(record)) return;
      const { type = failure, code: errorCode = null, message = failure } = record.error ?? {};
      const attempts = attemptsOf(story.steps);
      const told = { status, isRefusal: isOwnRefusal, type, code: errorCode, message };
      const { backend, endedBy } = finished;
      errors.record({ ...startOf(context), ...told, model, backend, endedBy, attempts });
    },
  };
}

/** Refusals of the admin API and of paths that do not exist. */
function isElsewhere(record: RequestContext["record"]): boolean {
  return isOfAdministrators(record) || record.error?.type === ERRORS.routeNotFound.type;
}

/** The access log has them. */
function isOfAdministrators({ path }: RequestContext["record"]): boolean {
  return /^\/(admin|dashboard)(\/|$)/.test(path);
}

function startOf(context: RequestContext): StoryStart {
  const { id, ownId, caller, record, startedAtMs } = context;
  return {
    id: ownId,
    requestId: id,
    operation: record.operation ?? record.refused ?? "",
    model: record.model ?? "",
    stream: record.stream,
    startedAtMs,
    keyId: caller?.keyId,
    userId: caller?.userId ?? record.user,
    organizationId: caller?.organizationId,
    clientAddress: context.peerAddress(),
  };
}

/** Of a stream that nobody was asked to go on with. */
const NO_TAKEOVER = "no other backend and no fallback chain can go on with this stream";

const MAX_TARGET_LENGTH = 200;

function targetOf({ method, path }: RequestContext["record"]): string {
  return withoutSecrets(`${method} ${path}`.slice(0, MAX_TARGET_LENGTH));
}

function outcomeOf({ streamFailure, isOutage }: RequestContext["record"], status: number): Outcome {
  if (status === CLIENT_CLOSED_REQUEST) return "client_left";
  if (streamFailure !== undefined) return "stream_broken";
  if (status < 400) return "succeeded";
  return status < 500 && isOutage !== true ? "refused" : "failed";
}

/** A backend may have written it. */
export const MAX_CODE_LENGTH = 64;

/** The type, where the code is only the status once more. */
function codeOf({ type, code }: NonNullable<RequestContext["record"]["error"]>): string {
  return (typeof code === "string" ? code : type).slice(0, MAX_CODE_LENGTH);
}

function failureOf({ streamFailure, failure }: RequestContext["record"], status: number): string {
  if (status === CLIENT_CLOSED_REQUEST) return "aborted";
  return streamFailure ?? failure ?? `status_${status}`;
}

/** As its backend's statistics count it. */
function attemptOutcome(failure: UpstreamFailure | undefined): AttemptOutcome {
  if (failure === undefined) return "succeeded";
  if (isBackendsFault(failure)) return "failed";
  return failure.kind === "status" ? "refused" : "client_left";
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
      detail: step.detail,
      durationMs: step.durationMs === undefined ? undefined : Math.round(step.durationMs),
    });
  }
  return failed;
}
