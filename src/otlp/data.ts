// What is sent, whatever the encoding: spans and metrics as OTLP has them, as far as the gateway has something to say.

import type { Usage } from "../generation/usage.ts";

/** A whole number; fractions are a type of their own, because receivers treat them so. */
export type AttributeValue = string | number | boolean | { readonly double: number } | readonly string[];

export type Attributes = readonly (readonly [name: string, value: AttributeValue])[];

export const SPAN_KIND = { server: 2, client: 3 } as const;

/**
 * The content that spans of the same traits share: name, outcome and attributes. All of them use one object, so that its bytes
 * are made once.
 */
export interface Alike {
  readonly name: string;
  readonly kind: (typeof SPAN_KIND)[keyof typeof SPAN_KIND];
  readonly isError: boolean;
  readonly attributes: Attributes;
  /** Kept by the encoding that has made them. */
  bytes: Uint8Array | undefined;
}

/** Times are whole microseconds since 1970: nanoseconds do not fit into a number. */
export interface OtlpSpan {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  parentSpanId: string | undefined;
  traceState: string | undefined;
  /** Trace flags of the W3C: 1 = sampled. */
  flags: number;
  startUs: number;
  endUs: number;
  alike: Alike;
  /** This and the next two differ from span to span; `ownAttributes` (attributes.ts) names them. */
  requestId: string | undefined;
  firstChunkMs: number | undefined;
  usage: Usage | undefined;
  events: readonly SpanEvent[];
}

export interface SpanEvent {
  name: string;
  atUs: number;
  attributes: Attributes;
}

export interface NumberPoint {
  attributes: Attributes;
  value: number;
}

export interface HistogramPoint {
  attributes: Attributes;
  sum: number;
  /** One more than bounds; not cumulative. */
  counts: ArrayLike<number>;
}

interface MetricHead {
  name: string;
  description: string;
  unit: string;
}

export type OtlpMetric = MetricHead &
  (
    | { kind: "sum" | "gauge"; points: readonly NumberPoint[] }
    | { kind: "histogram"; bounds: readonly number[]; points: readonly HistogramPoint[] }
  );

/** All numbers of one export: what has grown has done so since `startUs`. */
export interface MetricsBatch {
  startUs: number;
  atUs: number;
  metrics: readonly OtlpMetric[];
}

export interface Origin {
  resource: Attributes;
  scope: { name: string; version: string };
  schemaUrl: string;
}

export const CUMULATIVE = 2;
export const STATUS_ERROR = 2;

/** A request with spans, written span by span as they end: what was written of one is all that stays of it. */
export interface SpanWriter {
  add(span: OtlpSpan): void;
  /** How much it is so far, without what stands around the spans. */
  readonly size: number;
  /** The request, until the next span begins another one: its memory serves again. */
  take(): Uint8Array;
}

/** How one encoding writes the two requests of OTLP, and reads the answer. */
export interface OtlpEncoding {
  contentType: string;
  spans(origin: Origin): SpanWriter;
  metrics(origin: Origin, batch: MetricsBatch): Uint8Array;
  /** The part of a request that was rejected although it was answered with 200; undefined when all was accepted. */
  partialSuccess(answer: Uint8Array): PartialSuccess | undefined;
}

export interface PartialSuccess {
  rejected: number;
  message: string;
}
