// The requests of OTLP as protocol buffers. The numbers are those of opentelemetry-proto (common, resource, trace and metrics
// v1, and their services), version 1; a test decodes what stands here with the official definitions.

import {
  type Attributes,
  type AttributeValue,
  CUMULATIVE,
  type HistogramPoint,
  type MetricsBatch,
  type NumberPoint,
  type Origin,
  type OtlpEncoding,
  type OtlpMetric,
  type OtlpSpan,
  type PartialSuccess,
  type SpanEvent,
  STATUS_ERROR,
} from "./data.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

const SPAN_ATTRIBUTES = 9;

export function createProtobufEncoding(): OtlpEncoding {
  const writer = new ProtobufWriter();
  /** The names and attributes that many spans have alike. */
  const known = new WeakMap<Attributes, { name: string; bytes: Uint8Array }>();
  /** Of the names of the others: there are only some. */
  const names = new Map<string, Uint8Array>();

  function ownAttribute(name: string, value: AttributeValue): void {
    const start = writer.begin(SPAN_ATTRIBUTES);
    const written = names.get(name);
    if (written !== undefined) writer.raw(written);
    else {
      writer.string(1, name);
      names.set(name, writer.since(start));
    }
    const any = writer.begin(2);
    writeValue(writer, value);
    writer.end(any);
    writer.end(start);
  }

  function nameAndShared({ name, shared }: OtlpSpan): void {
    const written = known.get(shared);
    if (written?.name === name) {
      writer.raw(written.bytes);
      return;
    }
    const start = writer.length;
    writer.string(5, name);
    writeAttributes(writer, SPAN_ATTRIBUTES, shared);
    known.set(shared, { name, bytes: writer.since(start) });
  }

  function writeSpan(span: OtlpSpan): void {
    const start = writer.begin(2);
    writer.hex(1, span.traceId);
    writer.hex(2, span.spanId);
    if (span.traceState !== undefined) writer.string(3, span.traceState);
    if (span.parentSpanId !== undefined) writer.hex(4, span.parentSpanId);
    writer.uint(6, span.kind);
    writer.nanoseconds(7, span.startUs);
    writer.nanoseconds(8, span.endUs);
    nameAndShared(span);
    for (const [name, value] of span.own) ownAttribute(name, value);
    for (const event of span.events) writeEvent(writer, event);
    if (span.isError) {
      const status = writer.begin(15);
      writer.uint(3, STATUS_ERROR);
      writer.end(status);
    }
    writer.fixed32(16, span.flags);
    writer.end(start);
  }

  return {
    contentType: "application/x-protobuf",
    traces(origin, spans) {
      writeRequest(writer, origin, () => {
        for (const span of spans) writeSpan(span);
      });
      return writer.take();
    },
    metrics(origin, batch) {
      writeRequest(writer, origin, () => {
        for (const metric of batch.metrics) writeMetric(writer, metric, batch);
      });
      return writer.take();
    },
    partialSuccess: readPartialSuccess,
  };
}

/** Both requests are built alike: one resource, one scope, and their list. */
function writeRequest(writer: ProtobufWriter, { resource, scope, schemaUrl }: Origin, writeList: () => void): void {
  const ofResource = writer.begin(1);
  const described = writer.begin(1);
  writeAttributes(writer, 1, resource);
  writer.end(described);
  const ofScope = writer.begin(2);
  const named = writer.begin(1);
  writer.string(1, scope.name);
  writer.string(2, scope.version);
  writer.end(named);
  writeList();
  writer.string(3, schemaUrl);
  writer.end(ofScope);
  writer.string(3, schemaUrl);
  writer.end(ofResource);
}

function writeAttributes(writer: ProtobufWriter, field: number, attributes: Attributes): void {
  for (const [name, value] of attributes) {
    const start = writer.begin(field);
    writer.string(1, name);
    const any = writer.begin(2);
    writeValue(writer, value);
    writer.end(any);
    writer.end(start);
  }
}

