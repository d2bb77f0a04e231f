// The id that follows a request: taken from the client or made here, sent to backends and back to the client.
// https://www.w3.org/TR/trace-context/ defines traceparent and tracestate.

import type { Settings } from "../config/sections/registry.ts";

export interface TraceContext {
  id: string;
  /** The client's own traceparent, handed on unchanged; undefined when it sent none. */
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** Version 00 has exactly four fields; later versions may have more. */
const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|(?<!^00.*)-[\x20-\x7e]*$)/;
/** That of version 00 has 55 characters; what later versions may add is not known, but is handed on to every backend. */
const MAX_TRACEPARENT_LENGTH = 128;
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/;
const NO_PARENT = "0".repeat(16);
/** The form of a client's id; any other text could break a header or a log line, and is replaced. */
const SAFE_ID = /^[\w.:+/=@-]{1,128}$/;
/** The characters that the standard allows, and more than the 512 of them that it asks to carry at least. */
const TRACESTATE = /^[\t\x20-\x7e]{0,1024}$/;

/** The first of: traceparent, trace id, request id, correlation id; else a new UUID. */
export function resolveTrace(headers: Headers, tracing: Settings["tracing"], newId: () => string): TraceContext {
  if (!tracing.enabled) return { id: newId(), traceparent: undefined, tracestate: undefined };
  if (tracing.w3c_trace_context) {
    const traceparent = headers.get("traceparent");
    const isReadable = traceparent !== null && traceparent.length <= MAX_TRACEPARENT_LENGTH;
    const traceId = isReadable ? TRACEPARENT.exec(traceparent)?.[1] : undefined;
    if (traceId !== undefined) {
      const tracestate = headers.get("tracestate");
      const carried = tracestate !== null && TRACESTATE.test(tracestate);
      return { id: traceId, traceparent: traceparent as string, tracestate: carried ? tracestate : undefined };
    }
  }
  const names = tracing.headers;
  const id =
    safeId(headers.get(names.trace_id)) ??
    safeId(headers.get(names.request_id)) ??
    safeId(headers.get(names.correlation_id)) ??
    newId();
  return { id, traceparent: undefined, tracestate: undefined };
}

function safeId(value: string | null): string | undefined {
  return value !== null && SAFE_ID.test(value) ? value : undefined;
}

/** Adds the id to the headers of a request to a backend; retries of one request carry the same id. */
export function propagateTrace(trace: TraceContext, tracing: Settings["tracing"], into: Record<string, string>): void {
  if (!tracing.enabled) return;
  const { request_id, trace_id, correlation_id } = tracing.headers;
  into[inLowerCase(request_id)] = trace.id;
  into[inLowerCase(trace_id)] = trace.id;
  into[inLowerCase(correlation_id)] = trace.id;
  if (!tracing.w3c_trace_context) return;
  const traceparent = trace.traceparent ?? newTraceparent(trace.id);
  if (traceparent !== undefined) into.traceparent = traceparent;
  if (trace.tracestate !== undefined) into.tracestate = trace.tracestate;
}

/** Names that nearly everyone keeps. Written again for each request, they would cost as much as the rest of a trace. */
const USUAL_NAMES: ReadonlyMap<string, string> = new Map(
  ["X-Request-ID", "X-Trace-ID", "X-Correlation-ID"].map((name) => [name, name.toLowerCase()]),
);

/** So that a header of the same name that an operator has set for a backend replaces it. */
function inLowerCase(name: string): string {
  return USUAL_NAMES.get(name) ?? name.toLowerCase();
}

/** Adds the id to the headers of an answer to the client, also when tracing is off. */
export function writeIds(trace: TraceContext, tracing: Settings["tracing"], into: Record<string, string>): void {
  into[tracing.headers.request_id] = trace.id;
  into[tracing.headers.trace_id] = trace.id;
  into[tracing.headers.correlation_id] = trace.id;
}

/** A traceparent whose trace id is the request's id; an id that is no 128-bit hex number has no such form. */
function newTraceparent(id: string): string | undefined {
  const traceId = id.replace(/-/g, "").toLowerCase();
  if (!TRACE_ID.test(traceId)) return undefined;
  // The parent is this gateway, which records no span of its own: part of the trace id serves as its number.
  const ownId = traceId.slice(16);
  return `00-${traceId}-${ownId === NO_PARENT ? traceId.slice(0, 16) : ownId}-01`;
}
