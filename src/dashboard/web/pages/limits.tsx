// Limits and cache: who is held back, what is answered from memory, and forgetting it.

import type { ErrorStatistics } from "../../../admin/errors.ts";
import type { KvIndexStatistics } from "../../../admin/kv-index.ts";
import type { ResponseCacheStatistics } from "../../../admin/response-cache.ts";
import { useResource } from "../app/resource.ts";
import { grouped, words } from "../format.ts";
import { Card, Facts, Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { flatten, valueText } from "../settings-text.ts";
import { CacheCard, KvCard } from "./cache-cards.tsx";

const OFTEN_MS = 5_000;

export function LimitsPage() {
  const limits = useResource<{ config: unknown }>("admin/config/rate_limiting");
  const errors = useResource<ErrorStatistics>("admin/errors/stats?window=1h", { everyMs: OFTEN_MS });
  const cache = useResource<ResponseCacheStatistics>("admin/response-cache", { everyMs: OFTEN_MS });
  const kvIndex = useResource<KvIndexStatistics>("admin/kv-index", { everyMs: OFTEN_MS });
  return (
    <>
      <Head title="Limits and cache" />
      <Trouble of={[limits, errors, cache, kvIndex]} />
      <LimitCard config={limits.data.value?.config} refused={errors.data.value?.by_status["429"] ?? 0} />
      <CacheCard cache={cache.data.value} />
      <KvCard index={kvIndex.data.value} />
    </>
  );
}

function LimitCard({ config, refused }: { config: unknown; refused: number }) {
  const entries = flatten(config);
  const usesRedis = entries.some(([name, value]) => name === "storage" && value === "redis");
  const shown = entries.filter(([name]) => name !== "enabled" && (usesRedis || !name.startsWith("redis.")));
  const isOn = entries.some(([name, value]) => name === "enabled" && value === true);
  return (
    <Card
      title="Rate limits"
      aside={
        <Link to="configuration" id="rate_limiting">
          Change
        </Link>
      }
    >
      {config === undefined ? (
        <p class="empty">Loading…</p>
      ) : (
        <Marked tone={isOn ? "good" : "quiet"} text={isOn ? "on" : "off: no client is limited"} />
      )}
      {refused > 0 && (
        <p>
          <Marked tone="warn" text={`${grouped(refused)} refused with 429 in the last hour. `} />
          <Link to="requests" query={{ status: "429" }}>
            Show them
          </Link>
        </p>
      )}
      <Facts of={shown.map(([name, value]) => [labelOf(name), valueText(value)])} />
    </Card>
  );
}

/** "limits.per_client.requests_per_second" -> "per client: requests per second" */
function labelOf(path: string): string {
  return words(path.replace(/^limits\./, "").replaceAll(".", ": "));
}
