// The numbers at a glance on the overview.

import type { Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { useNow } from "../app/hooks.ts";
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

interface TilesProps {
  recent: Recent;
  statistics: Statistics | undefined;
  usage: UsageReport | undefined;
  window: string;
}

export function Tiles({ recent, statistics, usage, window }: TilesProps) {
  const overall = statistics?.overall;
  const share = overall === undefined ? 0 : failedShare(overall);
  return (
    <div class="tiles">
      <RateTile recent={recent} total={overall?.total_requests ?? 0} window={window} />
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
      <Tile name="Cost" value={usage === undefined ? "–" : money(usage.total.cost)} more={`in ${window}`} />
    </div>
  );
}

function RateTile({ recent, total, window }: { recent: Recent; total: number; window: string }) {
  const known = recent
    .points(useNow())
    .slice(-15)
    .filter((point) => point !== undefined);
  const perSecond = known.reduce((sum, point) => sum + point.total, 0) / ((known.length * BUCKET_MS) / 1_000 || 1);
  return (
    <Tile
      name="Requests per second"
      value={rate(perSecond)}
      more={total > 0 ? `${plural(total, "request")} in ${window}` : `none in ${window}`}
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
