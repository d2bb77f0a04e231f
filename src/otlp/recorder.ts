// Records what becomes of requests as spans. On the path of every request that is recorded: it keeps what it is told, and
// spans are made of that when they are sent.

import type { Backend } from "../backends/backend.ts";
import type { Usage } from "../generation/usage.ts";
import type { Clock } from "../lib/clock.ts";
import type { AttemptSpan, RequestContext, RequestRecord, RequestSpans } from "../pipeline/context.ts";
import type { SpanRecorder } from "../pipeline/request-spans.ts";
import type { StoryStep } from "../stats/stories.ts";
import type { TraceContext } from "../tracing/trace-context.ts";
import { add, addEnd, addUsage, type SharedAttributes, seconds } from "./attributes.ts";
import { type Attributes, type AttributeValue, type OtlpSpan, SPAN_KIND, type SpanEvent } from "./data.ts";
import { createIds, isSampled, type NewId, newSpanId, type Place, placeOf, traceparentOf } from "./ids.ts";

/** Something that is over, and becomes a span when it is sent. */
export interface Recorded {
  toSpan(shared: SharedAttributes): OtlpSpan;
}

interface RecorderParts {
  ratio(): number;
  clock: Clock;
  /** Takes what is over. */
  add(recorded: Recorded): void;
}

/** What all spans of a recorder are made with. */
interface Workshop extends RecorderParts {
  newId: NewId;
  /** From the clock's milliseconds to microseconds since 1970. */
  toUs(clockMs: number): number;
}

const FIRST_CHUNK = "gen_ai.response.time_to_first_chunk";
const NO_EVENTS: readonly SpanEvent[] = [];
/** The steps of a story that say why a request took another way. */
const TOLD_STEPS: readonly StoryStep["kind"][] = ["wait", "fallback", "takeover", "shared", "refused"];

export function createRecorder(parts: RecorderParts): SpanRecorder {
  const { clock, ratio } = parts;
  const wallOffsetMs = clock.wallTime() - clock.now();
  const newId = createIds();
  const workshop = { ...parts, newId, toUs: (clockMs: number) => Math.round((clockMs + wallOffsetMs) * 1000) };
  return {
    begin(context) {
      const { trace } = context;
      const place = placeOf(trace, ratio(), newId);
      if (isSampled(place)) return new RecordedRequest(workshop, context, place);
      // Its client has said so itself; what begins here has to be said to backends.
      return trace.traceparent === undefined ? new UnrecordedRequest(place, trace, newId) : undefined;
    },
  };
}

/** Of a trace that begins here and is not recorded: backends are told that it is none of theirs either. */
class UnrecordedRequest implements RequestSpans {
  readonly #span: AttemptSpan;

  constructor(place: Place, { id, tracestate }: TraceContext, newId: NewId) {
    this.#span = { trace: { id, traceparent: traceparentOf(place, newSpanId(newId)), tracestate }, ended() {} };
  }

  attempt(): AttemptSpan {
    return this.#span;
  }

  finished(): void {}
}

/** Members that anybody may see: private ones cost twice as much to fill in, and every request fills in all of them. */
class RecordedRequest implements RequestSpans, Recorded {
  readonly workshop: Workshop;
  readonly place: Place;
  readonly trace: TraceContext;
  readonly spanId: string;
  /** Nobody writes it any more once the request is over. */
  readonly record: RequestRecord;
  readonly ownId: string;
  readonly startedAtMs: number;
  attempts = 0;
  backend: Backend | undefined = undefined;
  durationMs = 0;
  status = 0;
  failure: string | undefined = undefined;

  constructor(workshop: Workshop, { trace, ownId, startedAtMs, record }: RequestContext, place: Place) {
    this.workshop = workshop;
    this.place = place;
    this.trace = trace;
    this.spanId = newSpanId(workshop.newId);
    this.record = record;
    this.ownId = ownId;
    this.startedAtMs = startedAtMs;
  }

  attempt(backend: Backend, model: string): AttemptSpan {
    this.backend = backend;
    return new RecordedAttempt(this, backend, model, this.attempts++);
  }

  finished(_context: RequestContext, status: number, durationMs: number, failure: string | undefined): void {
    this.status = status;
    this.durationMs = durationMs;
    this.failure = failure;
    this.workshop.add(this);
  }

