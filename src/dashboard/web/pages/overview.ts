// Overview: how the gateway is doing now, and in the last minutes.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { RecentErrors } from "../../../admin/errors.ts";
import type { AdminHealth } from "../../../admin/health.ts";
import type { RequestRow } from "../../../admin/request-schemas.ts";
import type { Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { type ChartLine, chart } from "../chart.ts";
import { atMost, type MakePage, resource } from "../context.ts";
import {
  ago,
  bytes,
  clockTime,
  count,
  duration,
  failedShare,
  grouped,
  latency,
  longDuration,
  money,
  NOTABLE_FAILURES,
  percent,
  percentile,
  plural,
  rate,
} from "../format.ts";
import { marked, outcomeMark, servingState } from "../marks.ts";
import { cardWith, choice, notice, table, trouble } from "../parts.ts";
import { BUCKET_MS, BUCKETS, endOf, followRequests } from "../recent.ts";
import { linkTo } from "../route.ts";
import { inSteps, type Series, type SeriesPoint } from "../series.ts";
import { type Children, h, type View } from "../view.ts";

const WINDOWS = [
  ["30m", "30 min"],
  ["1h", "1 h"],
  ["24h", "24 h"],
  ["7d", "7 d"],
] as const;

/** The charts as a table have a line for each of these. */
const STEP_MS = 10_000;

export const overviewPage: MakePage = (context) => {
  let window = "1h";
  let pointed: number | undefined;
  let areNumbersOpen = false;
  const live = followRequests(context);
  const health = resource<AdminHealth>(context, () => "admin/health", { everyMs: 5_000 });
  const statistics = resource<Statistics>(context, () => `admin/stats?window=${window}`, { everyMs: 5_000 });
  const backends = resource<BackendStatusList>(context, () => "admin/backends", { everyMs: 5_000 });
  const errors = resource<RecentErrors>(context, () => "admin/errors/recent?limit=6", { everyMs: 10_000 });
  const usage = resource<UsageReport>(context, () => `admin/usage?by=model&window=${window}`, { everyMs: 15_000 });
  const changed = atMost(1_000, () => void Promise.all([backends.refresh(), health.refresh()]), context);
  context.onLeave(
    context.live.listen((event) => {
      if (event === "health" || event === "circuit") changed();
    }),
  );

  function choose(chosen: string): void {
    window = chosen;
    void Promise.all([statistics.refresh(), usage.refresh()]);
    context.redraw();
  }

  return {
    title: "Overview",
    view() {
      const nowMs = context.now();
      const points = live.series.points(nowMs);
      const point = (index: number | undefined) => {
        pointed = index;
        context.redraw();
      };
      return [
        h(
          "div",
          { class: "head" },
          h("h1", { tabindex: "-1" }, "Overview"),
          choice("Time that the numbers are about", WINDOWS, window, choose),
        ),
        trouble(statistics, health),
        verdict(health.data),
        tiles({ statistics: statistics.data, usage: usage.data, points, firstTokens: live.firstTokens, window }),
        h("div", { class: "charts" }, charts({ points, nowMs, pointed, point })),
        chartNumbers(points, areNumbersOpen, (isOpen) => {
          areNumbersOpen = isOpen;
          context.redraw();
        }),
        h(
          "div",
          { class: "columns" },
          backendCard(backends.data, statistics.data),
          h("div", { class: "stack" }, errorCard(errors.data, nowMs), modelCard(statistics.data, usage.data)),
        ),
        latestCard(live.latest, nowMs),
        processLine(health.data),
      ];
    },
  };
};

function verdict(health: AdminHealth | undefined): Children {
  if (health === undefined) return h("p", { class: "notice" }, "Asking how the gateway is doing…");
  const troubled = Object.values(health.services).filter(({ status }) => status !== "healthy" && status !== "disabled");
  if (troubled.length === 0) {
    const { backend_service: backend, model_service: model } = health.services;
    return notice("good", `All is well. ${backend?.message ?? ""} ${model?.message ?? ""}`);
  }
  const tone = health.status === "unhealthy" ? "bad" : "warn";
  return notice(tone, `The gateway is ${health.status}. ${troubled.map(({ message }) => message).join(" ")}`);
}

interface TileData {
  statistics: Statistics | undefined;
  usage: UsageReport | undefined;
  points: readonly (SeriesPoint | undefined)[];
  firstTokens: readonly number[];
  window: string;
}

function tiles({ statistics, usage, points, firstTokens, window }: TileData): View {
  const overall = statistics?.overall;
  const known = points.slice(-15).filter((point) => point !== undefined);
  const perSecond = known.reduce((sum, { total }) => sum + total, 0) / ((known.length * BUCKET_MS) / 1_000 || 1);
  const share = overall === undefined ? 0 : failedShare(overall);
  const asTime = (ms: number | undefined) => (ms === undefined ? "–" : duration(ms));
  const hasAny = overall !== undefined && overall.total_requests > 0;
  return h(
    "div",
    { class: "tiles" },
    tile(
      "Requests per second",
      rate(perSecond),
      hasAny ? `${plural(overall.total_requests, "request")} in ${window}` : `none in ${window}`,
    ),
    tile(
      "Failed",
      overall === undefined ? "–" : percent(share),
      overall === undefined
        ? ""
        : `${plural(overall.failed_requests, "request")}, ${grouped(overall.refused_requests)} refused`,
      share >= NOTABLE_FAILURES ? "bad" : undefined,
    ),
    tile(
      "Latency",
      latency(overall?.p50_latency_ms, overall),
      `p95 ${latency(overall?.p95_latency_ms, overall)} · p99 ${latency(overall?.p99_latency_ms, overall)}`,
    ),
    tile("First token", asTime(percentile(firstTokens, 0.5)), `p95 ${asTime(percentile(firstTokens, 0.95))} · latest`),
    tile(
      "Tokens",
      overall === undefined ? "–" : count(overall.total_tokens),
      overall === undefined
        ? ""
        : `${count(overall.total_prompt_tokens)} in · ${count(overall.total_completion_tokens)} out`,
    ),
    tile("Cost", usage === undefined ? "–" : money(usage.total.cost), `in ${window}`),
  );
}

function tile(name: string, value: string, more: string, tone?: string): View {
  return h(
    "div",
    { class: `tile ${tone ?? ""}` },
    h("div", { class: "tile-name" }, name),
    h("div", { class: "tile-value" }, value),
    h("div", { class: "tile-more" }, more),
  );
}

interface ChartData {
  points: ReturnType<Series["points"]>;
  nowMs: number;
  pointed: number | undefined;
  point(index: number | undefined): void;
}

function charts({ points, nowMs, pointed, point }: ChartData): View[] {
  const perSecond = (value: number) => value / (BUCKET_MS / 1_000);
  const of = (read: (point: SeriesPoint) => number | undefined) => points.map((each) => each && read(each));
  const shared = {
    ...{ nowMs, pointed, point },
    span: "last 5 min",
    timeOf: (index: number) => nowMs - (BUCKETS - index) * BUCKET_MS,
  };
  const draw = (title: string, format: (value: number) => string, ...lines: ChartLine[]) =>
    chart({ ...shared, title, lines, format });
  return [
    draw(
      "Requests per second",
      rate,
      { name: "all", look: "first", values: of(({ total }) => perSecond(total)) },
      { name: "failed", look: "bad", values: of(({ failed }) => perSecond(failed)) },
    ),
    draw(
      "Latency",
      duration,
      {
        name: "average",
        look: "first",
        values: of(({ total, durationMs }) => (total === 0 ? undefined : durationMs / total)),
      },
      { name: "longest", look: "second", values: of(({ total, longestMs }) => (total === 0 ? undefined : longestMs)) },
    ),
    draw("Time to first byte", duration, {
      name: "average",
      look: "first",
      values: of(({ firstBytes, firstByteSumMs }) => (firstBytes === 0 ? undefined : firstByteSumMs / firstBytes)),
    }),
    draw(
      "Tokens per second",
      rate,
      { name: "out", look: "first", values: of(({ completionTokens }) => perSecond(completionTokens)) },
      { name: "in", look: "second", values: of(({ promptTokens }) => perSecond(promptTokens)) },
    ),
  ];
}

/** What the charts show, for those who do not see or point. */
function chartNumbers(points: ChartData["points"], isOpen: boolean, open: (isOpen: boolean) => void): View {
  const perSecond = (value: number) => rate(value / (STEP_MS / 1_000));
  const average = (sum: number, of: number) => (of === 0 ? "–" : duration(sum / of));
  return h(
    "details",
    {
      class: "numbers",
      ontoggle: ({ currentTarget }: { currentTarget: HTMLDetailsElement }) => open(currentTarget.open),
    },
    h("summary", null, "The charts as a table"),
    isOpen &&
      table<SeriesPoint>({
        caption: "The last five minutes, ten seconds a line, the newest first",
        rows: inSteps(points, BUCKET_MS, STEP_MS),
        keyOf: ({ atMs }) => String(atMs),
        empty: "Nothing is known yet.",
        columns: [
          { title: "From", cell: ({ atMs }) => clockTime(atMs) },
          { title: "Requests/s", isNumber: true, cell: ({ total }) => perSecond(total) },
          { title: "Failed/s", isNumber: true, cell: ({ failed }) => perSecond(failed) },
          { title: "Latency", isNumber: true, cell: ({ durationMs, total }) => average(durationMs, total) },
          { title: "Longest", isNumber: true, cell: ({ longestMs, total }) => average(longestMs, Math.min(total, 1)) },
          {
            title: "First byte",
            isNumber: true,
            cell: ({ firstByteSumMs, firstBytes }) => average(firstByteSumMs, firstBytes),
          },
          { title: "Tokens out/s", isNumber: true, cell: ({ completionTokens }) => perSecond(completionTokens) },
          { title: "Tokens in/s", isNumber: true, cell: ({ promptTokens }) => perSecond(promptTokens) },
        ],
      }),
  );
}

function backendCard(list: BackendStatusList | undefined, statistics: Statistics | undefined): View {
  const statsOf = (name: string) => statistics?.backends.find(({ backend_name }) => backend_name === name);
  return cardWith(
    "Backends",
    h("a", { href: linkTo("backends") }, "All of them"),
    table({
      caption: "Backends",
      rows: list?.backends ?? [],
      keyOf: ({ name, phase }) => `${name} ${phase}`,
      empty: list === undefined ? "Loading…" : "There is no backend yet.",
      columns: [
        { title: "Name", cell: ({ name }) => h("a", { href: linkTo("requests", undefined, { backend: name }) }, name) },
        {
          title: "State",
          cell: (row) => {
            const { tone, text } = servingState(row);
            return marked(tone, text);
          },
        },
        { title: "In flight", isNumber: true, cell: ({ in_flight }) => count(in_flight) },
        {
          title: "Requests",
          isNumber: true,
          isExtra: true,
          cell: ({ name }) => count(statsOf(name)?.total_requests ?? 0),
        },
        {
          title: "First token p95",
          isNumber: true,
          isExtra: true,
          cell: ({ name }) => latency(statsOf(name)?.p95_first_token_ms ?? undefined, statsOf(name)),
        },
        { title: "p95", isNumber: true, cell: ({ name }) => latency(statsOf(name)?.p95_latency_ms, statsOf(name)) },
      ],
    }),
  );
}

function errorCard(list: RecentErrors | undefined, nowMs: number): View {
  return cardWith(
    "Latest errors",
    h("a", { href: linkTo("errors") }, "All of them"),
    h(
      "ul",
      { class: "lines" },
      list === undefined || list.errors.length === 0
        ? h("li", { class: "empty", key: "(none)" }, list === undefined ? "Loading…" : "No error since the start.")
        : list.errors.map((error) =>
            h(
              "li",
              { key: error.id },
              h(
                "a",
                { href: linkTo("request", error.id), class: "grow clip", title: error.message },
                `${error.status} ${error.message}`,
              ),
              h("span", { class: "faint" }, ago(Date.parse(error.timestamp), nowMs)),
            ),
          ),
    ),
  );
}

function modelCard(statistics: Statistics | undefined, usage: UsageReport | undefined): View {
  const costOf = (model: string) => usage?.rows.find(({ model_id }) => model_id === model)?.cost ?? 0;
  return cardWith(
    "Busiest models",
    h("a", { href: linkTo("models") }, "All of them"),
    table({
      caption: "Busiest models",
      rows: statistics?.models.slice(0, 5) ?? [],
      keyOf: ({ model_id }) => model_id,
      empty: statistics === undefined ? "Loading…" : "No request in this time.",
      columns: [
        {
          title: "Model",
          cell: ({ model_id }) => h("a", { href: linkTo("requests", undefined, { model: model_id }) }, model_id),
        },
        { title: "Requests", isNumber: true, cell: ({ total_requests }) => count(total_requests) },
        { title: "Average", isNumber: true, cell: (row) => latency(row.avg_latency_ms, row) },
        { title: "Cost", isNumber: true, cell: ({ model_id }) => money(costOf(model_id)) },
      ],
    }),
  );
}

function latestCard(latest: readonly RequestRow[], nowMs: number): View {
  return cardWith(
    "Latest requests",
    h("a", { href: linkTo("requests") }, "All of them"),
    table({
      caption: "Latest requests",
      rows: latest,
      keyOf: ({ id }) => id,
      empty: "No request yet.",
      columns: [
        {
          title: "Ended",
          cell: (row) => h("a", { href: linkTo("request", row.id) }, ago(endOf(row), nowMs)),
        },
        { title: "Outcome", cell: ({ outcome, status }) => outcomeMark(outcome, status) },
        { title: "Model", cell: ({ model }) => model },
        { title: "Backend", isExtra: true, cell: ({ backend }) => backend ?? "–" },
        { title: "Attempts", isNumber: true, isExtra: true, cell: ({ attempts }) => attempts },
        { title: "Duration", isNumber: true, cell: ({ duration_ms }) => duration(duration_ms) },
      ],
    }),
  );
}

function processLine(health: AdminHealth | undefined): Children {
  if (health === undefined) return null;
  const { memory_usage_mb, cpu_usage_percent } = health.metrics;
  const parts = [
    `Signalbox ${health.version}`,
    `up for ${longDuration(health.uptime)}`,
    `${bytes(memory_usage_mb * 1024 * 1024)} of memory`,
    `${cpu_usage_percent} % of a core`,
  ];
  return h("p", { class: "faint" }, parts.join(" · "));
}
