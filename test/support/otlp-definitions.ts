// The official definitions of OTLP: the code that protobufjs has generated from opentelemetry-proto for OpenTelemetry's own
// exporters, as npm has it.

import { join } from "node:path";
import { installedPackage, OTLP_DEFINITIONS } from "../../scripts/npm-programs.ts";

interface MessageType {
  decode(bytes: Uint8Array): object;
  encode(message: object): { finish(): Uint8Array };
  /** Undefined (null) for an object that the definition allows. */
  verify(object: object): string | null;
  fromObject(object: object): object;
  toObject(message: object, options: object): Record<string, unknown>;
}

export interface Decoded {
  [member: string]: unknown;
}

export type OtlpSignal = "traces" | "metrics";

const TO_OBJECT = { longs: String, bytes: Array, arrays: false };
/** Members that JSON writes in hexadecimal digits, and protocol buffers as bytes. */
const IDS = ["traceId", "spanId", "parentSpanId"];

export type OtlpDefinitions = Awaited<ReturnType<typeof otlpDefinitions>>;

export async function otlpDefinitions() {
  const folder = await installedPackage(OTLP_DEFINITIONS);
  const { opentelemetry } = (await import(join(folder, "build/src/generated/root.js"))).default;
  const { trace, metrics } = opentelemetry.proto.collector;
  const requests: Record<OtlpSignal, MessageType> = {
    traces: trace.v1.ExportTraceServiceRequest,
    metrics: metrics.v1.ExportMetricsServiceRequest,
  };
  const responses: Record<OtlpSignal, MessageType> = {
    traces: trace.v1.ExportTraceServiceResponse,
    metrics: metrics.v1.ExportMetricsServiceResponse,
  };
  return {
    /** A request in either encoding, with ids as hexadecimal digits and numbers of 64 bits as text. */
    read(signal: OtlpSignal, contentType: string | null, body: Uint8Array): Decoded {
      const type = requests[signal];
      if (contentType === "application/x-protobuf") return plain(type.toObject(type.decode(body), TO_OBJECT));
      if (contentType !== "application/json") throw new Error(`content type ${contentType}`);
      const object = withBytes(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body))) as object;
      return plain(type.toObject(type.fromObject(object), TO_OBJECT));
    },
    answer(signal: OtlpSignal, answer: object): Uint8Array {
      const type = responses[signal];
      return type.encode(type.fromObject(answer)).finish();
    },
  };
}

function plain(value: unknown): Decoded {
  return JSON.parse(
    JSON.stringify(value, (key, member: unknown) =>
      IDS.includes(key) && Array.isArray(member) ? Buffer.from(member as number[]).toString("hex") : member,
    ),
  ) as Decoded;
}

function withBytes(value: unknown, key = ""): unknown {
  if (typeof value === "string" && IDS.includes(key)) return Buffer.from(value, "hex");
  if (Array.isArray(value)) return value.map((entry) => withBytes(entry));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withBytes(member, name)]));
}
