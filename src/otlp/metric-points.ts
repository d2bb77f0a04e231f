// The metrics of the registry as OTLP has them. What the conventions for generative AI name has their names; everything else
// has the names of GET /metrics, so that a receiver which writes them for Prometheus writes the same.

import type { Backend } from "../backends/backend.ts";
import type { Instrument } from "../metrics/instruments.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { LabelPairs, MetricFamily } from "../metrics/registry.ts";
import { addressOf, providerOf } from "./attributes.ts";
import type { Attributes, NumberPoint, OtlpMetric } from "./data.ts";

const ATTRIBUTE_NAMES: ReadonlyMap<string, string> = new Map([
  ["gen_ai_operation_name", "gen_ai.operation.name"],
  ["gen_ai_request_model", "gen_ai.request.model"],
  ["gen_ai_token_type", "gen_ai.token.type"],
  ["error_type", "error.type"],
]);

/** Metrics of the conventions: their name, and their unit as UCUM has it. */
const CONVENTIONAL: ReadonlyMap<Instrument, { name: string; unit: string }> = new Map<
  Instrument,
  { name: string; unit: string }
>([
  [INSTRUMENTS.requestDuration, { name: "gen_ai.server.request.duration", unit: "s" }],
  [INSTRUMENTS.timeToFirstToken, { name: "gen_ai.server.time_to_first_token", unit: "s" }],
  [INSTRUMENTS.timePerOutputToken, { name: "gen_ai.server.time_per_output_token", unit: "s" }],
  [INSTRUMENTS.tokenUsage, { name: "gen_ai.client.token.usage", unit: "{token}" }],
]);

/** The same requests from the other side: the gateway is a client of the backends that it asks for them. */
const AS_CLIENT: ReadonlyMap<Instrument, string> = new Map<Instrument, string>([
  [INSTRUMENTS.requestDuration, "gen_ai.client.operation.duration"],
]);

/** Undefined for one that is not known any more. */
type BackendNamed = (name: string) => Backend | undefined;

/** None for a family without points: OTLP asks senders to leave them out. */
export function metricsOf(family: MetricFamily, backendNamed: BackendNamed): OtlpMetric[] {
  const { instrument, numbers, histograms } = family;
  const conventional = CONVENTIONAL.get(instrument);
  const attributesOf = (pairs: LabelPairs) => [
    ...attributesOfLabels(pairs),
    ...(conventional === undefined ? [] : ofBackend(pairs, backendNamed)),
  ];
  const head = {
    name: conventional?.name ?? instrument.name,
    description: instrument.help,
    unit: conventional?.unit ?? unitOf(instrument.name),
  };
  if (instrument.type !== "histogram") {
    const points: NumberPoint[] = numbers
      .filter(({ value }) => Number.isFinite(value))
      .map(({ pairs, value }) => ({ attributes: attributesOf(pairs), value }));
    return points.length === 0 ? [] : [{ ...head, kind: instrument.type === "counter" ? "sum" : "gauge", points }];
  }
  if (histograms.length === 0) return [];
  const bounds = instrument.buckets ?? [];
  const points = histograms.map(({ pairs, counts, sum }) => {
    // A copy: counts that grow while this is sent belong to the next time.
    return { attributes: attributesOf(pairs), counts: counts.slice(), sum };
  });
  const metric: OtlpMetric = { ...head, kind: "histogram", bounds, points };
  const asClient = AS_CLIENT.get(instrument);
  if (asClient === undefined) return [metric];
  const asked = points.filter((_point, index) => labelOf(histograms[index]?.pairs ?? [], "backend") !== "");
  if (asked.length === 0) return [metric];
  const description = "Time of a request that a backend was asked for, with all attempts.";
  return [metric, { ...metric, name: asClient, description, points: asked }];
}

function attributesOfLabels(pairs: LabelPairs): Attributes {
  return pairs
    .filter(([, value]) => value !== "")
    .map(([name, value]) => [ATTRIBUTE_NAMES.get(name) ?? name, value] as const);
}

function labelOf(pairs: LabelPairs, wanted: string): string {
  return pairs.find(([name]) => name === wanted)?.[1] ?? "";
}

/** Attributes of the backend that the conventions want. */
function ofBackend(pairs: LabelPairs, backendNamed: BackendNamed): Attributes {
  const backend = backendNamed(labelOf(pairs, "backend"));
  return backend === undefined ? [] : [["gen_ai.provider.name", providerOf(backend)], ...addressOf(backend)];
}

function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return "s";
  return /_bytes(_total)?$/.test(name) ? "By" : "1";
}
