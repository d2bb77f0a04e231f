// Overview: how the gateway is doing now, and in the last minutes.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { RecentErrors } from "../../../admin/errors.ts";
import type { AdminHealth } from "../../../admin/health.ts";
import type { Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { useApp } from "../app/context.ts";
import { useAtMost, useEnding, useLive } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { bytes, longDuration } from "../format.ts";
import { Head } from "../parts/card.tsx";
import { Trouble } from "../parts/notice.tsx";
import { followRequests } from "../recent.ts";
import { statsWindowOf } from "../time-range.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { BackendCard, ErrorCard, LatestCard, ModelCard } from "./overview-cards.tsx";
import { ChartNumbers, Charts } from "./overview-charts.tsx";
import { HistoryTiles, Tiles } from "./overview-tiles.tsx";
import { Verdict } from "./overview-verdict.tsx";

/** Up to here the charts are drawn of events, as they come. */
const MOST_RECENT_MS = 5 * 60_000;

export function OverviewPage() {
  const app = useApp();
  const { range } = app;
  const recent = useEnding(() => followRequests(app));
  const health = useResource<AdminHealth>("admin/health", { everyMs: 5_000 });
  const statistics = useResource<Statistics>(() => range.inWindow("admin/stats"), { everyMs: 5_000 });
  const backends = useResource<BackendStatusList>("admin/backends", { everyMs: 5_000 });
  const errors = useResource<RecentErrors>("admin/errors/recent?limit=6", { everyMs: 10_000 });
  const usage = useResource<UsageReport>(() => `admin/usage?by=model&${range.query()}`, { everyMs: 15_000 });
  const changed = useAtMost(1_000, () => void Promise.all([backends.refresh(), health.refresh()]));
  useLive((event) => {
    if (event === "health" || event === "circuit") changed();
  });
  const chosen = range.chosen.value;
  return (
    <>
      <Head title="Overview" />
      <Trouble of={[statistics, health, backends, errors, usage]} />
      <Verdict health={health.data.value} backends={backends.data.value} />
      {statsWindowOf(chosen) === undefined ? (
        <HistoryTiles recent={recent} usage={usage.data.value} />
      ) : (
        <Tiles recent={recent} statistics={statistics.data.value} usage={usage.data.value} />
      )}
      {chosen.kind === "last" && chosen.ms <= MOST_RECENT_MS ? (
        <>
          <Charts recent={recent} />
          <ChartNumbers recent={recent} />
        </>
      ) : (
        <HistoryCharts />
      )}
      <div class="columns">
        <BackendCard backends={backends.data.value} statistics={statistics.data.value} />
        <div class="stack">
          <ErrorCard errors={errors.data.value} />
          <ModelCard usage={usage.data.value} />
        </div>
      </div>
      <LatestCard recent={recent} />
      <ProcessLine health={health.data.value} />
    </>
  );
}

function ProcessLine({ health }: { health: AdminHealth | undefined }) {
  if (health === undefined) return null;
  const { memory_usage_mb, cpu_usage_percent } = health.metrics;
  const parts = [
    `Signalbox ${health.version}`,
    `up for ${longDuration(health.uptime)}`,
    `${bytes(memory_usage_mb * 1024 * 1024)} of memory`,
    `${cpu_usage_percent} % of a core`,
  ];
  return <p class="faint">{parts.join(" · ")}</p>;
}
