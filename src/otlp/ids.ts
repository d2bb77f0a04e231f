// Ids of traces and spans, and which traces are recorded.

import type { TraceContext } from "../tracing/trace-context.ts";

const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;
const POOL_BYTES = 4096;
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/;

/** Random ids; randomness is asked for and written out in large pieces, because a piece costs as much as an id. */
export function createIds(fill: (bytes: Uint8Array) => void = (bytes) => void crypto.getRandomValues(bytes)) {
  const pool = Buffer.alloc(POOL_BYTES);
  let written = "";
  let used = 0;
  return (digits: number): string => {
    if (used + digits > written.length) {
      fill(pool);
      written = pool.toString("hex");
      used = 0;
    }
    used += digits;
    return written.slice(used - digits, used);
  };
}

export type NewId = ReturnType<typeof createIds>;

export const newSpanId = (newId: NewId): string => newId(SPAN_DIGITS);

/** Where a request stands in a trace. */
export interface SpanPosition {
  traceId: string;
  parentSpanId: string | undefined;
  /** Of the W3C. The second bit says that the trace id is random. */
  flags: number;
}

const SAMPLED = 1;
const RANDOM = 2;

export function isSampled({ flags }: SpanPosition): boolean {
  return (flags & SAMPLED) !== 0;
}

/** A client's traceparent decides for its trace; of those that begin here the given share is recorded. */
export function placeOf({ id, traceparent }: TraceContext, ratio: number, newId: NewId): SpanPosition {
  if (traceparent !== undefined) {
    // version-traceid-parentid-flags, which was checked when it was read
    const flags = Number.parseInt(traceparent.slice(53, 55), 16) & (SAMPLED | RANDOM);
    return { traceId: traceparent.slice(3, 35), parentSpanId: traceparent.slice(36, 52), flags };
  }
  // So that a trace can be found by the id of its request.
  const own = id.length >= TRACE_DIGITS && id.length <= 36 ? id.replaceAll("-", "").toLowerCase() : "";
  const traceId = TRACE_ID.test(own) ? own : newId(TRACE_DIGITS);
  return { traceId, parentSpanId: undefined, flags: isWithin(traceId, ratio) ? SAMPLED : 0 };
}

/** By its last 56 bits, as the conventions have it, so that all services of a trace decide alike. */
function isWithin(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  return ratio > 0 && Number.parseInt(traceId.slice(18, 30), 16) >= (1 - ratio) * 2 ** 48;
}

export function traceparentOf({ traceId, flags }: SpanPosition, spanId: string): string {
  return `00-${traceId}-${spanId}-0${flags}`;
}
