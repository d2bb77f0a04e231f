// The last minutes on the overview, as charts and as a table.

import { useSignal } from "@preact/signals";
import { useNow } from "../app/hooks.ts";
import { clockTime, duration, rate } from "../format.ts";
import { Chart } from "../parts/chart.tsx";
import type { ChartLine } from "../parts/plot.ts";
import { type Column, Table } from "../parts/table.tsx";
import { BUCKET_MS, bucketTimes, type Recent } from "../recent.ts";
import { inSteps, type SeriesPoint } from "../series.ts";

/** The table has a line for each of these. */
const STEP_MS = 10_000;

type ReadPoint = (point: SeriesPoint) => number | undefined;
type LineOf = Omit<ChartLine, "values"> & { read: ReadPoint };

const perSecond = (value: number) => value / (BUCKET_MS / 1_000);

const CHARTS: readonly { title: string; format(value: number): string; lines: readonly LineOf[] }[] = [
  {
    title: "Requests per second",
    format: rate,
    lines: [
      { name: "all", look: "first", read: ({ total }) => perSecond(total) },
      { name: "failed", look: "bad", read: ({ failed }) => perSecond(failed) },
    ],
  },
  {
    title: "Latency",
    format: duration,
    lines: [
      {
        name: "average",
        look: "first",
        read: ({ total, durationMs }) => (total === 0 ? undefined : durationMs / total),
      },
      { name: "longest", look: "second", read: ({ total, longestMs }) => (total === 0 ? undefined : longestMs) },
    ],
  },
  {
    title: "Time to first token",
    format: duration,
    lines: [
      {
        name: "average",
        look: "first",
        read: ({ firstBytes, firstByteSumMs }) => (firstBytes === 0 ? undefined : firstByteSumMs / firstBytes),
      },
    ],
  },
  {
    title: "Tokens per second",
    format: rate,
    lines: [
      { name: "out", look: "first", read: ({ completionTokens }) => perSecond(completionTokens) },
      { name: "in", look: "second", read: ({ promptTokens }) => perSecond(promptTokens) },
    ],
  },
];

export function Charts({ recent }: { recent: Recent }) {
  const nowMs = useNow();
  const points = recent.points(nowMs);
  const times = bucketTimes(nowMs);
  return (
    <div class="charts">
      {CHARTS.map(({ title, format, lines }) => (
        <Chart
          key={title}
          title={title}
          format={format}
          times={times}
          span="last 5 min"
          group="overview"
          lines={lines.map(({ read, ...line }) => ({ ...line, values: points.map((point) => point && read(point)) }))}
        />
      ))}
    </div>
  );
}

const inStep = (value: number) => rate(value / (STEP_MS / 1_000));
const average = (sum: number, of: number) => (of === 0 ? "–" : duration(sum / of));

const COLUMNS: readonly Column<SeriesPoint>[] = [
  { title: "From", cell: ({ atMs }) => clockTime(atMs) },
  { title: "Requests/s", isNumber: true, cell: ({ total }) => inStep(total) },
  { title: "Failed/s", isNumber: true, cell: ({ failed }) => inStep(failed) },
  { title: "Latency", isNumber: true, cell: ({ durationMs, total }) => average(durationMs, total) },
  { title: "Longest", isNumber: true, cell: ({ longestMs, total }) => average(longestMs, Math.min(total, 1)) },
  {
    title: "First token",
    isNumber: true,
    cell: ({ firstByteSumMs, firstBytes }) => average(firstByteSumMs, firstBytes),
  },
  { title: "Tokens out/s", isNumber: true, cell: ({ completionTokens }) => inStep(completionTokens) },
  { title: "Tokens in/s", isNumber: true, cell: ({ promptTokens }) => inStep(promptTokens) },
];

/** What the charts show, for those who do not see or point. */
export function ChartNumbers({ recent }: { recent: Recent }) {
  const isOpen = useSignal(false);
  return (
    <details
      class="numbers"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>The charts as a table</summary>
      {isOpen.value && <NumberTable recent={recent} />}
    </details>
  );
}

function NumberTable({ recent }: { recent: Recent }) {
  return (
    <Table
      caption="The last five minutes, ten seconds a line, the newest first"
      rows={inSteps(recent.points(useNow()), BUCKET_MS, STEP_MS)}
      keyOf={({ atMs }) => String(atMs)}
      empty="No requests yet."
      columns={COLUMNS}
    />
  );
}