  toSpan(shared: SharedAttributes): OtlpSpan {
    const { place, spanId, trace, workshop, record, startedAtMs, status, failure } = this;
    const { operation = "", model = "", method, path, stream, story } = record;
    const answeredBy = failure === undefined ? (record.fallbackModel ?? model) : undefined;
    const hasEvents = story.hasSeveralSteps || record.attempts === 0 || record.shared === true;
    return {
      traceId: place.traceId,
      flags: place.flags,
      traceState: trace.tracestate,
      spanId,
      parentSpanId: place.parentSpanId,
      kind: SPAN_KIND.server,
      startUs: workshop.toUs(startedAtMs),
      endUs: workshop.toUs(startedAtMs + this.durationMs),
      ...shared.request({ operation, model, method, path, stream }, answeredBy, this.backend),
      own: this.#ownAttributes(),
      events: hasEvents ? this.#events(story.steps) : NO_EVENTS,
      // What a client did wrong, or that it left, is no error of the server.
      isError: status >= 500 || record.streamFailure !== undefined,
    };
  }

  #ownAttributes(): Attributes {
    const { record } = this;
    const own: [string, AttributeValue][] = [
      ["http.response.status_code", this.status],
      ["signalbox.request.id", this.ownId],
      ["signalbox.attempts", this.attempts],
    ];
    addEnd(own, this.failure, record.finish);
    if (record.stream && record.firstByteMs !== undefined) own.push([FIRST_CHUNK, seconds(record.firstByteMs)]);
    add(own, "signalbox.response_cache", record.cache?.toLowerCase());
    add(own, "signalbox.fallback.reason", record.fallbackReason?.slice(0, 64));
    if (record.shared === true) own.push(["signalbox.shared", true]);
    if (record.usage !== undefined) addUsage(own, record.usage);
    return own;
  }

  #events(steps: readonly StoryStep[]): SpanEvent[] {
    return steps
      .filter(({ kind }) => TOLD_STEPS.includes(kind))
      .map((step) => {
        const { kind, atMs, ...told } = step;
        const attributes = Object.entries(told).map(([name, value]) => {
          const isTime = name === "durationMs";
          return [`signalbox.${isTime ? "duration" : name}`, isTime ? seconds(Number(value)) : String(value)] as const;
        });
        return { name: `signalbox.${kind}`, atUs: this.workshop.toUs(this.startedAtMs + atMs), attributes };
      });
  }
}

class RecordedAttempt implements AttemptSpan, Recorded {
  readonly trace: TraceContext;
  readonly request: RecordedRequest;
  readonly backend: Backend;
  readonly model: string;
  readonly spanId: string;
  readonly startedAtMs: number;
  /** How many attempts came before it. */
  readonly resends: number;
  durationMs = 0;
  failure: string | undefined = undefined;
  status: number | undefined = undefined;
  firstTokenMs: number | undefined = undefined;
  usage: Usage | undefined = undefined;
  finish: string | undefined = undefined;

  constructor(request: RecordedRequest, backend: Backend, model: string, resends: number) {
    const { workshop, place, trace } = request;
    this.request = request;
    this.backend = backend;
    this.model = model;
    this.resends = resends;
    this.spanId = newSpanId(workshop.newId);
    this.startedAtMs = workshop.clock.now();
    const traceparent = traceparentOf(place, this.spanId);
    this.trace = { id: trace.id, traceparent, tracestate: trace.tracestate };
  }

  ended(
    failure: string | undefined,
    status: number | undefined,
    firstTokenMs: number | undefined,
    record: RequestRecord,
  ): void {
    const { workshop } = this.request;
    this.durationMs = workshop.clock.now() - this.startedAtMs;
    this.failure = failure;
    this.status = status;
    this.firstTokenMs = firstTokenMs;
    if (failure === undefined) {
      this.usage = record.usage;
      this.finish = record.finish;
    }
    workshop.add(this);
  }

  toSpan(shared: SharedAttributes): OtlpSpan {
    const { failure, model, startedAtMs, firstTokenMs } = this;
    const { workshop, place, trace, record, spanId: parentSpanId } = this.request;
    const { operation = "", stream } = record;
    const own: [string, AttributeValue][] = [];
    add(own, "http.response.status_code", this.status);
    addEnd(own, failure, this.finish);
    if (this.resends > 0) own.push(["http.request.resend_count", this.resends]);
    if (firstTokenMs !== undefined) own.push([FIRST_CHUNK, seconds(firstTokenMs)]);
    if (this.usage !== undefined) addUsage(own, this.usage);
    return {
      traceId: place.traceId,
      flags: place.flags,
      traceState: trace.tracestate,
      spanId: this.spanId,
      parentSpanId,
      kind: SPAN_KIND.client,
      startUs: workshop.toUs(startedAtMs),
      endUs: workshop.toUs(startedAtMs + this.durationMs),
      ...shared.attempt(this.backend, operation, model, stream),
      own,
      events: NO_EVENTS,
      // A client that leaves is no error of the backend.
      isError: failure !== undefined && failure !== "aborted",
    };
  }
}
