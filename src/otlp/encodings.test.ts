// Both encodings of OTLP, read by the official definitions.

import { beforeAll, expect, test } from "bun:test";
import { type OtlpDefinitions, otlpDefinitions } from "../../test/support/otlp-definitions.ts";
import { metricsOf, spansOf } from "../../test/support/otlp-receiver.ts";
import type { MetricsBatch, Origin, OtlpEncoding, OtlpSpan } from "./data.ts";
import { jsonEncoding } from "./json.ts";
import { createProtobufEncoding } from "./protobuf.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

const protobuf = createProtobufEncoding();
const ENCODINGS: readonly (readonly [string, OtlpEncoding])[] = [
  ["protocol buffers", protobuf],
  ["JSON", jsonEncoding],
];
let definitions: OtlpDefinitions;

beforeAll(async () => {
  definitions = await otlpDefinitions();
}, 300_000);

const ORIGIN: Origin = {
  resource: [
    ["service.name", "signalbox"],
    ["process.pid", 123_456],
  ],
  scope: { name: "signalbox", version: "1.2.3" },
  schemaUrl: "https://opentelemetry.io/schemas/1.41.0",
};

const START_US = Date.UTC(2026, 10, 22) * 1000 + 123_457;

const SPAN: OtlpSpan = {
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: "00f067aa0ba902b7",
  parentSpanId: "a2fb4a1d1a96d312",
  traceState: "vendor=value",
  flags: 1,
  startUs: START_US,
  endUs: START_US + 1_500_001,
  alike: {
    name: "chat größe 🚦",
    kind: 2,
    isError: true,
    attributes: [
      ["gen_ai.operation.name", "chat"],
      ["gen_ai.request.stream", true],
      ["server.port", 443],
      ["gen_ai.response.finish_reasons", ["stop", "länge"]],
      ["signalbox.attempts", 0],
      ["signalbox.shared", false],
      ["long", "x".repeat(20_000)],
      ["empty", ""],
    ],
    bytes: undefined,
  },
  requestId: "abc-1",
  firstChunkMs: 250,
  usage: { input: { total: 2 ** 40 + 1, cacheRead: 128 }, output: { total: 0, reasoning: 127 } } as OtlpSpan["usage"],
  events: [{ name: "signalbox.wait", atUs: START_US + 5, attributes: [["signalbox.reason", "retry"]] }],
};

const PLAIN: OtlpSpan = {
  ...SPAN,
  spanId: "ffffffffffffffff",
  parentSpanId: undefined,
  traceState: undefined,
  alike: { name: "chat", kind: 3, isError: false, attributes: [["server.port", 443]], bytes: undefined },
  requestId: undefined,
  firstChunkMs: undefined,
  usage: undefined,
  events: [],
};

function written(encoding: OtlpEncoding, spans: readonly OtlpSpan[]): Uint8Array {
  const writer = encoding.spans(ORIGIN);
  for (const span of spans) writer.add(span);
  return writer.take();
}

test.each(ENCODINGS)("spans in %s", (_name, encoding) => {
  const read = definitions.read("traces", encoding.contentType, written(encoding, [SPAN, PLAIN]));
  expect(read).toMatchObject({
    resourceSpans: [
      {
        schemaUrl: ORIGIN.schemaUrl,
        resource: {
          attributes: [{ key: "service.name", value: { stringValue: "signalbox" } }, { key: "process.pid" }],
        },
        scopeSpans: [{ schemaUrl: ORIGIN.schemaUrl, scope: { name: "signalbox", version: "1.2.3" } }],
      },
    ],
  });
  const [full, plain] = spansOf((read.resourceSpans as object[])[0] as never);
  expect(full).toEqual({
    traceId: SPAN.traceId,
    spanId: SPAN.spanId,
    parentSpanId: SPAN.parentSpanId as string,
    traceState: "vendor=value",
    name: "chat größe 🚦",
    kind: "server",
    flags: 1,
    startNs: BigInt(START_US) * 1000n,
    endNs: BigInt(START_US + 1_500_001) * 1000n,
    isError: true,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.request.stream": true,
      "server.port": 443,
      "gen_ai.usage.input_tokens": 2 ** 40 + 1,
      "gen_ai.usage.output_tokens": 0,
      "gen_ai.usage.cache_read.input_tokens": 128,
      "gen_ai.usage.reasoning.output_tokens": 127,
      "gen_ai.response.time_to_first_chunk": 0.25,
      "gen_ai.response.finish_reasons": ["stop", "länge"],
      "signalbox.request.id": "abc-1",
      "signalbox.attempts": 0,
      "signalbox.shared": false,
      long: "x".repeat(20_000),
      empty: "",
    },
    events: [{ name: "signalbox.wait", attributes: { "signalbox.reason": "retry" } }],
  });
  expect(plain).toMatchObject({ kind: "client", isError: false, events: [], traceId: SPAN.traceId });
  expect(plain?.parentSpanId || undefined).toBeUndefined();
  expect(plain?.attributes).toEqual({ "server.port": 443 });
});

