// Errors: what clients were answered with lately, of which kind and from where.

import { signal } from "@preact/signals";
import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ErrorRecord, ErrorStatistics, RecentErrors } from "../../../admin/errors.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { useAtMost, useKept, useLive } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { grouped, plural, words } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Ago } from "../parts/ago.tsx";
import { Button, type ChoiceOption } from "../parts/button.tsx";
import { Bar, Card, Head, Lines } from "../parts/card.tsx";
import { Select } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { RequestGroups } from "./request-groups.tsx";

const SHOWN = 100;
const MOST_COUNTS = 6;
const GROUPS_SHOWN = 10;
const ANY = ["", "any"] as const;

const TEST_ERROR = { method: "POST", path: "admin/debug/error" };
const TEST_TYPES = ["timeout", "connection_error", "circuit_open", "status_429", "status_500", "status_503"] as const;

interface ErrorFilters {
  type: string;
  backend: string;
}

export function ErrorsPage() {
  const { visits, range } = useApp();
  const { query } = visits.current.value.route;
  const filters = useKept<ErrorFilters>("filters", () => ({
    type: query.get("type") ?? "",
    backend: query.get("backend") ?? "",
  }));
  const stats = useResource<ErrorStatistics>(() => range.inWindow("admin/errors/stats"), {
    everyMs: 10_000,
  });
  const list = useResource<RecentErrors>(() => pathOf(filters.value), { everyMs: 10_000 });
  const backends = useResource<BackendStatusList>("admin/backends");
  const refresh = useAtMost(2_000, () => void Promise.all([list.refresh(), stats.refresh()]));
  useLive((event, data) => {
    if (event === "request" && (data as { failed: number }).failed > 0) refresh();
  });

  function change(more: Partial<ErrorFilters>): void {
    filters.value = { ...filters.peek(), ...more };
    const { type, backend } = filters.peek();
    visits.setQuery({ type, backend });
  }

  const { type, backend } = filters.value;
  const { value: counted } = stats.data;
  const types = new Set([...Object.keys(counted?.by_type ?? {}), ...(type === "" ? [] : [type])]);
  const names = new Set([
    ...(backends.data.value?.backends ?? []).map(({ name }) => name),
    ...Object.keys(counted?.by_backend ?? {}),
  ]);
  return (
    <>
      <Head title="Errors">
        <span class="faint">{counted !== undefined && plural(counted.total, "error")}</span>
        <ActionButton action={recordingTest([...names])} needs={TEST_ERROR}>
          Record a test error
        </ActionButton>
      </Head>
      <Trouble of={[list, stats]} />
      <Card title="Failed requests">
        <RequestGroups
          caption="Failed requests, the largest group first"
          filters="outcome=failed"
          most={GROUPS_SHOWN}
          empty="No failed requests in this time."
        />
      </Card>
      <Card title="Refused requests">
        <RequestGroups
          caption="Refused requests, the largest group first"
          filters="outcome=refused"
          most={GROUPS_SHOWN}
          empty="No refused requests in this time."
        />
      </Card>
      <div class="columns three">
        <Counts title="By type" byName={counted?.by_type} choose={(chosen) => change({ type: chosen })} />
        <Counts title="By status" byName={counted?.by_status} />
        <Counts title="By backend" byName={counted?.by_backend} choose={(chosen) => change({ backend: chosen })} />
      </div>
      <div class="filters">
        <Select
          id="filter-type"
          label="Type"
          options={[ANY, ...inWords(types)]}
          value={type}
          set={(chosen) => change({ type: chosen })}
        />
        <Select
          id="filter-backend"
          label="Backend"
          options={[ANY, ...[...names].map((name) => [name, name] as const)]}
          value={backend}
          set={(chosen) => change({ backend: chosen })}
        />
      </div>
      <Table
        caption="Errors, the newest first"
        rows={list.data.value?.errors}
        keyOf={({ id, timestamp }) => `${id} ${timestamp}`}
        empty="No errors match. Errors are listed when clients are answered with them."
        columns={COLUMNS}
      />
    </>
  );
}

function inWords(names: Iterable<string>): ChoiceOption[] {
  return [...names].map((name) => [name, words(name)]);
}

function pathOf({ type, backend }: ErrorFilters): string {
  const query = new URLSearchParams({ limit: String(SHOWN) });
  if (type !== "") query.set("type", type);
  if (backend !== "") query.set("backend", backend);
  return `admin/errors/recent?${query}`;
}

interface CountsProps {
  title: string;
  byName: Readonly<Record<string, number>> | undefined;
  choose?: (name: string) => void;
}

function Counts({ title, byName, choose }: CountsProps) {
  const sorted = byName && Object.entries(byName).sort(([, a], [, b]) => b - a);
  const most = sorted?.[0]?.[1] ?? 1;
  return (
    <Card title={title}>
      <Lines
        items={sorted?.slice(0, MOST_COUNTS)}
        keyOf={([name]) => name}
        empty="None."
        line={([name, value]) => (
          <>
            <span class="grow">
              {choose === undefined ? (
                name
              ) : (
                <Button kind="small" label={`Only ${name}`} onClick={() => choose(name)}>
                  {name}
                </Button>
              )}
            </span>
            <Bar share={value / most} text={grouped(value)} />
          </>
        )}
      />
    </Card>
  );
}

const COLUMNS: readonly Column<ErrorRecord>[] = [
  {
    title: "When",
    cell: ({ id, timestamp }) => (
      <Link to="request" id={id}>
        <Ago at={timestamp} />
      </Link>
    ),
  },
  { title: "Status", isNumber: true, cell: ({ status }) => status },
  {
    title: "Type",
    class: "roomy",
    cell: ({ type, code }) => <span title={code === null ? undefined : String(code)}>{words(type)}</span>,
  },
  { title: "Message to the client", class: "wide", cell: ({ message }) => message },
  { title: "Model", isExtra: true, cell: ({ model }) => model ?? "–" },
  {
    title: "Failed attempts",
    cell: ({ attempts }) =>
      attempts.length === 0
        ? "–"
        : attempts.map(({ backend, failure }, index) => (
            <div key={index}>
              {backend}: <span class="faint">{words(failure)}</span>
            </div>
          )),
  },
];

function recordingTest(backends: readonly string[]): Action {
  const wanted = signal({ type: TEST_TYPES[0] as string, backend: backends[0] ?? "" });
  const change = (more: Partial<typeof wanted.value>) => {
    wanted.value = { ...wanted.peek(), ...more };
  };
  return {
    title: "Record a test error",
    text: "It is listed and counted like a real one, for trying alarms; the backend and its circuit are left alone.",
    verb: "Record it",
    fields: () => (
      <div class="row">
        <Select
          id="test-type"
          label="Type"
          options={inWords(TEST_TYPES)}
          value={wanted.value.type}
          set={(type) => change({ type })}
        />
        <Select
          id="test-backend"
          label="Backend"
          options={backends.map((name) => [name, name])}
          value={wanted.value.backend}
          set={(backend) => change({ backend })}
        />
      </div>
    ),
    asked: () => (wanted.value.backend === "" ? undefined : { ...TEST_ERROR, body: wanted.value }),
  };
}
