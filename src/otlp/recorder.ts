// Records what becomes of requests as spans. On the path of every request that is recorded: a span is made and written when
// it ends, so that nothing of a request has to live until it is sent.

import type { Backend } from "../backends/backend.ts";
import type { Clock } from "../lib/clock.ts";
import type { AttemptSpan, RequestContext, RequestSpans } from "../pipeline/context.ts";
import type { SpanRecorder } from "../pipeline/request-spans.ts";
import type { AttemptStep, RequestRecord, StoryStep } from "../stats/request-record.ts";
import type { TraceContext } from "../tracing/trace-context.ts";
import { type AlikeSpans, createAlikeSpans, seconds } from "./attributes.ts";
import { type OtlpSpan, SPAN_KIND, type SpanEvent } from "./data.ts";
import { createIds, isSampled, type NewId, newSpanId, placeOf, type SpanPosition, traceparentOf } from "./ids.ts";

interface RecorderParts {
  ratio(): number;
  clock: Clock;
  add(span: OtlpSpan): void;
}

/** Shared by all spans of a recorder. */
interface Workshop extends RecorderParts {
  newId: NewId;
  alike: AlikeSpans;
  /** From the clock's milliseconds to microseconds since 1970. */
  toUs(clockMs: number): number;
}

const NO_EVENTS: readonly SpanEvent[] = [];
/** The steps of a story that say why a request took another way. */
const TOLD_STEPS: readonly StoryStep["kind"][] = ["wait", "fallback", "takeover", "shared", "refused"];

export function createRecorder(parts: RecorderParts): SpanRecorder {
  const { clock, ratio } = parts;
  const wallOffsetMs = clock.wallTime() - clock.now();
  const newId = createIds();
  const alike = createAlikeSpans();
  const workshop = { ...parts, newId, alike, toUs: (clockMs: number) => Math.round((clockMs + wallOffsetMs) * 1000) };
  return {
    begin(context) {
      const { trace } = context;
      const place = placeOf(trace, ratio(), newId);
      if (isSampled(place)) return new RecordedRequest(workshop, trace, place);
      // Its client has said so itself; what begins here has to be said to backends.
      return trace.traceparent === undefined ? new UnrecordedRequest(place, trace, newId) : undefined;
    },
  };
}

/** Of a trace that begins here and is not recorded: backends learn that they need not record it either. */
class UnrecordedRequest implements RequestSpans {
  readonly #span: AttemptSpan;

  constructor(place: SpanPosition, { id, tracestate }: TraceContext, newId: NewId) {
    this.#span = { trace: { id, traceparent: traceparentOf(place, newSpanId(newId)), tracestate }, ended() {} };
  }

  attempt(): AttemptSpan {
    return this.#span;
  }

  finished(): void {}
}

/** Members that anybody may see: private ones cost twice as much to fill in, and every request fills in all of them. */
class RecordedRequest implements RequestSpans {
  readonly workshop: Workshop;
  readonly place: SpanPosition;
  readonly trace: TraceContext;
  readonly spanId: string;
  attempts = 0;
  backend: Backend | undefined = undefined;

  constructor(workshop: Workshop, trace: TraceContext, place: SpanPosition) {
    this.workshop = workshop;
    this.place = place;
    this.trace = trace;
    this.spanId = newSpanId(workshop.newId);
  }

  attempt(backend: Backend, model: string, startedAtMs: number): AttemptSpan {
    this.backend = backend;
    return new RecordedAttempt(this, backend, model, this.attempts++, startedAtMs);
  }

  finished({ record, method, path }: RequestContext): void {
    const { place, trace, workshop, backend } = this;
    const { operation, shownModel: model, stream, status = 0, failure, startedAtMs, durationMs = 0, isShared } = record;
    const alike = workshop.alike(backend, {
      kind: SPAN_KIND.server,
      operation,
      model,
      stream,
      status,
      failure,
      finish: record.finishReason,
      // A client's mistake, or its leaving, is no error of the server.
      isError: status >= 500 || record.outcome === "stream_broken",
      attempts: this.attempts,
      method,
      path,
      answeredBy: failure === undefined ? (record.answeredBy ?? model) : undefined,
      cache: record.cache,
      fallback: record.fallbackReason,
      shared: isShared,
    });
    const hasEvents = record.hasSeveralSteps || record.attempts === 0 || isShared;
    workshop.add({
      traceId: place.traceId,
      spanId: this.spanId,
      parentSpanId: place.parentSpanId,
      traceState: trace.tracestate,
      flags: place.flags,
      startUs: workshop.toUs(startedAtMs),
      endUs: workshop.toUs(startedAtMs + durationMs),
      alike,
      requestId: record.id,
      firstChunkMs: stream ? record.firstByteMs : undefined,
      usage: record.usage,
      events: hasEvents ? eventsOf(record.steps, startedAtMs, workshop) : NO_EVENTS,
    });
  }
}

function eventsOf(steps: readonly StoryStep[], startedAtMs: number, { toUs }: Workshop): SpanEvent[] {
  return steps
    .filter(({ kind }) => TOLD_STEPS.includes(kind))
    .map((step) => {
      const { kind, atMs, ...told } = step;
      const attributes = Object.entries(told).map(([name, value]) => {
        const isTime = name === "durationMs";
        return [`signalbox.${isTime ? "duration" : name}`, isTime ? seconds(Number(value)) : String(value)] as const;
      });
      return { name: `signalbox.${kind}`, atUs: toUs(startedAtMs + atMs), attributes };
    });
}

class RecordedAttempt implements AttemptSpan {
  readonly trace: TraceContext;
  readonly request: RecordedRequest;
  readonly backend: Backend;
  readonly model: string;
  readonly spanId: string;
  readonly startedAtMs: number;
  /** Number of attempts before this one. */
  readonly resends: number;

  constructor(request: RecordedRequest, backend: Backend, model: string, resends: number, startedAtMs: number) {
    const { workshop, place, trace } = request;
    this.request = request;
    this.backend = backend;
    this.model = model;
    this.resends = resends;
    this.spanId = newSpanId(workshop.newId);
    this.startedAtMs = startedAtMs;
    const traceparent = traceparentOf(place, this.spanId);
    this.trace = { id: trace.id, traceparent, tracestate: trace.tracestate };
  }

  ended(
    { durationMs = 0, failure, status }: AttemptStep,
    firstTokenMs: number | undefined,
    record: RequestRecord,
  ): void {
    const { operation, stream, usage, finishReason } = record;
    const { workshop, place, trace, spanId: parentSpanId } = this.request;
    const alike = workshop.alike(this.backend, {
      kind: SPAN_KIND.client,
      operation,
      model: this.model,
      stream,
      status,
      failure,
      finish: failure === undefined ? finishReason : undefined,
      // A client that leaves is no error of the backend.
      isError: failure !== undefined && failure !== "aborted",
      attempts: this.resends,
      method: "",
      path: "",
      answeredBy: undefined,
      cache: undefined,
      fallback: undefined,
      shared: false,
    });
    workshop.add({
      traceId: place.traceId,
      spanId: this.spanId,
      parentSpanId,
      traceState: trace.tracestate,
      flags: place.flags,
      startUs: workshop.toUs(this.startedAtMs),
      endUs: workshop.toUs(this.startedAtMs + durationMs),
      alike,
      requestId: undefined,
      firstChunkMs: firstTokenMs,
      usage: failure === undefined ? usage : undefined,
      events: NO_EVENTS,
    });
  }
}
