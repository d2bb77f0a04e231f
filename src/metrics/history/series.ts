// Charts of the metrics history: the samples of one metric as values at even steps. Counters become rates, histograms
// become quantiles; both count across restarts, and are unknown where no gateway was running.

import { getOrMake } from "../../lib/get-or-make.ts";
import { otherWork } from "../../lib/other-work.ts";
import type { HistoryStore, StoredSample } from "./store.ts";

export interface SeriesQuery {
  metric: string;
  /** Unix milliseconds. */
  fromMs: number;
  toMs: number;
  /** At least; the answer says what it came to. */
  stepMs: number;
  /** Labels that tell the lines apart; values that differ in other labels only are summed. */
  by: readonly string[];
  /** For histograms; each is from 0 to 1. */
  quantiles: readonly number[];
  /** Where two snapshots are further apart, nothing is known of the time between. */
  maxGapMs: number;
  /** Most lines; the largest ones are kept. */
  most: number;
}

interface SeriesLine {
  labels: Record<string, string>;
  /** One for each step; a rate is per second. */
  values: (number | null)[];
}

interface SampledSeries {
  kind: "rate" | "gauge" | "quantile";
  stepMs: number;
  lines: SeriesLine[];
}

/** Samples that are read for one answer; longer steps keep an answer below it. */
const MAX_SAMPLES = 1_000_000;
/** Samples that are read at a time before other work gets its turn. */
const SAMPLES_PER_TURN = 5_000;
const MAX_STEPS = 1_000;

/** By group and bucket; of anything but a histogram there is one bucket. */
type Counts = Map<string, Map<string, number>>;

/** The counts of a step, and for how much of it they are known. */
interface CountedStep {
  counts: Counts;
  knownMs: number;
}

/** Undefined for a metric without samples up to then. Throws StorageError. */
export async function readSeries(store: HistoryStore, query: SeriesQuery): Promise<SampledSeries | undefined> {
  const { metric, fromMs, toMs } = query;
  const { before: newest } = store.momentsAround(metric, toMs);
  if (newest === undefined) return undefined;
  const sample = store.snapshot(metric, newest);
  const stepMs = stepFor(query, sample.length);
  const ends: number[] = [];
  for (let end = fromMs + stepMs; end < toMs; end += stepMs) ends.push(end);
  ends.push(toMs);
  const groups = new SeriesGroups(query.by);
  if (sample[0]?.kind === "gauge") {
    return { kind: "gauge", stepMs, lines: largest(await gaugeLines(store, query, ends, groups), query.most) };
  }
  const steps = counted(store, query, ends, groups);
  const isHistogram = sample[0]?.kind.startsWith("histogram") === true;
  const lines = isHistogram ? await quantileLines(steps, query, groups) : await rateLines(steps, groups);
  return { kind: isHistogram ? "quantile" : "rate", stepMs, lines: largest(lines, query.most) };
}

function stepFor({ fromMs, toMs, stepMs }: SeriesQuery, samples: number): number {
  // Each step may need the snapshots on both sides of its end.
  const most = Math.min(MAX_STEPS, Math.max(1, Math.floor(MAX_SAMPLES / Math.max(1, 2 * samples))));
  return Math.max(stepMs, Math.ceil((toMs - fromMs) / most));
}

/** SeriesGroups samples by some of their labels. */
class SeriesGroups {
  /** Keys are those of the groups. */
  readonly labels = new Map<string, Record<string, string>>();
  readonly #by: readonly string[];
  readonly #places = new Map<number, { group: string; bucket: string }>();

  constructor(by: readonly string[]) {
    this.#by = by;
  }

  /** Undefined for the sum of a histogram, which no quantile needs. */
  placeOf({ series, labels, kind }: StoredSample): { group: string; bucket: string } | undefined {
    if (kind === "histogram_sum" || kind === "histogram_count") return undefined;
    let place = this.#places.get(series);
    if (place === undefined) {
      const all = JSON.parse(labels) as Record<string, string>;
      const own = Object.fromEntries(this.#by.map((name) => [name, all[name] ?? ""]));
      place = { group: JSON.stringify(own), bucket: all.le ?? "" };
      this.labels.set(place.group, own);
      this.#places.set(series, place);
    }
    return place;
  }
}

/** The values of the last snapshot before the end of each step. */
async function gaugeLines(
  store: HistoryStore,
  { metric, maxGapMs }: SeriesQuery,
  ends: readonly number[],
  groups: SeriesGroups,
): Promise<SeriesLine[]> {
  const steps: (Map<string, number> | undefined)[] = [];
  let read = 0;
  for (const end of ends) {
    const { before } = store.momentsAround(metric, end);
    if (before === undefined || end - before > maxGapMs) {
      steps.push(undefined);
      continue;
    }
    const sums = new Map<string, number>();
    const samples = store.snapshot(metric, before);
    for (const sample of samples) {
      const place = groups.placeOf(sample);
      if (place !== undefined) sums.set(place.group, (sums.get(place.group) ?? 0) + sample.value);
    }
    steps.push(sums);
    read += samples.length;
    if (read > SAMPLES_PER_TURN) {
      read = 0;
      await otherWork();
    }
  }
  return [...groups.labels].map(([group, labels]) => ({
    labels,
    values: steps.map((sums) => sums?.get(group) ?? null),
  }));
}

/**
 * The counts of each step. Between two snapshots a counter is assumed to grow evenly, so that the steps together hold exactly
 * what was counted between the first and the last snapshot.
 */
async function* counted(
  store: HistoryStore,
  { metric, fromMs, maxGapMs }: SeriesQuery,
  ends: readonly number[],
  groups: SeriesGroups,
): AsyncGenerator<CountedStep, void> {
  let last: Map<number, number> | undefined;
  let lastMs = 0;
  let step = newStep();
  let index = 0;
  let read = 0;
  const { moments, begun, next } = momentsFor(store, metric, fromMs, ends);
  for (const moment of moments) {
    if (begun.has(moment)) last?.clear();
    const now = new Map<number, number>();
    const growth: { group: string; bucket: string; more: number }[] = [];
    for (const sample of store.snapshot(metric, moment)) {
      const place = groups.placeOf(sample);
      if (place === undefined) continue;
      now.set(sample.series, sample.value);
      const before = last?.get(sample.series) ?? 0;
      // A counter that is lower than before has begun again at 0.
      const more = sample.value >= before ? sample.value - before : sample.value;
      // An empty bucket is the lower bound of the next one.
      if (more > 0 || place.bucket !== "") growth.push({ ...place, more });
    }
    const isGap = next.has(moment) && moment - lastMs > maxGapMs;
    const isKnown = last !== undefined && !isGap;
    for (let fromHere = Math.max(lastMs, fromMs); index < ends.length && fromHere < moment; ) {
      const end = ends[index] as number;
      const toHere = Math.min(moment, end);
      if (isKnown) addTo(step, growth, (toHere - fromHere) / (moment - lastMs), toHere - fromHere);
      if (toHere === end) {
        yield step;
        step = newStep();
        index++;
      }
      fromHere = toHere;
    }
    last = now;
    lastMs = moment;
    read += now.size;
    if (read > SAMPLES_PER_TURN) {
      read = 0;
      await otherWork();
    }
  }
  for (; index < ends.length; index++) {
    yield step;
    step = newStep();
  }
}

function newStep(): CountedStep {
  return { counts: new Map(), knownMs: 0 };
}

function addTo(
  step: CountedStep,
  growth: readonly { group: string; bucket: string; more: number }[],
  share: number,
  knownMs: number,
): void {
  step.knownMs += knownMs;
  for (const { group, bucket, more } of growth) {
    const buckets = getOrMake(step.counts, group, () => new Map<string, number>());
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + more * share);
  }
}

