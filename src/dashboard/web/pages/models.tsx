// Models: which there are, where each is served, what was asked of it and what answers in its place.

import { useSignal } from "@preact/signals";
import type { BackendStatus, BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ModelStatistics, Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { useApp } from "../app/context.ts";
import { setting } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { count, failedShare, latency, money, NOTABLE_FAILURES, percent, rate } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Bar, Card, Head, Lines } from "../parts/card.tsx";
import { Field } from "../parts/field.tsx";
import { RequestsOf } from "../parts/link.tsx";
import { Mark, Marked, servingState } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { linkTo } from "../route.ts";

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

export function ModelsPage() {
  const { range } = useApp();
  const part = useSignal("");
  const backends = useResource<BackendStatusList>("admin/backends", { everyMs: 5_000 });
  const statistics = useResource<Pick<Statistics, "models">>(() => range.inWindow("admin/stats/models"), {
    everyMs: 10_000,
  });
  const usage = useResource<UsageReport>(() => `admin/usage?by=model&${range.query()}`, { everyMs: 15_000 });
  const fallback = useResource<SectionOf<unknown>>("admin/config/fallback");
  const aliases = useResource<SectionOf<unknown>>("admin/config/model_aliases");

  function modelRows(list: BackendStatusList): ModelRow[] {
    const standIns = chainsOf(fallback.data.value?.config);
    const counted = statistics.data.value?.models ?? [];
    const names = new Set([
      ...list.backends.flatMap(({ models }) => models),
      ...counted.map(({ model_id }) => model_id),
    ]);
    // What is counted without a name, such as "(other)", is no model.
    return [...names]
      .filter((name) => !name.startsWith("(") && name.toLowerCase().includes(part.value.toLowerCase()))
      .map((name) => ({
        name,
        backends: list.backends.filter(({ models }) => models.includes(name)),
        stats: counted.find(({ model_id }) => model_id === name),
        cost: usage.data.value?.rows.find(({ model_id }) => model_id === name)?.cost ?? 0,
        standIns: standIns[name] ?? [],
      }))
      .sort((a, b) => (b.stats?.total_requests ?? 0) - (a.stats?.total_requests ?? 0) || (a.name < b.name ? -1 : 1));
  }

  const rows = backends.data.value && modelRows(backends.data.value);
  const most = rows?.reduce((found, { stats }) => Math.max(found, stats?.total_requests ?? 0), 1) ?? 1;
  return (
    <>
      <Head title="Models">
        <Field id="part" label="Name contains" value={part.value} set={setting(part)} />
      </Head>
      <Trouble of={[backends, statistics, usage]} />
      <ModelTable rows={rows} most={most} />
      <Aliases config={aliases.data.value?.config} />
    </>
  );
}

function ModelTable({ rows, most }: { rows: readonly ModelRow[] | undefined; most: number }) {
  return (
    <Table
      caption="Models"
      rows={rows}
      keyOf={({ name }) => name}
      empty="No models yet. They come with the first health check of a backend."
      columns={[
        {
          title: "Model",
          cell: ({ name }) => <RequestsOf by="model" name={name} class="strong" />,
        },
        { title: "Served by", cell: ({ backends }) => <ServedBy backends={backends} /> },
        { title: "Fallback for", cell: ({ standIns }) => (standIns.length === 0 ? "–" : standIns.join(" → ")) },
        {
          title: "Requests",
          isNumber: true,
          cell: ({ stats }) => (
            <Bar share={(stats?.total_requests ?? 0) / most} text={count(stats?.total_requests ?? 0)} />
          ),
        },
        { title: "Failed", isNumber: true, cell: ({ stats }) => <FailedCell stats={stats} /> },
        { title: "Average", isNumber: true, cell: ({ stats }) => latency(stats?.avg_latency_ms, stats) },
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
          cell: ({ name }) => (
            <Button
              kind="small"
              label={`Playground with ${name}`}
              onClick={() => location.assign(linkTo("playground", undefined, { model: name }))}
            >
              Playground
            </Button>
          ),
        },
      ]}
    />
  );
}

function ServedBy({ backends }: Pick<ModelRow, "backends">) {
  if (backends.length === 0) return <Marked tone="bad" text="no backend now" />;
  return (
    <span class="list">
      {backends.map((backend) => {
        const { tone, text } = servingState(backend);
        return (
          <span key={`${backend.name} ${backend.phase}`} class={`marked ${tone}`} title={text}>
            <Mark tone={tone} />
            <span>{backend.name}</span>
            <span class="unseen"> ({text})</span>
          </span>
        );
      })}
    </span>
  );
}

function FailedCell({ stats }: Pick<ModelRow, "stats">) {
  if (stats === undefined || stats.total_requests === 0) return "–";
  const share = failedShare(stats);
  return <span class={share >= NOTABLE_FAILURES ? "bad-text" : undefined}>{percent(share)}</span>;
}

/** The chains of the section fallback, by model. */
function chainsOf(config: unknown): Readonly<Record<string, readonly string[]>> {
  const chains = (config as { fallback_chains?: unknown; chains?: unknown } | undefined) ?? {};
  const byModel = chains.fallback_chains ?? chains.chains;
  if (typeof byModel !== "object" || byModel === null) return {};
  const named = Object.entries(byModel).filter((entry): entry is [string, string[]] => Array.isArray(entry[1]));
  return Object.fromEntries(named.map(([model, names]) => [model, names.map(String)]));
}

function Aliases({ config }: { config: unknown }) {
  const entries = typeof config === "object" && config !== null ? Object.entries(config) : [];
  const plain = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  if (plain.length === 0) return null;
  return (
    <Card title="Other names">
      <Lines
        items={plain}
        keyOf={([alias]) => alias}
        empty=""
        line={([alias, model]) => (
          <>
            <code>{alias}</code> means <code>{model}</code>
          </>
        )}
      />
    </Card>
  );
}
