// Holds the series of all metrics and writes them: as Prometheus text (version 0.0.4) and as samples for the history.
// Own code, because a request touches about ten series: a held series costs one addition here, and a hash of its labels
// in prom-client (docs/decisions/0019).

import { getOrMake } from "../lib/get-or-make.ts";
import { otherWork } from "../lib/other-work.ts";
import { OTHER } from "../stats/counted.ts";
import { INSTRUMENTS, type Instrument } from "./instruments.ts";

type SampleKind = "counter" | "gauge" | "histogram_sum" | "histogram_count" | "histogram_bucket";

/** One number at one moment, as the history keeps it. */
export interface MetricSample {
  /** Name of the family, without _sum, _count or _bucket. */
  metric: string;
  /** JSON with sorted keys. */
  labels: string;
  value: number;
  kind: SampleKind;
}

/** A value read on demand, with its labels in the order of the instrument. */
export interface MetricReading {
  labels: readonly string[];
  value: number;
}

/** Most label combinations of one metric; what comes beyond is counted as "(other)". */
export const MAX_SERIES = 2_000;

const SERIES_PER_STEP = 200;

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

class MetricSeries {
  readonly pairs: LabelPairs;
  readonly text: string;

  constructor(instrument: Instrument, values: readonly string[]) {
    this.pairs = pairsOf(instrument, values);
    this.text = labelText(this.pairs);
  }
}

/** A number that grows; add to `value` directly. */
export class Counter extends MetricSeries {
  value = 0;
}

export class Histogram extends MetricSeries {
  readonly counts: Float64Array;
  sum = 0;
  readonly #bounds: readonly number[];

  constructor(instrument: Instrument, values: readonly string[]) {
    super(instrument, values);
    this.#bounds = instrument.buckets ?? [];
    this.counts = new Float64Array(this.#bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += value;
  }
}

export type LabelPairs = readonly (readonly [name: string, value: string])[];

/** All series of one metric, of which it has the one kind or the other. */
export interface MetricFamily {
  instrument: Instrument;
  numbers: readonly { pairs: LabelPairs; value: number }[];
  histograms: readonly { pairs: LabelPairs; counts: Float64Array; sum: number }[];
}

/** The series of each metric, by their label values. */
type Families<Kind> = Map<Instrument, Map<string, Kind>>;

export class MetricsRegistry {
  readonly #counters: Families<Counter> = new Map();
  readonly #histograms: Families<Histogram> = new Map();
  readonly #readers = new Map<Instrument, () => Iterable<MetricReading>>();
  #overflow = 0;

  /** The series of these label values, to be held by its writer. */
  counter(instrument: Instrument & { type: "counter" }, ...values: string[]): Counter {
    return this.#series(this.#counters, instrument, values, Counter);
  }

  histogram(instrument: Instrument & { type: "histogram" }, ...values: string[]): Histogram {
    return this.#series(this.#histograms, instrument, values, Histogram);
  }

  /** A metric that is read on demand, and costs nothing until then. */
  read(instrument: Instrument, reader: () => Iterable<MetricReading>): void {
    this.#readers.set(instrument, reader);
  }

  #series<Kind>(
    families: Families<Kind>,
    instrument: Instrument,
    values: readonly string[],
    Kind: new (instrument: Instrument, values: readonly string[]) => Kind,
  ): Kind {
    const family = getOrMake(families, instrument, () => new Map<string, Kind>());
    const known = family.get(values.join("\u0000"));
    if (known !== undefined) return known;
    const isTooMany = family.size >= MAX_SERIES;
    if (isTooMany) this.#overflow++;
    const shown = isTooMany ? values.map(() => OTHER) : values;
    return getOrMake(family, shown.join("\u0000"), () => new Kind(instrument, shown));
  }