/**
 * The snapshots on both sides of the end of each step and of each restart. `begun` are those behind a restart, where counters
 * have begun at 0; `next` are those that follow the snapshot before them directly, so that their distance may be a gap.
 */
function momentsFor(store: HistoryStore, metric: string, fromMs: number, ends: readonly number[]) {
  const around = [fromMs, ...ends].map((end) => store.momentsAround(metric, end));
  const known = around.flatMap(({ before, after }) => [before, after]).filter((moment) => moment !== undefined);
  const restarts = store.restarts(Math.min(...known), Math.max(...known));
  const moments = new Set([...known, ...restarts.flatMap(({ before, after }) => [before, after])]);
  return {
    moments: [...moments].sort((left, right) => left - right),
    begun: new Set(restarts.map(({ after }) => after)),
    next: new Set([...around, ...restarts].flatMap(({ before, after }) => (before === undefined ? [] : [after]))),
  };
}

async function rateLines(steps: AsyncIterable<CountedStep>, groups: SeriesGroups): Promise<SeriesLine[]> {
  const rates: (Map<string, number> | undefined)[] = [];
  for await (const { counts, knownMs } of steps) {
    const perSecond = ([group, buckets]: [string, Map<string, number>]): [string, number] => {
      return [group, (buckets.get("") ?? 0) / (knownMs / 1_000)];
    };
    rates.push(knownMs > 0 ? new Map([...counts].map(perSecond)) : undefined);
  }
  return [...groups.labels].map(([group, labels]) => ({
    labels,
    values: rates.map((step) => (step === undefined ? null : (step.get(group) ?? 0))),
  }));
}

async function quantileLines(
  steps: AsyncIterable<CountedStep>,
  { quantiles }: SeriesQuery,
  groups: SeriesGroups,
): Promise<SeriesLine[]> {
  const perStep: Map<string, (number | null)[]>[] = [];
  for await (const { counts } of steps) {
    perStep.push(
      new Map(
        [...counts].map(([group, buckets]) => [group, quantiles.map((quantile) => quantileOf(buckets, quantile))]),
      ),
    );
  }
  return [...groups.labels].flatMap(([group, labels]) =>
    quantiles.map((quantile, index) => ({
      labels: { ...labels, quantile: String(quantile) },
      values: perStep.map((step) => step.get(group)?.[index] ?? null),
    })),
  );
}

/**
 * As Prometheus' histogram_quantile(): within a bucket values are taken to lie evenly; above the highest bound it is that bound.
 * @param buckets - cumulative counts by the text of their upper bound
 */
export function quantileOf(buckets: ReadonlyMap<string, number>, quantile: number): number | null {
  const sorted = [...buckets].map(([le, count]) => ({
    bound: le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le),
    count,
  }));
  sorted.sort((left, right) => left.bound - right.bound);
  const total = sorted.at(-1)?.count ?? 0;
  if (total === 0) return null;
  const rank = quantile * total;
  let [belowBound, belowCount] = [0, 0];
  for (const { bound, count } of sorted) {
    if (count >= rank && count > belowCount) {
      if (bound === Number.POSITIVE_INFINITY) return belowBound;
      return belowBound + (bound - belowBound) * ((rank - belowCount) / (count - belowCount));
    }
    [belowBound, belowCount] = [bound, count];
  }
  return belowBound;
}

function largest(lines: readonly SeriesLine[], most: number): SeriesLine[] {
  const sumOf = ({ values }: SeriesLine) => values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  return lines
    .map((line) => ({ line, sum: sumOf(line) }))
    .sort((left, right) => right.sum - left.sum)
    .slice(0, most)
    .map(({ line }) => line);
}
