// The requests of OTLP as protocol buffers. The numbers are those of opentelemetry-proto (common, resource, trace and metrics
// v1, and their services), version 1; a test decodes what stands here with the official definitions.

import { OWN, seconds } from "./attributes.ts";
import {
  type Alike,
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
  type SpanWriter,
  STATUS_ERROR,
} from "./data.ts";
import { type PreparedField, ProtobufWriter } from "./protobuf-writer.ts";

/** Fields of a span. */
const SPAN_NAME = 5;
const SPAN_KIND_FIELD = 6;
const SPAN_ATTRIBUTES = 9;
const SPAN_STATUS = 15;
/** Bytes of the length of a field with 16 KB to 2 MB. */
const LARGE = 3;

export function createProtobufEncoding(): OtlpEncoding {
  const writer = new ProtobufWriter();
  return {
    contentType: "application/x-protobuf",
    spans: createSpanWriter,
    metrics(origin, batch) {
      const around = beginRequest(writer, origin);
      for (const metric of batch.metrics) writeMetric(writer, metric, batch);
      endRequest(writer, origin, around);
      return writer.take();
    },
    partialSuccess: readPartialSuccess,
  };
}

function createSpanWriter(origin: Origin): SpanWriter {
  const writer = new ProtobufWriter();
  let around: Around | undefined;

  function alikeOnes(alike: Alike): void {
    if (alike.bytes !== undefined) {
      writer.raw(alike.bytes);
      return;
    }
    const start = writer.length;
    writer.string(SPAN_NAME, alike.name);
    writer.uint(SPAN_KIND_FIELD, alike.kind);
    writeAttributes(writer, SPAN_ATTRIBUTES, alike.attributes);
    if (alike.isError) {
      const status = writer.begin(SPAN_STATUS);
      writer.uint(3, STATUS_ERROR);
      writer.end(status);
    }
    alike.bytes = writer.since(start);
  }

  return {
    get size() {
      return writer.length;
    },
    add(span) {
      around ??= beginRequest(writer, origin);
      const start = writer.begin(2, 2);
      writer.hex(1, span.traceId);
      writer.hex(2, span.spanId);
      if (span.traceState !== undefined) writer.string(3, span.traceState);
      if (span.parentSpanId !== undefined) writer.hex(4, span.parentSpanId);
      writer.nanoseconds(7, span.startUs);
      writer.nanoseconds(8, span.endUs);
      alikeOnes(span.alike);
      writeOwn(writer, span);
      for (const event of span.events) writeEvent(writer, event);
      writer.fixed32(16, span.flags);
      writer.end(start, 2);
    },
    take() {
      endRequest(writer, origin, around ?? beginRequest(writer, origin));
      around = undefined;
      return writer.take();
    },
  };
}

/** Writes the attributes in which spans differ; all of their bytes but the values are prepared. */
function writeOwn(writer: ProtobufWriter, { requestId, firstChunkMs, usage }: OtlpSpan): void {
  if (requestId !== undefined) writeAttribute(writer, SPAN_ATTRIBUTES, OWN.requestId, requestId);
  if (firstChunkMs !== undefined) writer.preparedDouble(PREPARED.firstChunk, seconds(firstChunkMs).double);
  if (usage === undefined) return;
  const { input, output } = usage;
  writer.preparedUint(PREPARED.inputTokens, input.total);
  writer.preparedUint(PREPARED.outputTokens, output.total);
  if (input.cacheRead !== undefined) writer.preparedUint(PREPARED.cacheReadTokens, input.cacheRead);
  if (input.cacheWrite !== undefined) writer.preparedUint(PREPARED.cacheWriteTokens, input.cacheWrite);
  if (output.reasoning !== undefined) writer.preparedUint(PREPARED.reasoningTokens, output.reasoning);
}

const VALUE_UINT = 3;
const VALUE_DOUBLE = 4;

/** An attribute of a span up to its number. */
function prepared(name: string, valueField: number, valueBytes: number): PreparedField {
  const writer = new ProtobufWriter(128);
  const start = writer.begin(SPAN_ATTRIBUTES);
  writer.string(1, name);
  const any = writer.begin(2);
  const innerLengthAt = writer.length - 1;
  if (valueField === VALUE_UINT) writer.uint(VALUE_UINT, 0);
  else writer.double(VALUE_DOUBLE, 0);
  writer.end(any);
  writer.end(start);
  // Without the number, whose bytes are counted when they are known.
  const bytes = writer.take().slice(0, -valueBytes);
  if (valueField === VALUE_UINT) for (const at of [1, innerLengthAt]) bytes[at] = (bytes[at] as number) - 1;
  return { bytes, innerLengthAt };
}

const PREPARED = {
  firstChunk: prepared(OWN.firstChunk, VALUE_DOUBLE, 8),
  inputTokens: prepared(OWN.inputTokens, VALUE_UINT, 1),
  outputTokens: prepared(OWN.outputTokens, VALUE_UINT, 1),
  cacheReadTokens: prepared(OWN.cacheReadTokens, VALUE_UINT, 1),
  cacheWriteTokens: prepared(OWN.cacheWriteTokens, VALUE_UINT, 1),
  reasoningTokens: prepared(OWN.reasoningTokens, VALUE_UINT, 1),
} as const;

/** Where what stands around a list has begun. */
interface Around {
  ofResource: number;
  ofScope: number;
}

/** Both requests are built alike: one resource, one scope, and their list. */
function beginRequest(writer: ProtobufWriter, { resource, scope }: Origin): Around {
  const ofResource = writer.begin(1, LARGE);
  const described = writer.begin(1);
  writeAttributes(writer, 1, resource);
  writer.end(described);
  const ofScope = writer.begin(2, LARGE);
  const named = writer.begin(1);
  writer.string(1, scope.name);
  writer.string(2, scope.version);
  writer.end(named);
  return { ofResource, ofScope };
}

function endRequest(writer: ProtobufWriter, { schemaUrl }: Origin, { ofResource, ofScope }: Around): void {
  writer.string(3, schemaUrl);
  writer.end(ofScope, LARGE);
  writer.string(3, schemaUrl);
  writer.end(ofResource, LARGE);
}

function writeAttributes(writer: ProtobufWriter, field: number, attributes: Attributes): void {
  for (const [name, value] of attributes) writeAttribute(writer, field, name, value);
}

function writeAttribute(writer: ProtobufWriter, field: number, name: string, value: AttributeValue): void {
  const start = writer.begin(field);
  writer.string(1, name);
  const any = writer.begin(2);
  writeValue(writer, value);
  writer.end(any);
  writer.end(start);
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
