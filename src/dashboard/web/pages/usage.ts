// Usage: who has used what, and what it costs.

import type { UsageReport } from "../../../admin/usage.ts";
import { type MakePage, resource } from "../context.ts";
import { count, grouped, money } from "../format.ts";
import { bar, button, card, choice, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type Children, h, type View } from "../view.ts";

type UsageRow = UsageReport["rows"][number];

const WINDOWS = [
  ["1h", "1 h"],
  ["24h", "24 h"],
  ["7d", "7 d"],
  ["30d", "30 d"],
  ["all", "All"],
] as const;

/** What rows may be about, and the member that tells it. */
const GROUPS = {
  key: { label: "Key", member: "key_id" },
  user: { label: "User", member: "user_id" },
  organization: { label: "Organisation", member: "organization_id" },
  model: { label: "Model", member: "model_id" },
  backend: { label: "Backend", member: "backend_name" },
  day: { label: "Day", member: "day" },
} as const;

type UsageGroup = keyof typeof GROUPS;

const MOST_GROUPS = 3;
const MOST_DAYS = 30;
const MOST_ROWS = 500;

export const usagePage: MakePage = (context) => {
  const { query } = context.route;
  let by = (query.get("by")?.split(",") ?? ["key", "model"]).filter((name): name is UsageGroup =>
    Object.hasOwn(GROUPS, name),
  );
  let window = WINDOWS.some(([value]) => value === query.get("window")) ? (query.get("window") as string) : "30d";
  const path = () => `admin/usage?by=${by.join(",")}&window=${window}`;
  const usage = resource<UsageReport>(context, path, { everyMs: 15_000 });
  const days = resource<UsageReport>(context, () => `admin/usage?by=day&window=${window}`, { everyMs: 60_000 });

  function changed(): void {
    history.replaceState(null, "", linkTo("usage", undefined, { by: by.join(","), window }));
    void Promise.all([usage.refresh(), days.refresh()]);
    context.redraw();
  }

  function toggle(group: UsageGroup): void {
    const next = by.includes(group) ? by.filter((each) => each !== group) : [...by, group].slice(-MOST_GROUPS);
    if (next.length === 0) return;
    by = next;
    changed();
  }

  return {
    title: "Usage",
    view: () => [
      h(
        "div",
        { class: "head" },
        h("h1", { tabindex: "-1" }, "Usage and cost"),
        choice("Time", WINDOWS, window, (chosen) => {
          window = chosen;
          changed();
        }),
        h("a", { class: "button", href: new URL(`${path()}&format=csv`, context.api.base).href, download: "" }, "CSV"),
      ),
      h(
        "div",
        { class: "row" },
        h("span", { class: "faint" }, `By, up to ${MOST_GROUPS}:`),
        h(
          "div",
          { class: "choice", role: "group", "aria-label": "What the rows are about" },
          (Object.keys(GROUPS) as UsageGroup[]).map((group) =>
            button(GROUPS[group].label, () => toggle(group), { kind: "small", pressed: by.includes(group) }),
          ),
        ),
      ),
      trouble(usage),
      totals(usage.data),
      dayChart(days.data),
      usageTable(usage.data, by),
      h(
        "p",
        { class: "faint" },
        "Prices are those of the model metadata, in its currency; a model without prices costs 0. Days are those of UTC.",
      ),
    ],
  };
};

function totals(usage: UsageReport | undefined): View {
  const { requests = 0, prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0, cost = 0 } = usage?.total ?? {};
  const tile = (name: string, value: string) =>
    h(
      "div",
      { class: "tile" },
      h("div", { class: "tile-name" }, name),
      h("div", { class: "tile-value" }, usage === undefined ? "–" : value),
    );
  return h(
    "div",
    { class: "tiles" },
    tile("Cost", money(cost)),
    tile("Requests", count(requests)),
    tile("Tokens in", count(prompt_tokens)),
    tile("Of these cached", count(cached_tokens)),
    tile("Tokens out", count(completion_tokens)),
  );
}

/** A column for each day, the oldest first. */
function dayChart(usage: UsageReport | undefined): Children {
  const rows = (usage?.rows ?? []).slice(0, MOST_DAYS).toReversed();
  const dearest = rows.reduce((most, { cost }) => Math.max(most, cost), 0);
  const busiest = rows.reduce((most, { requests }) => Math.max(most, requests), 1);
  const heightOf = ({ cost, requests }: UsageRow) => (dearest > 0 ? cost / dearest : requests / busiest);
  return card(
    dearest > 0 ? "Cost by day" : "Requests by day",
    h(
      "ol",
      { class: "day-columns" },
      rows.length === 0 &&
        h("li", { class: "empty", key: "(none)" }, usage === undefined ? "Loading…" : "Nothing in this time."),
      rows.map((row) =>
        h(
          "li",
          {
            key: String(row.day),
            vars: { height: heightOf(row).toFixed(4) },
            title: `${row.day}: ${money(row.cost)}, ${grouped(row.requests)} requests`,
          },
          h("span", { class: "column", "aria-hidden": "true" }),
          h("span", { class: "column-value" }, dearest > 0 ? money(row.cost) : count(row.requests)),
          h("span", { class: "column-day" }, String(row.day).slice(5)),
        ),
      ),
    ),
  );
}

function usageTable(usage: UsageReport | undefined, by: readonly UsageGroup[]): View {
  const rows = usage?.rows.slice(0, MOST_ROWS) ?? [];
  const dearest = rows.reduce((most, { cost }) => Math.max(most, cost), 0);
  const shown = usage?.by.filter((name): name is UsageGroup => Object.hasOwn(GROUPS, name)) ?? by;
  const nameOf = (row: UsageRow, group: UsageGroup) => String(row[GROUPS[group].member] ?? "–");
  return table<UsageRow>({
    caption: "Usage",
    rows,
    keyOf: (row) => shown.map((group) => nameOf(row, group)).join("\n"),
    empty: usage === undefined ? "Loading…" : "Nothing in this time.",
    columns: [
      ...shown.map((group) => ({
        title: GROUPS[group].label,
        cell: (row: UsageRow) => nameCell(group, nameOf(row, group)),
      })),
      { title: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests) },
      { title: "Tokens in", isNumber: true, cell: ({ prompt_tokens }) => grouped(prompt_tokens) },
      { title: "Cached", isNumber: true, isExtra: true, cell: ({ cached_tokens }) => grouped(cached_tokens) },
      { title: "Tokens out", isNumber: true, cell: ({ completion_tokens }) => grouped(completion_tokens) },
      { title: "Cost", isNumber: true, cell: ({ cost }) => bar(dearest > 0 ? cost / dearest : 0, money(cost)) },
    ],
  });
}

function nameCell(group: UsageGroup, name: string): Children {
  const isFilter = (group === "key" || group === "model" || group === "backend") && !name.startsWith("(");
  return isFilter ? h("a", { href: linkTo("requests", undefined, { [group]: name }) }, name) : name;
}