const BATCH: MetricsBatch = {
  startUs: START_US,
  atUs: START_US + 60_000_000,
  metrics: [
    {
      name: "signalbox_requests_total",
      description: "Finished requests.",
      unit: "1",
      kind: "sum",
      points: [
        { attributes: [["status", "200"]], value: 2 ** 40 },
        { attributes: [], value: 0.5 },
      ],
    },
    {
      name: "signalbox_uptime_seconds",
      description: "",
      unit: "s",
      kind: "gauge",
      points: [{ attributes: [], value: -1 }],
    },
    {
      name: "gen_ai.client.token.usage",
      description: "Tokens.",
      unit: "{token}",
      kind: "histogram",
      bounds: [1, 4, 16],
      points: [
        { attributes: [["gen_ai.token.type", "input"]], counts: new Float64Array([1, 0, 2 ** 33, 3]), sum: 99.5 },
      ],
    },
  ],
};

test.each(ENCODINGS)("metrics in %s", (_name, encoding) => {
  const read = definitions.read("metrics", encoding.contentType, encoding.metrics(ORIGIN, BATCH));
  const times = {
    startTimeUnixNano: `${START_US}000`,
    timeUnixNano: `${START_US + 60_000_000}000`,
  };
  expect(metricsOf((read.resourceMetrics as object[])[0] as never)).toMatchObject([
    {
      name: "signalbox_requests_total",
      unit: "1",
      kind: "sum",
      aggregationTemporality: 2,
      isMonotonic: true,
      points: [
        { ...times, attributes: { status: "200" }, asDouble: 2 ** 40 },
        { ...times, attributes: {}, asDouble: 0.5 },
      ],
    },
    { name: "signalbox_uptime_seconds", unit: "s", kind: "gauge", points: [{ asDouble: -1 }] },
    {
      name: "gen_ai.client.token.usage",
      unit: "{token}",
      kind: "histogram",
      aggregationTemporality: 2,
      points: [
        {
          ...times,
          attributes: { "gen_ai.token.type": "input" },
          count: String(2 ** 33 + 4),
          sum: 99.5,
          bucketCounts: ["1", "0", String(2 ** 33), "3"],
          explicitBounds: [1, 4, 16],
        },
      ],
    },
  ]);
});

test("both encodings say the same", () => {
  for (const signal of ["traces", "metrics"] as const) {
    const [first, second] = ENCODINGS.map(([, encoding]) => {
      const body = signal === "traces" ? written(encoding, [SPAN, PLAIN]) : encoding.metrics(ORIGIN, BATCH);
      return definitions.read(signal, encoding.contentType, body);
    });
    // Protocol buffers leave out what is empty.
    const lengthOf = (value: unknown) =>
      JSON.stringify(value, (_key, each) => (isEmpty(each) ? undefined : each)).length;
    expect(lengthOf(first)).toBe(lengthOf(second));
  }
});

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

test("a lone surrogate of a client's model does not make an export unreadable", () => {
  const attributes = [["gen_ai.request.model", "\udc00"] as const];
  const span = { ...PLAIN, alike: { ...PLAIN.alike, name: "chat \ud800x", attributes, bytes: undefined } };
  for (const [, encoding] of ENCODINGS) {
    const read = definitions.read("traces", encoding.contentType, written(encoding, [span]));
    expect(spansOf((read.resourceSpans as object[])[0] as never)[0]).toMatchObject({
      name: "chat \ufffdx",
      attributes: { "gen_ai.request.model": "\ufffd" },
    });
  }
});

test.each(ENCODINGS)("what a receiver has not taken, in %s", (name, encoding) => {
  const answer = (told: object) =>
    name === "JSON" ? new TextEncoder().encode(JSON.stringify(told)) : definitions.answer("traces", told);
  const partialSuccess = { rejectedSpans: 300, errorMessage: "zu groß" };
  expect(encoding.partialSuccess(answer({ partialSuccess }))).toEqual({ rejected: 300, message: "zu groß" });
  expect(encoding.partialSuccess(answer({ partialSuccess: { errorMessage: "slow down" } }))).toEqual({
    rejected: 0,
    message: "slow down",
  });
  expect(encoding.partialSuccess(answer({}))).toBeUndefined();
  for (const garbage of ["", "<html>", "\x0a\xff", "\x0a\x05\x08", "{", '{"partialSuccess":7}']) {
    expect(encoding.partialSuccess(Buffer.from(garbage, "latin1"))).toBeUndefined();
  }
});

