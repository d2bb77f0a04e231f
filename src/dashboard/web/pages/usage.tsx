// Usage: who has used what, and what it costs.

import type { UsageReport } from "../../../admin/usage.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { count, grouped, money } from "../format.ts";
import { Choice } from "../parts/button.tsx";
import { Bar, Card, Head, Tile } from "../parts/card.tsx";
import { RequestsOf } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { linkTo } from "../route.ts";

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

const GROUP_OPTIONS = Object.entries(GROUPS).map(([group, { label }]) => [group, label] as const);
const MOST_GROUPS = 3;
const MOST_DAYS = 30;
const MOST_ROWS = 500;

function isGroup(name: string): name is UsageGroup {
  return Object.hasOwn(GROUPS, name);
}

export function UsagePage() {
  const { api, visits } = useApp();
  const { query } = visits.current.value.route;
  const by = useKept("by", () => (query.get("by")?.split(",") ?? ["key", "model"]).filter(isGroup));
  const window = useKept("window", () => WINDOWS.find(([value]) => value === query.get("window"))?.[0] ?? "30d");
  const path = () => `admin/usage?by=${by.value.join(",")}&window=${window.value}`;
  const usage = useResource<UsageReport>(path, { everyMs: 15_000 });
  const days = useResource<UsageReport>(() => `admin/usage?by=day&window=${window.value}`, { everyMs: 60_000 });

  function change(groups: UsageGroup[], chosen: string): void {
    by.value = groups;
    window.value = chosen as typeof window.value;
    history.replaceState(null, "", linkTo("usage", undefined, { by: groups.join(","), window: chosen }));
  }

  function toggle(group: string): void {
    if (!isGroup(group)) return;
    const groups = by.value.includes(group)
      ? by.value.filter((each) => each !== group)
      : [...by.value, group].slice(-MOST_GROUPS);
    if (groups.length > 0) change(groups, window.value);
  }

  const { value: data } = usage.data;
  return (
    <>
      <Head title="Usage and cost" tab="Usage">
        <Choice label="Time" options={WINDOWS} chosen={window.value} choose={(chosen) => change(by.value, chosen)} />
        <a class="button" href={new URL(`${path()}&format=csv`, api.base).href} download="">
          CSV
        </a>
      </Head>
      <div class="row">
        <span class="faint">By, up to {MOST_GROUPS}:</span>
        <Choice label="What the rows are about" options={GROUP_OPTIONS} chosen={by.value} choose={toggle} />
      </div>
      <Trouble of={[usage, days]} />
      <Totals usage={data} />
      <DayChart usage={days.data.value} />
      <UsageTable usage={data} by={by.value} />
      <p class="faint">
        Prices are those of the model metadata, in its currency; a model without prices costs 0. Days are those of UTC.
      </p>
    </>
  );
}

function Totals({ usage }: { usage: UsageReport | undefined }) {
  const total = usage?.total;
  const text = (value: number | undefined, format: (value: number) => string) =>
    value === undefined ? "–" : format(value);
  return (
    <div class="tiles">
      <Tile name="Cost" value={text(total?.cost, money)} />
      <Tile name="Requests" value={text(total?.requests, count)} />
      <Tile name="Tokens in" value={text(total?.prompt_tokens, count)} />
      <Tile name="Of these cached" value={text(total?.cached_tokens, count)} />
      <Tile name="Tokens out" value={text(total?.completion_tokens, count)} />
    </div>
  );
}

/** A column for each day, the oldest first. */
function DayChart({ usage }: { usage: UsageReport | undefined }) {
  const rows = (usage?.rows ?? []).slice(0, MOST_DAYS).toReversed();
  const dearest = rows.reduce((most, { cost }) => Math.max(most, cost), 0);
  const busiest = rows.reduce((most, { requests }) => Math.max(most, requests), 1);
  const heightOf = ({ cost, requests }: UsageRow) => (dearest > 0 ? cost / dearest : requests / busiest);
  return (
    <Card title={dearest > 0 ? "Cost by day" : "Requests by day"}>
      <ol class="day-columns">
        {rows.length === 0 && <li class="empty">{usage === undefined ? "Loading…" : "Nothing in this time."}</li>}
        {rows.map((row) => (
          <li
            key={row.day}
            style={{ "--height": heightOf(row).toFixed(4) }}
            title={`${row.day}: ${money(row.cost)}, ${grouped(row.requests)} requests`}
          >
            <span class="column" aria-hidden="true" />
            <span class="column-value">{dearest > 0 ? money(row.cost) : count(row.requests)}</span>
            <span class="column-day">{String(row.day).slice(5)}</span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function UsageTable({ usage, by }: { usage: UsageReport | undefined; by: readonly UsageGroup[] }) {
  const rows = usage?.rows.slice(0, MOST_ROWS);
  const dearest = rows?.reduce((most, { cost }) => Math.max(most, cost), 0) ?? 0;
  const shown = usage?.by.filter(isGroup) ?? by;
  const nameOf = (row: UsageRow, group: UsageGroup) => String(row[GROUPS[group].member] ?? "–");
  return (
    <Table<UsageRow>
      caption="Usage"
      rows={rows}
      keyOf={(row) => shown.map((group) => nameOf(row, group)).join("\n")}
      empty="Nothing in this time."
      columns={[
        ...shown.map((group) => ({
          title: GROUPS[group].label,
          cell: (row: UsageRow) => <NameCell group={group} name={nameOf(row, group)} />,
        })),
        { title: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests) },
        { title: "Tokens in", isNumber: true, cell: ({ prompt_tokens }) => grouped(prompt_tokens) },
        { title: "Cached", isNumber: true, isExtra: true, cell: ({ cached_tokens }) => grouped(cached_tokens) },
        { title: "Tokens out", isNumber: true, cell: ({ completion_tokens }) => grouped(completion_tokens) },
        {
          title: "Cost",
          isNumber: true,
          cell: ({ cost }) => <Bar share={dearest > 0 ? cost / dearest : 0} text={money(cost)} />,
        },
      ]}
    />
  );
}

function NameCell({ group, name }: { group: UsageGroup; name: string }) {
  const isFilter = (group === "key" || group === "model" || group === "backend") && !name.startsWith("(");
  return isFilter ? <RequestsOf by={group} name={name} /> : name;
}
