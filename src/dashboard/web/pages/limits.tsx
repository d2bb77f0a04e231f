// Limits and cache: who is held back, what is answered from memory, and forgetting it.

import type { ErrorStatistics } from "../../../admin/errors.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { KvIndexStatistics } from "../../../admin/kv-index.ts";
import type { ResponseCacheStatistics } from "../../../admin/response-cache.ts";
import { useResource } from "../app/resource.ts";
import { dateTime, grouped, words } from "../format.ts";
import { Card, Facts, Head } from "../parts/card.tsx";
import { Link, RequestsOf } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { flatten, valueText } from "../settings-text.ts";
import { CacheCard, KvCard } from "./cache-cards.tsx";

const OFTEN_MS = 5_000;

export function LimitsPage() {
  const limits = useResource<{ config: unknown }>("admin/config/rate_limiting");
  const keys = useResource<KeyList>("admin/keys");
  const errors = useResource<ErrorStatistics>("admin/errors/stats?window=1h", { everyMs: OFTEN_MS });
  const cache = useResource<ResponseCacheStatistics>("admin/response-cache", { everyMs: OFTEN_MS });
  const kvIndex = useResource<KvIndexStatistics>("admin/kv-index", { everyMs: OFTEN_MS });
  return (
    <>
      <Head title="Limits and cache" />
      <Trouble of={[limits, keys, errors, cache, kvIndex]} />
      <div class="columns">
        <LimitCard config={limits.data.value?.config} refused={errors.data.value?.by_status["429"] ?? 0} />
        <KeyCard keys={keys.data.value?.keys} />
      </div>
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

type KeyRow = KeyList["keys"][number];

function KeyCard({ keys }: { keys: readonly KeyRow[] | undefined }) {
  return (
    <Card
      title="Keys"
      aside={
        <Link to="configuration" id="api_keys">
          Add or change
        </Link>
      }
    >
      <Table
        caption="Keys and their limits"
        rows={keys}
        keyOf={({ id }) => id}
        empty="There is no key: everyone is a client without a name."
        columns={[
          {
            title: "Key",
            cell: ({ id }) => <RequestsOf by="key" name={id} />,
          },
          {
            title: "Of",
            isExtra: true,
            cell: ({ user_id, organization_id }) => [user_id, organization_id].filter(Boolean).join(", ") || "–",
          },
          { title: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
          {
            title: "Per minute",
            isNumber: true,
            cell: ({ rate_limit }) => (rate_limit === null ? "–" : grouped(rate_limit)),
          },
          { title: "State", cell: (row) => <KeyState {...row} /> },
        ]}
      />
    </Card>
  );
}

function KeyState({ enabled, is_expired, expires_at }: KeyRow) {
  if (!enabled) return <Marked tone="quiet" text="disabled" />;
  if (is_expired) return <Marked tone="bad" text="expired" />;
  return <Marked tone="good" text="valid" title={expires_at === null ? undefined : `until ${dateTime(expires_at)}`} />;
}