test("lengths of every size of varint are written right, and the buffer serves again", () => {
  for (const size of [0, 1, 127, 128, 129, 16_383, 16_384, 70_000, 2_097_152]) {
    const span = { ...PLAIN, alike: { ...PLAIN.alike, name: "n".repeat(size), bytes: undefined } };
    const read = definitions.read("traces", protobuf.contentType, written(protobuf, [span, PLAIN]));
    expect(spansOf((read.resourceSpans as object[])[0] as never)[0]?.name.length).toBe(size);
  }
  const writer = new ProtobufWriter();
  writer.string(1, "ab");
  expect([...writer.take()]).toEqual([10, 2, 97, 98]);
  expect(writer.take()).toHaveLength(0);
});

/** Numbers around every place where the length of something changes. */
const EDGES = [
  0,
  1,
  127,
  128,
  16_383,
  16_384,
  2 ** 21 - 1,
  2 ** 21,
  2 ** 28,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 35,
  2 ** 42 + 5,
];

test("random spans are read as they were meant, whatever comes between the taking of them", () => {
  let seed = 7;
  const below = (limit: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % limit;
  };
  const oneOf = <Value>(values: readonly Value[]) => values[below(values.length)] as Value;
  const maybe = <Value>(value: Value) => (below(2) === 0 ? undefined : value);
  const text = () => oneOf(["a", "größe", "🚦", "\u0000", "x".repeat(oneOf([1, 60, 127, 128, 300]))]).repeat(below(4));
  const hex = (digits: number) => Array.from({ length: digits }, () => below(16).toString(16)).join("");
  const number = () => oneOf(EDGES);
  const alikes = Array.from({ length: 20 }, () => ({
    name: text(),
    kind: oneOf([2, 3] as const),
    isError: below(2) === 0,
    attributes: Array.from({ length: below(5) }, (_, each) => {
      return [`a${each}`, oneOf([text(), number(), true, false, [text(), text()]])] as const;
    }),
    bytes: undefined,
  }));
  const random = (): OtlpSpan => ({
    traceId: hex(32),
    spanId: hex(16),
    parentSpanId: maybe(hex(16)),
    traceState: maybe("k=v"),
    flags: below(4),
    startUs: START_US + number(),
    endUs: START_US + 2 ** 43 + number(),
    alike: oneOf(alikes),
    requestId: maybe(`id-${text()}`),
    firstChunkMs: maybe(number() / 8),
    usage: maybe({
      input: { total: number(), cacheRead: maybe(number()), cacheWrite: maybe(number()) },
      output: { total: number(), reasoning: maybe(number()) },
    } as OtlpSpan["usage"]),
    events: below(4) > 0 ? [] : [{ name: "e", atUs: START_US + number(), attributes: [["t", text()]] }],
  });
  const inProtobuf = protobuf.spans(ORIGIN);
  const inJson = jsonEncoding.spans(ORIGIN);
  for (let round = 0; round < 60; round++) {
    const spans = Array.from({ length: below(40) }, random);
    for (const span of spans) for (const writer of [inProtobuf, inJson]) writer.add(span);
    const [first, second] = [inProtobuf, inJson].map((writer, which) => {
      const { contentType } = which === 0 ? protobuf : jsonEncoding;
      return spansOf((definitions.read("traces", contentType, writer.take()).resourceSpans as object[])[0] as never);
    });
    expect(first?.length).toBe(spans.length);
    for (const [each, span] of spans.entries()) {
      const read = first?.[each];
      expect({
        ...read,
        parentSpanId: read?.parentSpanId || undefined,
        traceState: read?.traceState || undefined,
      }).toEqual({
        ...second?.[each],
        parentSpanId: second?.[each]?.parentSpanId || undefined,
        traceState: second?.[each]?.traceState || undefined,
      } as never);
      expect(read).toMatchObject({
        ...{ traceId: span.traceId, spanId: span.spanId, flags: span.flags, name: span.alike.name },
        ...{ startNs: BigInt(span.startUs) * 1000n, endNs: BigInt(span.endUs) * 1000n },
      });
      expect(read?.attributes["gen_ai.usage.input_tokens"] as number | undefined).toBe(span.usage?.input.total);
    }
  }
});
