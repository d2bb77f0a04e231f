// Limits and cache: who is held back, what is answered from memory, and forgetting it.

import type { ErrorStatistics } from "../../../admin/errors.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { KvIndexStatistics } from "../../../admin/kv-index.ts";
import type { ResponseCacheStatistics } from "../../../admin/response-cache.ts";
import { type MakePage, type PageContext, resource } from "../context.ts";
import { bytes, count, dateTime, grouped, percent, words } from "../format.ts";
import { marked } from "../marks.ts";
import { button, cardWith, facts, notice, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { flatten, valueText } from "../settings-text.ts";
import { type Children, h, type View } from "../view.ts";

const OFTEN_MS = 5_000;
const DISTRUSTED = "Answers have contradicted its events, so that nothing is kept of its cache for a while.";

export const limitsPage: MakePage = (context) => {
  const limits = resource<{ config: unknown }>(context, () => "admin/config/rate_limiting");
  const keys = resource<KeyList>(context, () => "admin/keys");
  const errors = resource<ErrorStatistics>(context, () => "admin/errors/stats?window=1h", { everyMs: OFTEN_MS });
  const cache = resource<ResponseCacheStatistics>(context, () => "admin/response-cache", { everyMs: OFTEN_MS });
  const kvIndex = resource<KvIndexStatistics>(context, () => "admin/kv-index", { everyMs: OFTEN_MS });

  return {
    title: "Limits and cache",
    view: () => [
      h("div", { class: "head" }, h("h1", { tabindex: "-1" }, "Limits and cache")),
      trouble(limits, keys, cache, kvIndex),
      h("div", { class: "columns" }, limitCard(limits.data?.config, errors.data), keyCard(keys.data)),
      cacheCard(context, cache.data),
      kvCard(context, kvIndex.data),
    ],
  };
};

function limitCard(config: unknown, errors: ErrorStatistics | undefined): View {
  const entries = flatten(config);
  const usesRedis = entries.some(([name, value]) => name === "storage" && value === "redis");
  const shown = entries.filter(([name]) => name !== "enabled" && (usesRedis || !name.startsWith("redis.")));
  const isOn = entries.some(([name, value]) => name === "enabled" && value === true);
  const refused = errors?.by_status["429"] ?? 0;
  return cardWith(
    "Rate limits",
    h("a", { href: linkTo("configuration", "rate_limiting") }, "Change"),
    config === undefined
      ? h("p", { class: "empty" }, "Loading…")
      : isOn
        ? marked("good", "on")
        : marked("quiet", "off: no client is limited"),
    refused > 0 &&
      h(
        "p",
        null,
        marked("warn", `${grouped(refused)} refused with 429 in the last hour. `),
        h("a", { href: linkTo("requests", undefined, { status: "429" }) }, "Show them"),
      ),
    facts(...shown.map(([name, value]) => [labelOf(name), valueText(value)] as const)),
  );
}

/** "limits.per_client.requests_per_second" -> "per client: requests per second" */
function labelOf(path: string): string {
  return words(path.replace(/^limits\./, "").replaceAll(".", ": "));
}

function keyCard(keys: KeyList | undefined): View {
  return cardWith(
    "Keys",
    h("a", { href: linkTo("configuration", "api_keys") }, "Add or change"),
    table({
      caption: "Keys and their limits",
      rows: keys?.keys ?? [],
      keyOf: ({ id }) => id,
      empty: keys === undefined ? "Loading…" : "There is no key: everyone is a client without a name.",
      columns: [
        { title: "Key", cell: ({ id }) => h("a", { href: linkTo("requests", undefined, { key: id }) }, id) },
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
        {
          title: "State",
          cell: ({ enabled, is_expired, expires_at }) =>
            !enabled
              ? marked("quiet", "disabled")
              : is_expired
                ? marked("bad", "expired")
                : marked("good", "valid", expires_at === null ? undefined : `until ${dateTime(expires_at)}`),
        },
      ],
    }),
  );
}

function cacheCard(context: PageContext, cache: ResponseCacheStatistics | undefined): View {
  const title = "Response cache";
  const change = h("a", { href: linkTo("configuration", "response_cache") }, "Change");
  if (cache === undefined) return cardWith(title, change, h("p", { class: "empty" }, "Loading…"));
  if (!cache.enabled) return cardWith(title, change, marked("quiet", "off"));
  const { hits = 0, misses = 0, entries, capacity, bytes: size, max_bytes, models = [], connected } = cache;
  const asked = hits + misses;
  const of = (value: number | null | undefined, most: number | null | undefined, show: (value: number) => string) =>
    value === null || value === undefined ? "not known" : `${show(value)}${most ? ` of ${show(most)}` : ""}`;
  return cardWith(
    title,
    h(
      "div",
      { class: "row tight" },
      button("Clear", () => clearCache(context, undefined), { kind: "small", label: "Clear the response cache" }),
      change,
    ),
    connected === false && notice("warn", "Its server is away: the gateway goes on with its own memory."),
    facts(
      ["Kept in", cache.backend ?? "memory"],
      ["Answers", of(entries, capacity, grouped)],
      ["Size", of(size, max_bytes, bytes)],
      ["Hits", asked === 0 ? "none asked yet" : `${grouped(hits)}, ${percent(hits / asked)} of ${count(asked)}`],
      ["Stored", grouped(cache.stores ?? 0)],
      ["Gave way", of(cache.evictions, undefined, grouped)],
    ),
    table({
      caption: "Kept answers by model",
      rows: models,
      keyOf: ({ model }) => model,
      empty: "No answer is kept yet.",
      columns: [
        { title: "Model", cell: ({ model }) => model },
        { title: "Answers", isNumber: true, cell: (row) => (row.entries === null ? "–" : grouped(row.entries)) },
        { title: "Size", isNumber: true, cell: (row) => (row.bytes === null ? "–" : bytes(row.bytes)) },
        { title: "Hits", isNumber: true, cell: (row) => grouped(row.hits) },
        { title: "Misses", isNumber: true, cell: (row) => grouped(row.misses) },
        {
          title: "Actions",
          cell: ({ model }) =>
            button("Clear", () => clearCache(context, model), {
              kind: "small",
              label: `Clear the answers of ${model}`,
            }),
        },
      ],
    }),
  );
}

function clearCache({ act }: PageContext, model: string | undefined): void {
  act({
    title: model === undefined ? "Clear the response cache" : `Clear the answers of ${model}`,
    text: "What is kept is forgotten; the next requests go to backends.",
    verb: "Clear",
    isDangerous: true,
    asked: () => ({ method: "DELETE", path: `admin/response-cache${queryOf({ model })}` }),
  });
}

function kvCard(context: PageContext, index: KvIndexStatistics | undefined): Children {
  const title = "KV caches of backends";
  const change = h("a", { href: linkTo("configuration", "kv_cache_index") }, "Change");
  if (index === undefined) return cardWith(title, change, h("p", { class: "empty" }, "Loading…"));
  if (!index.enabled) return cardWith(title, change, marked("quiet", "off"));
  return cardWith(
    title,
    h(
      "div",
      { class: "row tight" },
      button("Clear", () => clearIndex(context, undefined), { kind: "small", label: "Clear the index" }),
      change,
    ),
    facts(
      ["Blocks of prompts", `${grouped(index.entries)} of ${grouped(index.max_entries)}`],
      ["Size", bytes(index.bytes)],
      [
        "Choices it made",
        index.lookups === 0
          ? "none yet"
          : `${grouped(index.hits)}, ${percent(index.hits / index.lookups)} of ${count(index.lookups)}`,
      ],
    ),
    table({
      caption: "Blocks by backend",
      rows: index.backends,
      keyOf: ({ backend_name }) => backend_name,
      empty: "Nothing is known yet.",
      columns: [
        { title: "Backend", cell: ({ backend_name }) => backend_name },
        {
          title: "Blocks",
          isNumber: true,
          cell: ({ entries, distrusted }) => (distrusted ? marked("warn", "distrusted", DISTRUSTED) : grouped(entries)),
        },
        {
          title: "Actions",
          cell: ({ backend_name }) =>
            button("Clear", () => clearIndex(context, backend_name), {
              kind: "small",
              label: `Clear what is known of ${backend_name}`,
            }),
        },
      ],
    }),
  );
}

function clearIndex({ act }: PageContext, backend: string | undefined): void {
  act({
    title: backend === undefined ? "Forget what is known of KV caches" : `Forget what is known of ${backend}`,
    text: "It is learnt again from the next answers.",
    verb: "Clear",
    isDangerous: true,
    asked: () => ({ method: "DELETE", path: `admin/kv-index${queryOf({ backend })}` }),
  });
}

function queryOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}