  /** Prometheus text format. Pauses between series, because many would hold the event loop for too long in one go. */
  async expose(): Promise<string> {
    const parts: string[] = [];
    let sincePause = 0;
    for (const instrument of Object.values<Instrument>(INSTRUMENTS)) {
      const { name, type, help } = instrument;
      let hasHead = false;
      for (const lines of this.#lines(instrument)) {
        if (!hasHead) parts.push(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
        hasHead = true;
        parts.push(lines);
        if (++sincePause < SERIES_PER_STEP) continue;
        sincePause = 0;
        await otherWork();
      }
    }
    return parts.join("");
  }

  /** The lines of one series after the other. */
  *#lines(instrument: Instrument): Generator<string> {
    const { name } = instrument;
    for (const { text, value } of this.#values(instrument)) yield `${name}${braced(text)} ${numberText(value)}\n`;
    for (const { text, counts, sum } of this.#histograms.get(instrument)?.values() ?? []) {
      const comma = text === "" ? "" : ",";
      let lines = "";
      let cumulative = 0;
      for (const [bucket, count] of counts.entries()) {
        cumulative += count;
        lines += `${name}_bucket{${text}${comma}le="${bound(instrument, bucket)}"} ${cumulative}\n`;
      }
      yield `${lines}${name}_sum${braced(text)} ${numberText(sum)}\n${name}_count${braced(text)} ${cumulative}\n`;
    }
  }

  /** The same as samples, one by one, so that the taker may pause in between. */
  *samples(): Generator<MetricSample> {
    for (const instrument of Object.values<Instrument>(INSTRUMENTS)) {
      const metric = instrument.name;
      const kind = instrument.type === "counter" ? "counter" : "gauge";
      for (const { pairs, value } of this.#values(instrument)) {
        if (Number.isFinite(value)) yield { metric, labels: canonical(pairs), value, kind };
      }
      for (const { pairs, counts, sum } of this.#histograms.get(instrument)?.values() ?? []) {
        let cumulative = 0;
        for (const [bucket, count] of counts.entries()) {
          cumulative += count;
          const labels = canonical([...pairs, ["le", bound(instrument, bucket)]]);
          yield { metric, labels, value: cumulative, kind: "histogram_bucket" };
        }
        const labels = canonical(pairs);
        yield { metric, labels, value: sum, kind: "histogram_sum" };
        yield { metric, labels, value: cumulative, kind: "histogram_count" };
      }
    }
  }

  /** One metric after the other, so that the taker may pause in between. */
  *families(): Generator<MetricFamily> {
    for (const instrument of Object.values<Instrument>(INSTRUMENTS)) {
      const histograms = [...(this.#histograms.get(instrument)?.values() ?? [])];
      yield { instrument, numbers: [...this.#values(instrument)], histograms };
    }
  }

  *#values(instrument: Instrument): Generator<{ text: string; pairs: LabelPairs; value: number }> {
    if (instrument === INSTRUMENTS.seriesDropped) yield { text: "", pairs: [], value: this.#overflow };
    yield* this.#counters.get(instrument)?.values() ?? [];
    const reader = this.#readers.get(instrument);
    if (reader === undefined) return;
    for (const { labels, value } of readSafely(reader)) {
      const pairs = pairsOf(instrument, labels);
      yield { text: labelText(pairs), pairs, value };
    }
  }
}

/** One source in trouble must not take the whole scrape with it. */
function readSafely(reader: () => Iterable<MetricReading>): MetricReading[] {
  const readings: MetricReading[] = [];
  try {
    for (const reading of reader()) {
      if (readings.length >= MAX_SERIES) break;
      readings.push(reading);
    }
  } catch {
    return []; // the family is missing from this scrape, which is how Prometheus learns of it
  }
  return readings;
}

function pairsOf({ labels }: Instrument, values: readonly string[]): LabelPairs {
  return labels.map((name, index) => [name, (values[index] ?? "").toWellFormed()]);
}

function labelText(pairs: LabelPairs): string {
  return pairs.map(([name, value]) => `${name}="${escaped(value)}"`).join(",");
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function braced(text: string): string {
  return text === "" ? "" : `{${text}}`;
}

function canonical(pairs: LabelPairs): string {
  const sorted = [...pairs].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(sorted));
}

function bound({ buckets = [] }: Instrument, bucket: number): string {
  const upper = buckets[bucket];
  return upper === undefined ? "+Inf" : String(upper);
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}
