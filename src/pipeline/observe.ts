// The single place where a request that is over is reported: its record gets its end, and is counted in statistics and metrics,
// noted among the errors that an operator can look up, and kept as a story.

import { ERRORS } from "../errors/catalog.ts";
import type { GatewayEvents } from "../metrics/gateway-events.ts";
import type { Observer } from "../metrics/observer.ts";
import type { ArmBook } from "../model-routes/arm-book.ts";
import type { AttemptOutcome } from "../stats/collector.ts";
import type { ErrorRecorder } from "../stats/error-recorder.ts";
import { isFailure, type Outcome } from "../stats/outcome.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { Stories } from "../stats/stories.ts";
import { withoutSecrets } from "../stats/without-secrets.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import { isBackendsFault } from "../upstream/send.ts";
import type { RequestContext } from "./context.ts";
import type { SpansInUse } from "./request-spans.ts";

export type RequestReporter = ReturnType<typeof createReporter>;

export const CLIENT_CLOSED_REQUEST = 499;

/** Where records go: into the books of this process, or from a worker to those of the primary. */
export interface RecordSink extends Pick<Observer, "attempted"> {
  /** The request was read. */
  begun(record: RequestRecord): void;
  /** The request is over: it was read, or it failed. */
  over(record: RequestRecord): void;
  /** A vendor's batch has got a request that was read: it comes again with its answer. */
  handedOver?(record: RequestRecord): void;
}

interface Books {
  observer: Observer;
  stories: Pick<Stories, "begin" | "end" | "forget">;
  errors: Pick<ErrorRecorder, "record">;
  events: Pick<GatewayEvents, "dropped" | "refused">;
  arms: Pick<ArmBook, "over">;
}

/** Statistics, metrics, errors and stories of this process. */
export function createBooks({ observer, stories, errors, events, arms }: Books): RecordSink {
  return {
    attempted: observer.attempted,
    begun: (record) => stories.begin(record),
    handedOver: (record) => stories.forget(record),
    over(record) {
      const { status = 0, failure, code = failure, isRead, wasOnlyRefused } = record;
      const cost = isRead ? observer.finished(record) : 0;
      if (record.route !== undefined) arms.over(record, cost > 0 ? cost : undefined);
      record.model = record.shownModel; // counted by the whole name, kept without what may be a key
      for (const feature of record.dropped ?? []) events.dropped(feature);
      if (wasOnlyRefused) {
        events.refused(status, code ?? "");
        if (!isRead) observer.turnedAway(record);
      }
      // No client has got the errors of copies, and scanners must not push out what concerns models.
      const isElsewhere = record.isCopy || record.error?.type === ERRORS.routeNotFound.type;
      if (failure !== undefined && record.outcome !== "client_left" && !isElsewhere) errors.record(record);
      stories.end(record);
    },
  };
}

export function createReporter(sink: RecordSink, spans: SpansInUse = { recorder: undefined }) {
  let openStreams = 0;
  return {
    openStreams: () => openStreams,
    /** The request was read: its story begins. */
    begun(context: RequestContext): void {
      const { record } = context;
      noteCaller(context);
      record.isKept = true;
      sink.begun(record);
      if (record.stream) openStreams++;
      context.spans = spans.recorder?.begin(context);
    },
    /** Called once per attempt at a backend, when it is over. `firstTokenMs` is known of streams. */
    attempted(
      backend: string,
      failure: UpstreamFailure | undefined,
      durationMs: number,
      firstTokenMs: number | undefined,
    ): void {
      const label = failure === undefined ? undefined : failureLabel(failure);
      sink.attempted(backend, attemptOutcome(failure), label, durationMs, firstTokenMs);
    },
    /** Called once per request, when its answer is over; status 499 when the client left. */
    finished(context: RequestContext, status: number, durationMs: number): void {
      const { record, path } = context;
      if (context.vendorTurn?.isHandedOver === true) {
        sink.handedOver?.(record);
        context.hooks?.release();
        return;
      }
      const outcome = outcomeOf(record, status);
      if (outcome !== "succeeded") {
        record.failure = failureOf(record, status);
        record.code = record.error && codeOf(record.error);
      }
      if (isFailure(outcome)) {
        record.endedBy = record.lastRule ?? (outcome === "stream_broken" ? NO_TAKEOVER : undefined);
      }
      record.finish(status, outcome, durationMs);
      if (record.isKept) {
        if (record.stream) openStreams--;
        if (record.attempts === 0) noteRefusal(record);
      } else if (record.operation !== "") {
        // A caller whose trace it is wants to see in it that the request came here, and why it went no further.
        context.spans = spans.recorder?.begin(context);
      }
      context.spans?.finished(context);
      context.hooks?.end(status);
      if (!record.isKept && (record.failure === undefined || isOfAdministrators(path))) return;
      if (!record.isKept) keepRefusal(context);
      sink.over(record);
    },
  };
}

function noteCaller({ caller, record, peerAddress }: RequestContext): void {
  record.keyId = caller?.keyId;
  record.userId = caller?.userId;
  record.organizationId = caller?.organizationId;
  record.clientAddress = peerAddress();
}

/** The step of a request that failed before a backend was asked. */
function noteRefusal(record: RequestRecord): void {
  const { failure, durationMs = 0 } = record;
  if (failure !== undefined) record.add({ kind: "refused", atMs: durationMs, reason: failure });
}

/** A request that failed before it was read; one that the gateway itself refused can be looked up like any other. */
function keepRefusal(context: RequestContext): void {
  const { record, method, path } = context;
  noteCaller(context);
  if (!record.wasOnlyRefused) return;
  record.isKept = true;
  record.target = withoutSecrets(`${method} ${path}`.slice(0, MAX_TARGET_LENGTH));
  noteRefusal(record);
}

/** The access log has their refusals. */
function isOfAdministrators(path: string): boolean {
  return /^\/(admin|dashboard)(\/|$)/.test(path);
}

/** The rule of a stream that no backend was asked to go on with. */
const NO_TAKEOVER = "no other backend and no fallback chain can go on with this stream";

const MAX_TARGET_LENGTH = 200;

function outcomeOf({ streamFailure, isOutage }: RequestRecord, status: number): Outcome {
  if (status === CLIENT_CLOSED_REQUEST) return "client_left";
  if (streamFailure !== undefined) return "stream_broken";
  if (status < 400) return "succeeded";
  return status < 500 && !isOutage ? "refused" : "failed";
}

/** A backend may have written it. */
export const MAX_CODE_LENGTH = 64;

/** The type, where the code is only the status once more. */
function codeOf({ type, code }: NonNullable<RequestRecord["error"]>): string {
  return (typeof code === "string" ? code : type).slice(0, MAX_CODE_LENGTH);
}

function failureOf({ streamFailure, lastFailure }: RequestRecord, status: number): string {
  if (status === CLIENT_CLOSED_REQUEST) return "aborted";
  return streamFailure ?? lastFailure ?? `status_${status}`;
}

/** As its backend's statistics count it. */
function attemptOutcome(failure: UpstreamFailure | undefined): AttemptOutcome {
  if (failure === undefined) return "succeeded";
  if (isBackendsFault(failure)) return "failed";
  return failure.kind === "status" ? "refused" : "client_left";
}
