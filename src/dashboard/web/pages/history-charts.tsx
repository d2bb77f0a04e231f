// Charts of any time, from the metrics history, with what happened meanwhile as markers.

import { useSignal } from "@preact/signals";
import type { ConfigHistory } from "../../../admin/config-schemas.ts";
import type { SeriesReport } from "../../../admin/metrics-history.ts";
import { useApp } from "../app/context.ts";
import { type Resource, useResource } from "../app/resource.ts";
import { count, dateTime, duration, money, rate } from "../format.ts";
import { type ChartMarker, circuitMarkers, configMarkers, healthMarkers, markersOf } from "../markers.ts";
import { Chart, type ChartProps } from "../parts/chart.tsx";
import { Notice } from "../parts/notice.tsx";
import type { ChartLine } from "../parts/plot.ts";
import { Table } from "../parts/table.tsx";
import { linesOf, timesOf } from "../reports.ts";
import { rangeLabel, type Span, zoomed } from "../time-range.ts";

interface HistoryChart {
  title: string;
  metric: string;
  /** Parameters of GET /admin/metrics/series besides metric and times. */
  query?: Readonly<Record<string, string>>;
  format(value: number): string;
  lines(report: SeriesReport): ChartLine[];
}

const NOTHING_YET: SeriesReport = { metric: "", from_ms: 0, to_ms: 0, step_ms: 1, kind: null, series: [] };
const SECOND = 1_000;
/** Over the width of a chart; what is nearer is one marker. */
const MOST_MARKERS = 40;

const quantile = (share: string) => (labels: Readonly<Record<string, string>>) => labels.quantile === share;
const inMs = (seconds: number) => seconds * SECOND;

const CHARTS: readonly HistoryChart[] = [
  {
    title: "Requests per second",
    metric: "signalbox_requests_total",
    query: { by: "status", limit: "100" },
    format: rate,
    lines: (report) => [
      { name: "all", look: "first", values: linesOf(report) },
      { name: "4xx", look: "second", values: linesOf(report, ({ status }) => /^4(?!99)/.test(status ?? "")) },
      { name: "5xx", look: "bad", values: linesOf(report, ({ status }) => status?.startsWith("5") === true) },
    ],
  },
  {
    title: "Latency",
    metric: "gen_ai_server_request_duration_seconds",
    format: duration,
    lines: (report) => [
      { name: "median", look: "first", values: linesOf(report, quantile("0.5"), inMs) },
      { name: "p95", look: "second", values: linesOf(report, quantile("0.95"), inMs) },
    ],
  },
  {
    title: "Time to first token",
    metric: "gen_ai_server_time_to_first_token_seconds",
    format: duration,
    lines: (report) => [
      { name: "median", look: "first", values: linesOf(report, quantile("0.5"), inMs) },
      { name: "p95", look: "second", values: linesOf(report, quantile("0.95"), inMs) },
    ],
  },
  {
    title: "Tokens per second",
    metric: "signalbox_tokens_total",
    query: { by: "type" },
    format: rate,
    lines: (report) => [
      { name: "out", look: "first", values: linesOf(report, ({ type }) => type === "output") },
      { name: "in", look: "second", values: linesOf(report, ({ type }) => type === "input") },
    ],
  },
  {
    title: "Cost per hour",
    metric: "signalbox_cost_total",
    format: money,
    lines: (report) => [
      { name: "all models", look: "first", values: linesOf(report, undefined, (perSecond) => perSecond * 3_600) },
    ],
  },
  {
    title: "Requests in flight at backends",
    metric: "signalbox_backend_requests_in_flight",
    format: count,
    lines: (report) => [{ name: "all backends", look: "first", values: linesOf(report) }],
  },
];

export function pathOfSeries(metric: string, { from, to }: Span, query: Readonly<Record<string, string>> = {}): string {
  const range = { metric, from: String(Math.round(from)), to: String(Math.round(to)), ...query };
  return `admin/metrics/series?${new URLSearchParams(range)}`;
}

export function HistoryCharts() {
  const markers = useMarkers();
  return (
    <div class="charts">
      {CHARTS.map((chart) => (
        <OneChart key={chart.title} chart={chart} markers={markers} />
      ))}
    </div>
  );
}

function OneChart({ chart, markers }: { chart: HistoryChart; markers: readonly ChartMarker[] }) {
  const { title, metric, query, format, lines } = chart;
  const { range } = useApp();
  const report = useResource<SeriesReport>(() => pathOfSeries(metric, range.span.value, query));
  const { value: data } = report.data;
  const { value: error } = report.error;
  if (error !== undefined && data === undefined) return <Notice tone="warn">{`${title}: ${error.message}`}</Notice>;
  const { from, to } = data === undefined ? range.span.value : { from: data.from_ms, to: data.to_ms };
  const times = data === undefined ? [] : timesOf(data);
  const drawn = lines(data ?? NOTHING_YET);
  return (
    <Chart
      title={title}
      format={format}
      times={times}
      span={rangeLabel(range.chosen.value)}
      group="history"
      range={[from, to]}
      markers={markersOf(markers, { from, to }, Math.max(data?.step_ms ?? 1, (to - from) / MOST_MARKERS))}
      lines={drawn}
      below={<ChartNumbers title={title} lines={drawn} times={times} format={format} />}
      onSelect={(first, last) => {
        const part = zoomed(first, last);
        if (part !== undefined) range.choose(part);
      }}
    />
  );
}

type NumbersProps = Pick<ChartProps, "title" | "lines" | "times" | "format">;

interface TimedStep {
  atMs: number;
  step: number;
}

/** What the chart shows, for those who do not see or point. */
function ChartNumbers({ title, lines, times, format }: NumbersProps) {
  const isOpen = useSignal(false);
  const rows = times.map((atMs, step): TimedStep => ({ atMs, step })).toReversed();
  return (
    <details
      class="numbers"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>As a table</summary>
      {isOpen.value && (
        <Table<TimedStep>
          caption={`${title}, the newest first`}
          rows={rows}
          keyOf={({ atMs }) => String(atMs)}
          empty="No samples of this time."
          columns={[
            { title: "Until", cell: ({ atMs }) => dateTime(atMs) },
            ...lines.map(({ name, values }) => ({
              title: name,
              isNumber: true,
              cell: ({ step }: TimedStep) => {
                const value = values[step];
                return value === undefined ? "–" : format(value);
              },
            })),
          ]}
        />
      )}
    </details>
  );
}

/** Changes of the configuration, of circuits and of backends within the time. */
function useMarkers(): ChartMarker[] {
  const { range } = useApp();
  const versions = useResource<ConfigHistory>("admin/config/history?limit=100", { everyMs: 60_000 });
  const circuits = useResource<SeriesReport>(() =>
    pathOfSeries("signalbox_backend_circuit_changes_total", range.span.value, { by: "backend,to", limit: "100" }),
  );
  const backends = useResource<SeriesReport>(() =>
    pathOfSeries("signalbox_backend_up", range.span.value, { by: "backend", limit: "100" }),
  );
  const read = <Answer,>(resource: Resource<Answer>, toMarkers: (answer: Answer) => ChartMarker[]) => {
    const { value } = resource.data;
    return value === undefined ? [] : toMarkers(value);
  };
  return [
    ...read(versions, ({ history }) => configMarkers(history)),
    ...read(circuits, circuitMarkers),
    ...read(backends, healthMarkers),
  ];
}
