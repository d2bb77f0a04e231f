// The numbers at a glance on the overview.

import type { SeriesReport } from "../../../admin/metrics-history.ts";
import type { Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { useApp } from "../app/context.ts";
import { useNow } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import {
  count,
  duration,
  failedShare,
  grouped,
  latency,
  money,
  NOTABLE_FAILURES,
  percent,
  percentile,
  plural,
  rate,
} from "../format.ts";
import { Tile } from "../parts/card.tsx";
import { BUCKET_MS, type Recent } from "../recent.ts";
import { totalOf } from "../reports.ts";
import { isLive, rangeLabel } from "../time-range.ts";
import { pathOfSeries } from "./history-charts.tsx";

interface TilesProps {
  recent: Recent;
  statistics: Statistics | undefined;
  usage: UsageReport | undefined;
}

export function Tiles({ recent, statistics, usage }: TilesProps) {
  const overall = statistics?.overall;
  const share = overall === undefined ? 0 : failedShare(overall);
  return (
    <div class="tiles">
      <RateTile recent={recent} total={overall?.total_requests} />
      <Tile
        name="Failed"
        value={overall === undefined ? "–" : percent(share)}
        more={
          overall === undefined
            ? ""
            : `${plural(overall.failed_requests, "request")}, ${grouped(overall.refused_requests)} refused`
        }
        isBad={share >= NOTABLE_FAILURES}
      />
      <Tile
        name="Latency"
        value={latency(overall?.p50_latency_ms, overall)}
        more={`p95 ${latency(overall?.p95_latency_ms, overall)} · p99 ${latency(overall?.p99_latency_ms, overall)}`}
      />
      <FirstTokenTile recent={recent} />
      <Tile
        name="Tokens"
        value={overall === undefined ? "–" : count(overall.total_tokens)}
        more={
          overall === undefined
            ? ""
            : `${count(overall.total_prompt_tokens)} in · ${count(overall.total_completion_tokens)} out`
        }
      />
      <CostTile usage={usage} />
    </div>
  );
}

/** The same of times for which the statistics have no window, from the metrics history. */
export function HistoryTiles({ recent, usage }: Omit<TilesProps, "statistics">) {
  const { range } = useApp();
  // One step is the whole time.
  const asked = (metric: string, by?: string) => () => {
    const { from, to } = range.span.value;
    const step = String(Math.max(1, Math.ceil((to - from) / 1_000)));
    return pathOfSeries(metric, { from, to }, { step, limit: "100", ...(by !== undefined && { by }) });
  };
  const requests = useResource<SeriesReport>(asked("signalbox_requests_total", "status")).data.value;
  const durations = useResource<SeriesReport>(asked("gen_ai_server_request_duration_seconds")).data.value;
  const firstTokens = useResource<SeriesReport>(asked("gen_ai_server_time_to_first_token_seconds")).data.value;
  const tokens = useResource<SeriesReport>(asked("signalbox_tokens_total", "type")).data.value;
  const total = requests && totalOf(requests);
  const failed = requests && totalOf(requests, ({ status }) => status?.startsWith("5") === true);
  const share = total ? (failed ?? 0) / total : 0;
  const numberOf = (value: number | undefined) => (value === undefined ? "–" : count(value));
  const tokensOf = (kind: string) => numberOf(tokens && totalOf(tokens, ({ type }) => type === kind));
  const timeOf = (report: SeriesReport | undefined, quantile: string) => {
    const seconds = report?.series.find(({ labels }) => labels.quantile === quantile)?.values[0] ?? undefined;
    return seconds === undefined ? "–" : duration(seconds * 1_000);
  };
  return (
    <div class="tiles">
      {isLive(range.chosen.value) ? (
        <RateTile recent={recent} total={total} />
      ) : (
        <Tile name="Requests" value={numberOf(total)} more={`${rate((total ?? 0) / range.seconds())} per second`} />
      )}
      <Tile
        name="Failed"
        value={total === undefined ? "–" : percent(share)}
        more={`${numberOf(failed)} with a status of 5xx`}
        isBad={share >= NOTABLE_FAILURES}
      />
      <Tile name="Latency" value={timeOf(durations, "0.5")} more={`p95 ${timeOf(durations, "0.95")}`} />
      <Tile name="First token" value={timeOf(firstTokens, "0.5")} more={`p95 ${timeOf(firstTokens, "0.95")}`} />
      <Tile name="Tokens out" value={tokensOf("output")} more={`${tokensOf("input")} in`} />
      <CostTile usage={usage} />
    </div>
  );
}

function CostTile({ usage }: { usage: UsageReport | undefined }) {
  const { range } = useApp();
  const unpriced = usage?.unpriced_models.length ?? 0;
  return (
    <Tile
      name="Cost"
      value={usage === undefined ? "–" : `${money(usage.total.cost)} ${usage.currency}`}
      more={unpriced > 0 ? `${plural(unpriced, "model")} without a price` : rangeLabel(range.chosen.value)}
    />
  );
}

function RateTile({ recent, total = 0 }: { recent: Recent; total: number | undefined }) {
  const { range } = useApp();
  const label = rangeLabel(range.chosen.value).toLowerCase();
  const known = recent
    .points(useNow())
    .slice(-15)
    .filter((point) => point !== undefined);
  const perSecond = known.reduce((sum, point) => sum + point.total, 0) / ((known.length * BUCKET_MS) / 1_000 || 1);
  return (
    <Tile
      name="Requests per second"
      value={rate(perSecond)}
      more={`${total > 0 ? plural(total, "request") : "no request"}, ${label}`}
    />
  );
}

function FirstTokenTile({ recent }: { recent: Recent }) {
  const timeOf = (share: number) => {
    const ms = percentile(recent.firstTokens.value, share);
    return ms === undefined ? "–" : duration(ms);
  };
  return <Tile name="First token" value={timeOf(0.5)} more={`p95 ${timeOf(0.95)} · latest`} />;
}
