// Backends: how each is, taking one out, putting it back and weighing it, and the collection of their entries.

import { signal } from "@preact/signals";
import type { BackendStatus, BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { BackendStatistics } from "../../../admin/stats.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { setting, useAtMost, useLive } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { type EntryRows, readSection, requestsAt } from "../collections/collection.ts";
import { AddLink, EntryActions, EntryPages } from "../collections/collection-page.tsx";
import {
  clockTime,
  count,
  dateTime,
  duration,
  failedShare,
  longDuration,
  NOTABLE_FAILURES,
  percent,
  plural,
} from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Ago } from "../parts/ago.tsx";
import { Head } from "../parts/card.tsx";
import { Field } from "../parts/field.tsx";
import { RequestsOf } from "../parts/link.tsx";
import { backendState, CircuitMark, Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";
import { resettingCircuit } from "./circuit-reset.ts";

const MAX_WEIGHT = 100;

const BACKENDS: EntryRows<BackendStatus> = {
  page: "backends",
  article: "a",
  noun: "backend",
  idOf: ({ name }) => name,
  // A removed backend is not in the configuration any more.
  fixed: ({ phase, enabled }) => (phase === "draining" && enabled ? "removed" : undefined),
  idField: "name",
  async read(get, id) {
    const { schema, config, version } = await readSection<EntryValues[]>(get, "backends");
    const ids = config.map(({ name }) => String(name));
    return { schema: schema.items as FieldSchema, version, ids, entry: config.find(({ name }) => name === id) };
  },
  ...requestsAt("admin/backends"),
  removal: "It leaves the configuration and gets no new requests. Its statistics stay. A rollback brings it back.",
  forced: "Also while requests are in flight; they finish",
};

export function BackendsPage() {
  return (
    <EntryPages of={BACKENDS}>
      <BackendList />
    </EntryPages>
  );
}

function BackendList() {
  const { range } = useApp();
  const list = useResource<BackendStatusList>("admin/backends", { everyMs: 2_000 });
  const stats = useResource<{ backends: BackendStatistics[] }>(() => range.inWindow("admin/stats/backends"), {
    everyMs: 5_000,
  });
  const changed = useAtMost(500, () => void list.refresh());
  useLive((event) => {
    if (event !== "request") changed();
  });
  const { value: data } = list.data;
  const statsOf = ({ name }: BackendStatus) =>
    stats.data.value?.backends.find(({ backend_name }) => backend_name === name);
  return (
    <>
      <Head title="Backends">
        <span class="faint">{data !== undefined && `${data.askable_count} of ${data.total_count} can be asked `}</span>
        <AddLink of={BACKENDS} />
      </Head>
      <Trouble of={[list, stats]} />
      <Table
        caption="Backends"
        rows={data?.backends}
        keyOf={({ name, phase }) => `${name} ${phase}`}
        empty="There is no backend yet: add one."
        rowClass={({ enabled }) => (enabled ? undefined : "off")}
        columns={[
          { title: "Backend", class: "name", cell: (row) => <NameCell {...row} /> },
          { title: "State", cell: (row) => <StateCell {...row} /> },
          { title: "Circuit", cell: (row) => <CircuitCell {...row} /> },
          { title: "In flight", isNumber: true, cell: ({ in_flight }) => count(in_flight) },
          { title: "Requests", isNumber: true, cell: (row) => <RequestsCell stats={statsOf(row)} /> },
          { title: "Latency", isNumber: true, cell: (row) => <LatencyCell stats={statsOf(row)} /> },
          { title: "First token", isNumber: true, cell: (row) => <FirstTokenCell stats={statsOf(row)} /> },
          { title: "Weight", isNumber: true, cell: ({ weight }) => (weight === 0 ? "0 (standby)" : weight) },
          { title: "Actions", cell: (row) => <BackendActions {...row} /> },
        ]}
      />
    </>
  );
}

function NameCell({ name, url, type, models }: BackendStatus) {
  const served = models.length === 0 ? "no models yet" : models.join(", ");
  return (
    <>
      <RequestsOf by="backend" name={name} class="strong" />
      <div class="faint clip" title={`${url}\n${served}`}>
        {type} · {served}
      </div>
    </>
  );
}

function StateCell(row: BackendStatus) {
  const { tone, text } = backendState(row);
  const more = stateDetail(row, tone === "bad");
  return (
    <>
      <Marked tone={tone} text={text} />
      {more === undefined ? (
        <div class="faint clip">
          {row.last_check === null ? (
            "not checked yet"
          ) : (
            <>
              checked <Ago at={row.last_check} />
            </>
          )}
        </div>
      ) : (
        <div class="faint clip" title={more}>
          {more}
        </div>
      )}
    </>
  );
}

/** undefined: there is nothing to say but when it was checked. */
function stateDetail({ phase, in_flight, drain_remaining_ms: leftMs, last_error }: BackendStatus, isBad: boolean) {
  if (phase === "draining") {
    const limit = leftMs === null ? "no time limit" : `${longDuration(leftMs / 1000)} left`;
    return `${plural(in_flight, "request")} in flight, ${limit}`;
  }
  return isBad && last_error !== null ? last_error : undefined;
}

interface StatsProps {
  stats: BackendStatistics | undefined;
}

function RequestsCell({ stats }: StatsProps) {
  if (stats === undefined || stats.total_requests === 0) return "–";
  const failed = failedShare(stats);
  return (
    <>
      <div>{count(stats.total_requests)}</div>
      <div class={failed >= NOTABLE_FAILURES ? "bad-text" : "faint"}>{percent(failed)} failed</div>
    </>
  );
}

function LatencyCell({ stats }: StatsProps) {
  if (stats === undefined || stats.successful_requests === 0) return "–";
  return <Percentiles median={stats.p50_latency_ms} p95={stats.p95_latency_ms} />;
}

function FirstTokenCell({ stats }: StatsProps) {
  if (stats === undefined || stats.p50_first_token_ms === null || stats.p95_first_token_ms === null) return "–";
  return <Percentiles median={stats.p50_first_token_ms} p95={stats.p95_first_token_ms} />;
}

function Percentiles({ median, p95 }: { median: number; p95: number }) {
  return (
    <>
      <div>{duration(median)}</div>
      <div class="faint">p95 {duration(p95)}</div>
    </>
  );
}

function CircuitCell(row: BackendStatus) {
  const { name, circuit, circuit_since } = row;
  return (
    <>
      <CircuitMark circuit={circuit} />
      {circuit_since !== null && (
        <div class="faint" title={dateTime(circuit_since)}>
          since {clockTime(circuit_since)}
        </div>
      )}
      {circuit !== "closed" && (
        <ActionButton label={`Reset circuit of ${name}`} action={resettingCircuit(name)}>
          Reset circuit
        </ActionButton>
      )}
    </>
  );
}

function BackendActions(row: BackendStatus) {
  const { name, enabled } = row;
  const verb = enabled ? "Drain" : "Enable";
  return (
    <EntryActions of={BACKENDS} row={row}>
      <ActionButton label={`${verb} ${name}`} action={switching(row)}>
        {verb}
      </ActionButton>
      <ActionButton label={`Weight of ${name}`} action={weighing(row)}>
        Weight
      </ActionButton>
    </EntryActions>
  );
}

export function switching({ name, enabled, in_flight }: BackendStatus): Action {
  return {
    title: enabled ? `Drain ${name}` : `Enable ${name}`,
    text: enabled
      ? `It gets no new requests from now on; ${in_flight === 0 ? "none is" : `${count(in_flight)} in flight are`} finished there. It stays in the configuration.`
      : "It is checked at once, and gets requests as soon as it is ready.",
    verb: enabled ? "Drain" : "Enable",
    isDangerous: enabled,
    asked: () => ({ method: "PUT", path: pathOf(name), body: { enabled: !enabled } }),
  };
}

function weighing({ name, weight }: BackendStatus): Action {
  const wanted = signal(String(weight));
  return {
    title: `Weight of ${name}`,
    text: "Its share of the requests is its weight among those of the others (with the strategy WeightedRoundRobin). 0 means standby: it is asked when no other can be.",
    verb: "Set the weight",
    fields: () => (
      <Field
        id="weight"
        label={`Weight, 0 to ${MAX_WEIGHT}`}
        value={wanted.value}
        set={setting(wanted)}
        type="number"
        min={0}
        max={MAX_WEIGHT}
        step={1}
      />
    ),
    asked() {
      const text = wanted.value.trim();
      const value = Number(text);
      const isFine = text !== "" && Number.isInteger(value) && value >= 0 && value <= MAX_WEIGHT;
      return isFine ? { method: "PUT", path: `${pathOf(name)}/weight`, body: { weight: value } } : undefined;
    },
  };
}

function pathOf(name: string): string {
  return `admin/backends/${encodeURIComponent(name)}`;
}
