// Usage: who has used what, and what it costs.

import type { UsageReport } from "../../../admin/usage.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { count, grouped, money } from "../format.ts";
import { Choice } from "../parts/button.tsx";
import { Bar, Head, Tile } from "../parts/card.tsx";
import { DayChart } from "../parts/day-chart.tsx";
import { RequestsOf } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";

type UsageRow = UsageReport["rows"][number];

/** What rows may be about, and the member that tells it. */
const GROUPS = {
  key: { label: "Key", member: "key_id" },
  user: { label: "User", member: "user_id" },
  organization: { label: "Organization", member: "organization_id" },
  model: { label: "Model", member: "model_id" },
  backend: { label: "Backend", member: "backend_name" },
  day: { label: "Day", member: "day" },
} as const;

type UsageGroup = keyof typeof GROUPS;

const GROUP_OPTIONS = Object.entries(GROUPS).map(([group, { label }]) => [group, label] as const);
const DAY_SECONDS = 86_400;
const MOST_GROUPS = 3;
const MOST_ROWS = 500;

function isGroup(name: string): name is UsageGroup {
  return Object.hasOwn(GROUPS, name);
}

export function UsagePage() {
  const { api, visits, range } = useApp();
  const { query } = visits.current.value.route;
  const by = useKept("by", () => (query.get("by")?.split(",") ?? ["key", "model"]).filter(isGroup));
  const path = () => `admin/usage?by=${by.value.join(",")}&${range.query()}`;
  const usage = useResource<UsageReport>(path, { everyMs: 15_000 });
  const days = useResource<UsageReport>(() => `admin/usage?by=day&${range.query()}`, { everyMs: 60_000 });

  function toggle(group: string): void {
    if (!isGroup(group)) return;
    const groups = by.value.includes(group)
      ? by.value.filter((each) => each !== group)
      : [...by.value, group].slice(-MOST_GROUPS);
    if (groups.length === 0) return;
    by.value = groups;
    visits.setQuery({ by: groups.join(",") });
  }

  const { value: data } = usage.data;
  return (
    <>
      <Head title="Usage and cost" tab="Usage">
        <a class="button" href={new URL(`${path()}&format=csv`, api.base).href} download="">
          CSV
        </a>
      </Head>
      <div class="row">
        <span class="faint">By, up to {MOST_GROUPS}:</span>
        <Choice label="Group by" options={GROUP_OPTIONS} chosen={by.value} choose={toggle} />
      </div>
      <Trouble of={[usage, days]} />
      <Totals usage={data} />
      {range.seconds() > 2 * DAY_SECONDS && <DayChart rows={days.data.value?.rows} />}
      <UsageTable usage={data} by={by.value} />
      <p class="faint">Prices are those of the model metadata. {unpricedText(data)} Days are those of UTC.</p>
    </>
  );
}

function unpricedText(usage: UsageReport | undefined): string {
  const models = usage?.unpriced_models ?? [];
  return models.length === 0 ? "All models have a price." : `Without a price, and so at no cost: ${models.join(", ")}.`;
}

function Totals({ usage }: { usage: UsageReport | undefined }) {
  const total = usage?.total;
  const text = (value: number | undefined, format: (value: number) => string) =>
    value === undefined ? "–" : format(value);
  return (
    <div class="tiles">
      <Tile name="Cost" value={text(total?.cost, (cost) => `${money(cost)} ${usage?.currency}`)} />
      <Tile name="Requests" value={text(total?.requests, count)} />
      <Tile name="Tokens in" value={text(total?.prompt_tokens, count)} />
      <Tile name="Cached tokens" value={text(total?.cached_tokens, count)} />
      <Tile name="Tokens out" value={text(total?.completion_tokens, count)} />
    </div>
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
      empty="No usage in this time."
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