function writeValue(writer: ProtobufWriter, value: AttributeValue): void {
  if (typeof value === "string") writer.string(1, value);
  else if (typeof value === "boolean") writer.uint(2, value ? 1 : 0);
  else if (typeof value === "number") writer.uint(3, value);
  else if ("double" in value) writer.double(4, value.double);
  else {
    const list = writer.begin(5);
    for (const text of value) {
      const any = writer.begin(1);
      writer.string(1, text);
      writer.end(any);
    }
    writer.end(list);
  }
}

function writeEvent(writer: ProtobufWriter, { name, atUs, attributes }: SpanEvent): void {
  const start = writer.begin(11);
  writer.nanoseconds(1, atUs);
  writer.string(2, name);
  writeAttributes(writer, 3, attributes);
  writer.end(start);
}

const DATA_FIELDS = { gauge: 5, sum: 7, histogram: 9 } as const;

function writeMetric(writer: ProtobufWriter, metric: OtlpMetric, batch: MetricsBatch): void {
  const start = writer.begin(2);
  writer.string(1, metric.name);
  writer.string(2, metric.description);
  writer.string(3, metric.unit);
  const data = writer.begin(DATA_FIELDS[metric.kind]);
  if (metric.kind === "histogram") {
    for (const point of metric.points) writeHistogram(writer, point, metric.bounds, batch);
  } else {
    for (const point of metric.points) writeNumber(writer, point, batch);
  }
  if (metric.kind !== "gauge") writer.uint(2, CUMULATIVE);
  if (metric.kind === "sum") writer.uint(3, 1); // it only grows
  writer.end(data);
  writer.end(start);
}

function writeNumber(
  writer: ProtobufWriter,
  { attributes, value }: NumberPoint,
  { startUs, atUs }: MetricsBatch,
): void {
  const start = writer.begin(1);
  writer.nanoseconds(2, startUs);
  writer.nanoseconds(3, atUs);
  writer.double(4, value);
  writeAttributes(writer, 7, attributes);
  writer.end(start);
}

function writeHistogram(
  writer: ProtobufWriter,
  { attributes, counts, sum }: HistogramPoint,
  bounds: readonly number[],
  { startUs, atUs }: MetricsBatch,
): void {
  const start = writer.begin(1);
  writer.nanoseconds(2, startUs);
  writer.nanoseconds(3, atUs);
  let count = 0;
  for (let bucket = 0; bucket < counts.length; bucket++) count += counts[bucket] as number;
  writer.fixed64(4, count);
  writer.double(5, sum);
  const buckets = writer.begin(6);
  for (let bucket = 0; bucket < counts.length; bucket++) writer.rawFixed64(counts[bucket] as number);
  writer.end(buckets);
  const upper = writer.begin(7);
  for (const bound of bounds) writer.rawDouble(bound);
  writer.end(upper);
  writeAttributes(writer, 9, attributes);
  writer.end(start);
}

/** Field 1 of the answer holds what was rejected (1) and why (2). What cannot be read says nothing. */
function readPartialSuccess(answer: Uint8Array): PartialSuccess | undefined {
  const inner = fieldsOf(answer).find(({ field }) => field === 1)?.bytes;
  if (inner === undefined) return undefined;
  const fields = fieldsOf(inner);
  const rejected = fields.find(({ field }) => field === 1)?.value ?? 0;
  const message = new TextDecoder().decode(fields.find(({ field }) => field === 2)?.bytes);
  return rejected === 0 && message === "" ? undefined : { rejected, message };
}

interface Field {
  field: number;
  value?: number;
  bytes?: Uint8Array;
}

/** Up to the first thing that is no protocol buffer, or that the answers of OTLP do not have. */
function fieldsOf(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  function varint(): number {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++] as number;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
    return Number.NaN;
  }
  while (at < bytes.length) {
    const tag = varint();
    const [field, type] = [Math.floor(tag / 8), tag % 8];
    if (type === 0) fields.push({ field, value: varint() });
    else if (type === 2) {
      const size = varint();
      if (!(at + size <= bytes.length)) break;
      fields.push({ field, bytes: bytes.subarray(at, at + size) });
      at += size;
    } else break;
  }
  return fields.filter(({ value }) => !Number.isNaN(value));
}
