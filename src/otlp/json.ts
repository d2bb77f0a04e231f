// The requests of OTLP as JSON, with the deviations from the usual JSON of protocol buffers that OTLP makes: ids in
// hexadecimal digits, enums as numbers. Whole numbers of 64 bits are texts.

import { isObject, parseObject } from "../lib/json.ts";
import { ownAttributes } from "./attributes.ts";
import {
  type Attributes,
  type AttributeValue,
  CUMULATIVE,
  type MetricsBatch,
  type Origin,
  type OtlpEncoding,
  type OtlpMetric,
  type OtlpSpan,
  type PartialSuccess,
  type SpanWriter,
  STATUS_ERROR,
} from "./data.ts";

export const jsonEncoding: OtlpEncoding = {
  contentType: "application/json",
  spans: createSpanWriter,
  metrics(origin, batch) {
    const metrics = batch.metrics.map((metric) => metricOf(metric, batch));
    const scopeMetrics = [{ ...scopeOf(origin), metrics }];
    return bytesOf({ resourceMetrics: [{ ...resourceOf(origin), scopeMetrics }] });
  },
  partialSuccess: readPartialSuccess,
};

/** The request's text before and behind its list of spans does not depend on them, so it is made once. */
function createSpanWriter(origin: Origin): SpanWriter {
  const scopeSpans = [{ ...scopeOf(origin), spans: [] }];
  const empty = JSON.stringify({ resourceSpans: [{ ...resourceOf(origin), scopeSpans }] });
  const listAt = empty.lastIndexOf("[]") + 1;
  let texts: string[] = [];
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(span) {
      const text = JSON.stringify(spanOf(span));
      texts.push(text);
      size += text.length;
    },
    take() {
      const request = `${empty.slice(0, listAt)}${texts.join()}${empty.slice(listAt)}`;
      texts = [];
      size = 0;
      return new TextEncoder().encode(request);
    },
  };
}

function bytesOf(request: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(request));
}

function resourceOf({ resource, schemaUrl }: Origin) {
  return { resource: { attributes: attributesOf(resource) }, schemaUrl };
}

function scopeOf({ scope, schemaUrl }: Origin) {
  return { scope, schemaUrl };
}

function spanOf(span: OtlpSpan) {
  const { alike } = span;
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    traceState: span.traceState,
    parentSpanId: span.parentSpanId,
    flags: span.flags,
    name: alike.name.toWellFormed(),
    kind: alike.kind,
    startTimeUnixNano: nanoseconds(span.startUs),
    endTimeUnixNano: nanoseconds(span.endUs),
    attributes: attributesOf([...alike.attributes, ...ownAttributes(span)]),
    events: span.events.map(({ name, atUs, attributes }) => {
      return { name, timeUnixNano: nanoseconds(atUs), attributes: attributesOf(attributes) };
    }),
    status: alike.isError ? { code: STATUS_ERROR } : {},
  };
}

function metricOf(metric: OtlpMetric, { startUs, atUs }: MetricsBatch) {
  const { name, description, unit, kind } = metric;
  const times = { startTimeUnixNano: nanoseconds(startUs), timeUnixNano: nanoseconds(atUs) };
  const head = { name, description, unit };
  const grown = { aggregationTemporality: CUMULATIVE };
  if (kind === "histogram") {
    const dataPoints = metric.points.map(({ attributes, counts, sum }) => {
      const bucketCounts = Array.from(counts);
      return {
        ...times,
        attributes: attributesOf(attributes),
        count: String(bucketCounts.reduce((all, count) => all + count, 0)),
        sum,
        bucketCounts: bucketCounts.map(String),
        explicitBounds: metric.bounds,
      };
    });
    return { ...head, histogram: { dataPoints, ...grown } };
  }
  const dataPoints = metric.points.map(({ attributes, value }) => {
    return { ...times, attributes: attributesOf(attributes), asDouble: value };
  });
  return kind === "gauge"
    ? { ...head, gauge: { dataPoints } }
    : { ...head, sum: { dataPoints, ...grown, isMonotonic: true } };
}

function attributesOf(attributes: Attributes) {
  return attributes.map(([key, value]) => ({ key, value: anyValueOf(value) }));
}

function anyValueOf(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return { intValue: String(value) };
  if ("double" in value) return { doubleValue: value.double };
  return { arrayValue: { values: value.map(anyValueOf) } };
}

function nanoseconds(microseconds: number): string {
  return `${microseconds}000`;
}

function readPartialSuccess(answer: Uint8Array): PartialSuccess | undefined {
  const told = parseObject(new TextDecoder().decode(answer))?.partialSuccess;
  if (!isObject(told)) return undefined;
  const rejected = Number(told.rejectedSpans ?? told.rejectedDataPoints ?? 0);
  const message = typeof told.errorMessage === "string" ? told.errorMessage : "";
  return (Number.isSafeInteger(rejected) && rejected > 0) || message !== "" ? { rejected, message } : undefined;
}
