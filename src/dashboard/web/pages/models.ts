// Models: which there are, where each is served, what was asked of it and what answers in its place.

import type { BackendStatus, BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ModelStatistics, Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { type MakePage, resource } from "../context.ts";
import { count, failedShare, latency, money, NOTABLE_FAILURES, percent, rate } from "../format.ts";
import { mark, marked, servingState } from "../marks.ts";
import { bar, button, field, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type Children, h } from "../view.ts";

interface ModelRow {
  name: string;
  backends: BackendStatus[];
  stats: ModelStatistics | undefined;
  cost: number;
  standIns: readonly string[];
}

interface SectionOf<Config> {
  config: Config;
}

export const modelsPage: MakePage = (context) => {
  let part = "";
  const backends = resource<BackendStatusList>(context, () => "admin/backends", { everyMs: 5_000 });
  const statistics = resource<Pick<Statistics, "models">>(context, () => "admin/stats/models?window=24h", {
    everyMs: 10_000,
  });
  const usage = resource<UsageReport>(context, () => "admin/usage?by=model&window=24h", { everyMs: 15_000 });
  const fallback = resource<SectionOf<unknown>>(context, () => "admin/config/fallback");
  const aliases = resource<SectionOf<unknown>>(context, () => "admin/config/model_aliases");

  function rows(): ModelRow[] {
    const standIns = chainsOf(fallback.data?.config);
    const names = new Set([
      ...(backends.data?.backends ?? []).flatMap(({ models }) => models),
      ...(statistics.data?.models ?? []).map(({ model_id }) => model_id),
    ]);
    // What is counted without a name, such as "(other)", is no model.
    return [...names]
      .filter((name) => !name.startsWith("(") && name.toLowerCase().includes(part.toLowerCase()))
      .map((name) => ({
        name,
        backends: backends.data?.backends.filter(({ models }) => models.includes(name)) ?? [],
        stats: statistics.data?.models.find(({ model_id }) => model_id === name),
        cost: usage.data?.rows.find(({ model_id }) => model_id === name)?.cost ?? 0,
        standIns: standIns[name] ?? [],
      }))
      .sort((a, b) => (b.stats?.total_requests ?? 0) - (a.stats?.total_requests ?? 0) || (a.name < b.name ? -1 : 1));
  }

  return {
    title: "Models",
    view() {
      const shown = rows();
      const most = shown.reduce((found, { stats }) => Math.max(found, stats?.total_requests ?? 0), 1);
      return [
        h(
          "div",
          { class: "head" },
          h("h1", { tabindex: "-1" }, "Models"),
          field("part", "Name contains", part, (value) => {
            part = value;
            context.redraw();
          }),
        ),
        trouble(backends, statistics),
        table({
          caption: "Models, with the numbers of the last 24 hours",
          rows: shown,
          keyOf: ({ name }) => name,
          empty: backends.data === undefined ? "Loading…" : "No backend has told its models yet.",
          columns: [
            {
              title: "Model",
              cell: ({ name }) =>
                h("a", { href: linkTo("requests", undefined, { model: name }), class: "strong" }, name),
            },
            { title: "Served by", cell: (row) => servedBy(row.backends) },
            { title: "Stands in for it", cell: ({ standIns }) => (standIns.length === 0 ? "–" : standIns.join(" → ")) },
            {
              title: "Requests",
              isNumber: true,
              cell: ({ stats }) => bar((stats?.total_requests ?? 0) / most, count(stats?.total_requests ?? 0)),
            },
            { title: "Failed", isNumber: true, cell: ({ stats }) => failedCell(stats) },
            {
              title: "Average",
              isNumber: true,
              cell: ({ stats }) => latency(stats?.avg_latency_ms, stats),
            },
            {
              title: "Tokens/s",
              isNumber: true,
              cell: ({ stats }) =>
                stats === undefined || stats.successful_requests === 0 ? "–" : rate(stats.avg_tokens_per_sec),
            },
            {
              title: "Tokens",
              isNumber: true,
              cell: ({ stats }) => (stats === undefined ? "–" : count(stats.total_tokens)),
            },
            { title: "Cost", isNumber: true, cell: ({ cost }) => money(cost) },
            {
              title: "Try",
              cell: ({ name }) =>
                button("Ask it", () => location.assign(linkTo("playground", undefined, { model: name })), {
                  kind: "small",
                  label: `Ask it: ${name}`,
                }),
            },
          ],
        }),
        aliasNote(aliases.data?.config),
      ];
    },
  };
};

function servedBy(backends: readonly BackendStatus[]): Children {
  if (backends.length === 0) return marked("bad", "no backend now");
  return h(
    "span",
    { class: "list" },
    backends.map((backend) => {
      const { tone, text } = servingState(backend);
      return h(
        "span",
        { class: `marked ${tone}`, title: text },
        mark(tone),
        h("span", null, backend.name),
        h("span", { class: "unseen" }, ` (${text})`),
      );
    }),
  );
}

function failedCell(stats: ModelStatistics | undefined): Children {
  if (stats === undefined || stats.total_requests === 0) return "–";
  const share = failedShare(stats);
  return h("span", { class: share >= NOTABLE_FAILURES ? "bad-text" : undefined }, percent(share));
}

/** The chains of the section fallback, by model. */
function chainsOf(config: unknown): Readonly<Record<string, readonly string[]>> {
  const chains = (config as { fallback_chains?: unknown; chains?: unknown } | undefined) ?? {};
  const byModel = chains.fallback_chains ?? chains.chains;
  if (typeof byModel !== "object" || byModel === null) return {};
  const named = Object.entries(byModel).filter((entry): entry is [string, string[]] => Array.isArray(entry[1]));
  return Object.fromEntries(named.map(([model, names]) => [model, names.map(String)]));
}

function aliasNote(config: unknown): Children {
  const entries = typeof config === "object" && config !== null ? Object.entries(config) : [];
  const plain = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  if (plain.length === 0) return null;
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Other names"),
    h(
      "ul",
      { class: "lines" },
      plain.map(([alias, model]) => h("li", { key: alias }, h("code", null, alias), " means ", h("code", null, model))),
    ),
  );
}
