// What is answered from memory and what is known of the caches of backends, with the actions that forget it.

import type { ComponentChildren } from "preact";
import type { KvIndexStatistics } from "../../../admin/kv-index.ts";
import type { ResponseCacheStatistics } from "../../../admin/response-cache.ts";
import type { Action } from "../app/actions.ts";
import { bytes, count, grouped, percent } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Card, Facts } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";

const DISTRUSTED = "Answers contradicted its events, so its cache is not indexed for a while.";

type On<Store> = Exclude<Store, { enabled: false }>;

interface StoreCardProps<Store> {
  title: string;
  section: string;
  /** undefined: not known yet. */
  store: Store | undefined;
  /** Clears all of it. */
  clearing: Action;
  clearLabel: string;
  children(store: On<Store>): ComponentChildren;
}

function StoreCard<Store extends { enabled: boolean }>(props: StoreCardProps<Store>) {
  const { title, section, store, clearing, clearLabel, children } = props;
  return (
    <Card
      title={title}
      aside={
        <div class="row tight">
          {store?.enabled && <ClearButton label={clearLabel} clearing={clearing} />}
          <Link to="configuration" id={section}>
            Change
          </Link>
        </div>
      }
    >
      {store === undefined ? (
        <p class="empty">Loading…</p>
      ) : store.enabled ? (
        children(store as On<Store>)
      ) : (
        <Marked tone="quiet" text="off" />
      )}
    </Card>
  );
}

function ClearButton({ label, clearing }: { label: string; clearing: Action }) {
  return (
    <ActionButton label={label} action={clearing}>
      Clear
    </ActionButton>
  );
}

export function CacheCard({ cache }: { cache: ResponseCacheStatistics | undefined }) {
  return (
    <StoreCard
      title="Response cache"
      section="response_cache"
      store={cache}
      clearing={clearingCache(undefined)}
      clearLabel="Clear the response cache"
    >
      {(known) => (
        <>
          {known.connected === false && (
            <Notice tone="warn">The server is unreachable: the gateway uses its own memory.</Notice>
          )}
          <CacheFacts {...known} />
          <Table
            caption="Cached answers by model"
            rows={known.models ?? []}
            keyOf={({ model }) => model}
            empty="No cached answers yet."
            columns={[
              { title: "Model", cell: ({ model }) => model },
              { title: "Answers", isNumber: true, cell: ({ entries }) => (entries === null ? "–" : grouped(entries)) },
              { title: "Size", isNumber: true, cell: (row) => (row.bytes === null ? "–" : bytes(row.bytes)) },
              { title: "Hits", isNumber: true, cell: ({ hits }) => grouped(hits) },
              { title: "Misses", isNumber: true, cell: ({ misses }) => grouped(misses) },
              {
                title: "Actions",
                cell: ({ model }) => (
                  <ClearButton label={`Clear cached answers of ${model}`} clearing={clearingCache(model)} />
                ),
              },
            ]}
          />
        </>
      )}
    </StoreCard>
  );
}

function CacheFacts(cache: On<ResponseCacheStatistics>) {
  const { hits = 0, misses = 0 } = cache;
  return (
    <Facts
      of={[
        ["Storage", cache.backend ?? "memory"],
        ["Answers", outOf(cache.entries, cache.capacity, grouped)],
        ["Size", outOf(cache.bytes, cache.max_bytes, bytes)],
        ["Hits", shareText(hits, hits + misses, "no lookups yet")],
        ["Stored", grouped(cache.stores ?? 0)],
        ["Evicted", outOf(cache.evictions, undefined, grouped)],
      ]}
    />
  );
}

type Known = number | null | undefined;

function outOf(value: Known, most: Known, format: (value: number) => string): string {
  if (value === null || value === undefined) return "not known";
  return `${format(value)}${most ? ` of ${format(most)}` : ""}`;
}

function shareText(part: number, whole: number, none: string): string {
  return whole === 0 ? none : `${grouped(part)}, ${percent(part / whole)} of ${count(whole)}`;
}

export function KvCard({ index }: { index: KvIndexStatistics | undefined }) {
  return (
    <StoreCard
      title="KV caches of backends"
      section="kv_cache_index"
      store={index}
      clearing={clearingIndex(undefined)}
      clearLabel="Clear the index"
    >
      {(known) => (
        <>
          <Facts
            of={[
              ["Prompt blocks", `${grouped(known.entries)} of ${grouped(known.max_entries)}`],
              ["Size", bytes(known.bytes)],
              ["Hits", shareText(known.hits, known.lookups, "no lookups yet")],
            ]}
          />
          <Table
            caption="Blocks by backend"
            rows={known.backends}
            keyOf={({ backend_name }) => backend_name}
            empty="No blocks yet: they come with the next answers."
            columns={[
              { title: "Backend", cell: ({ backend_name }) => backend_name },
              {
                title: "Blocks",
                isNumber: true,
                cell: ({ entries, distrusted }) =>
                  distrusted ? <Marked tone="warn" text="distrusted" title={DISTRUSTED} /> : grouped(entries),
              },
              {
                title: "Actions",
                cell: ({ backend_name: name }) => (
                  <ClearButton label={`Clear the index of ${name}`} clearing={clearingIndex(name)} />
                ),
              },
            ]}
          />
        </>
      )}
    </StoreCard>
  );
}

export function clearingCache(model: string | undefined): Action {
  return {
    title: model === undefined ? "Clear the response cache" : `Clear cached answers of ${model}`,
    text: "All cached answers are removed; the next requests go to backends.",
    verb: "Clear",
    isDangerous: true,
    asked: () => ({ method: "DELETE", path: `admin/response-cache${queryOf({ model })}` }),
  };
}

function clearingIndex(backend: string | undefined): Action {
  return {
    title: backend === undefined ? "Clear the KV cache index" : `Clear the KV cache index of ${backend}`,
    text: "The index fills again from the next answers.",
    verb: "Clear",
    isDangerous: true,
    asked: () => ({ method: "DELETE", path: `admin/kv-index${queryOf({ backend })}` }),
  };
}

function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
