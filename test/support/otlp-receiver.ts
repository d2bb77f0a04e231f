// A receiver of OTLP for tests: takes what gateways send over real sockets, reads it by the official definitions, and answers
// as the specification says, or as a test wants it to.

import { type Decoded, type OtlpDefinitions, type OtlpSignal, otlpDefinitions } from "./otlp-definitions.ts";
import { waitFor } from "./wait-for.ts";

export type Value = string | number | boolean | readonly string[];

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  traceState: string | undefined;
  name: string;
  kind: "server" | "client";
  flags: number;
  startNs: bigint;
  endNs: bigint;
  isError: boolean;
  attributes: Record<string, Value>;
  events: { name: string; attributes: Record<string, Value> }[];
}

export interface ReceivedMetric {
  name: string;
  unit: string;
  kind: "sum" | "gauge" | "histogram";
  aggregationTemporality: number | undefined;
  isMonotonic: boolean | undefined;
  points: {
    attributes: Record<string, Value>;
    startTimeUnixNano: string;
    timeUnixNano: string;
    asDouble: number;
    count: string;
    sum: number;
    bucketCounts: string[];
    explicitBounds: number[];
  }[];
}

interface Received {
  signal: OtlpSignal;
  headers: Headers;
  bytes: number;
  resource: Record<string, Value>;
  atMs: number;
}

type Fault = (request: Request, count: number) => Response | Promise<Response> | undefined;

export class OtlpReceiver {
  spans: ReceivedSpan[] = [];
  /** Of the latest export. */
  metrics: ReceivedMetric[] = [];
  readonly requests: Received[] = [];
  /** Asked first, with how many came before. */
  fault: Fault = () => undefined;
  #seen = 0;
  readonly #definitions: OtlpDefinitions;
  #server: Bun.Server<undefined> | undefined;
  #port = 0;

  static async start(): Promise<OtlpReceiver> {
    return new OtlpReceiver(await otlpDefinitions());
  }

  private constructor(definitions: OtlpDefinitions) {
    this.#definitions = definitions;
    this.listen();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** After stop() on the same port again. */
  listen(): void {
    this.#server = Bun.serve({
      port: this.#port,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      fetch: (request) => this.#receive(request),
    });
    this.#port = this.#server.port as number;
  }

  async stop(): Promise<void> {
    await this.#server?.stop(true);
  }

  reset(): void {
    this.spans = [];
    this.metrics = [];
    this.requests.length = 0;
    this.#seen = 0;
    this.fault = () => undefined;
  }

  /** Spans of one request: its own first, then its attempts as they came. */
  async trace(count: number, which: (span: ReceivedSpan) => boolean = () => true): Promise<ReceivedSpan[]> {
    await waitFor(`${count} spans arrive`, () => this.spans.filter(which).length >= count, {
      explain: () => JSON.stringify(this.spans.map(({ name, kind }) => [name, kind])),
    });
    const found = this.spans.filter(which);
    if (found.length !== count) throw new Error(`${found.length} spans instead of ${count}`);
    return found.sort((a, b) => (a.kind === b.kind ? Number(a.startNs - b.startNs) : a.kind === "server" ? -1 : 1));
  }

  async #receive(request: Request): Promise<Response> {
    const fault = await this.fault(request, this.#seen++);
    if (fault !== undefined) return fault;
    const { pathname } = new URL(request.url);
    const signal = /\/v1\/(traces|metrics)$/.exec(pathname)?.[1] as OtlpSignal | undefined;
    if (request.method !== "POST" || signal === undefined) return new Response("no such path", { status: 404 });
    const sent = new Uint8Array(await request.arrayBuffer());
    const body = request.headers.get("content-encoding") === "gzip" ? Bun.gunzipSync(sent) : sent;
    const contentType = request.headers.get("content-type");
    const told = this.#definitions.read(signal, contentType, body);
    const { headers } = request;
    const [resource] = signal === "traces" ? list(told.resourceSpans) : list(told.resourceMetrics);
    const of = attributesOf((resource?.resource as Decoded | undefined)?.attributes);
    this.requests.push({ signal, headers, bytes: sent.length, resource: of, atMs: performance.now() });
    if (signal === "traces") this.spans.push(...list(told.resourceSpans).flatMap(spansOf));
    else this.metrics = list(told.resourceMetrics).flatMap(metricsOf);
    return contentType === "application/json"
      ? Response.json({})
      : new Response(this.#definitions.answer(signal, {}) as Uint8Array<ArrayBuffer>, {
          headers: { "Content-Type": "application/x-protobuf" },
        });
  }

  /** What a receiver says that has not taken everything. */
  partialAnswer(signal: OtlpSignal, rejected: number, errorMessage: string): Response {
    const partialSuccess =
      signal === "traces" ? { rejectedSpans: rejected, errorMessage } : { rejectedDataPoints: rejected, errorMessage };
    return new Response(this.#definitions.answer(signal, { partialSuccess }) as Uint8Array<ArrayBuffer>, {
      headers: { "Content-Type": "application/x-protobuf" },
    });
  }
}

function list(value: unknown): Decoded[] {
  return Array.isArray(value) ? (value as Decoded[]) : [];
}

export function spansOf(resource: Decoded): ReceivedSpan[] {
  return list(resource.scopeSpans)
    .flatMap(({ spans }) => list(spans))
    .map((span) => ({
      traceId: String(span.traceId),
      spanId: String(span.spanId),
      parentSpanId: span.parentSpanId as string | undefined,
      traceState: span.traceState as string | undefined,
      name: String(span.name),
      kind: span.kind === 2 ? "server" : "client",
      flags: Number(span.flags),
      startNs: BigInt(span.startTimeUnixNano as string),
      endNs: BigInt(span.endTimeUnixNano as string),
      isError: (span.status as Decoded | undefined)?.code === 2,
      attributes: attributesOf(span.attributes),
      events: list(span.events).map(({ name, attributes }) => ({
        name: String(name),
        attributes: attributesOf(attributes),
      })),
    }));
}

export function metricsOf(resource: Decoded): ReceivedMetric[] {
  return list(resource.scopeMetrics)
    .flatMap(({ metrics }) => list(metrics))
    .map((metric) => {
      const kind = (["sum", "gauge", "histogram"] as const).find((name) => metric[name] !== undefined);
      if (kind === undefined) throw new Error(`metric ${String(metric.name)} has no data`);
      const data = metric[kind] as Decoded;
      return {
        name: String(metric.name),
        unit: String(metric.unit),
        kind,
        aggregationTemporality: data.aggregationTemporality as number | undefined,
        isMonotonic: data.isMonotonic as boolean | undefined,
        points: list(data.dataPoints).map((point) => ({ ...point, attributes: attributesOf(point.attributes) })),
      } as ReceivedMetric;
    });
}

function attributesOf(pairs: unknown): Record<string, Value> {
  const read = list(pairs).map(({ key, value }) => [String(key), anyValueOf(value as Decoded)] as const);
  if (new Set(read.map(([key]) => key)).size !== read.length)
    throw new Error(`attributes twice: ${JSON.stringify(read)}`);
  return Object.fromEntries(read);
}

function anyValueOf({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Decoded): Value {
  if (arrayValue !== undefined) return list((arrayValue as Decoded).values).map((value) => String(anyValueOf(value)));
  if (intValue !== undefined) return Number(intValue);
  return (stringValue ?? boolValue ?? doubleValue) as Value;
}
