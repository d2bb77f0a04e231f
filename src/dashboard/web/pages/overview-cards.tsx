// The latest backends, errors, models and requests on the overview.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { RecentErrors } from "../../../admin/errors.ts";
import type { Statistics } from "../../../admin/stats.ts";
import type { UsageReport } from "../../../admin/usage.ts";
import { count, duration, latency, money } from "../format.ts";
import { Ago } from "../parts/ago.tsx";
import { Card, Lines } from "../parts/card.tsx";
import { Link, RequestsOf } from "../parts/link.tsx";
import { Marked, OutcomeMark, servingState } from "../parts/marks.tsx";
import { Table } from "../parts/table.tsx";
import { endOf, type Recent } from "../recent.ts";

const MOST_MODELS = 5;

interface BackendCardProps {
  backends: BackendStatusList | undefined;
  statistics: Statistics | undefined;
}

export function BackendCard({ backends, statistics }: BackendCardProps) {
  const statsOf = (name: string) => statistics?.backends.find(({ backend_name }) => backend_name === name);
  return (
    <Card title="Backends" aside={<Link to="backends">View all</Link>}>
      <Table
        caption="Backends"
        rows={backends?.backends}
        keyOf={({ name, phase }) => `${name} ${phase}`}
        empty="No backends yet."
        columns={[
          {
            title: "Name",
            cell: ({ name }) => <RequestsOf by="backend" name={name} />,
          },
          { title: "State", cell: (row) => <Marked {...servingState(row)} /> },
          { title: "In flight", isNumber: true, cell: ({ in_flight }) => count(in_flight) },
          {
            title: "Requests",
            isNumber: true,
            isExtra: true,
            cell: ({ name }) => count(statsOf(name)?.total_requests ?? 0),
          },
          {
            title: "First token p95",
            isNumber: true,
            isExtra: true,
            cell: ({ name }) => latency(statsOf(name)?.p95_first_token_ms ?? undefined, statsOf(name)),
          },
          { title: "p95", isNumber: true, cell: ({ name }) => latency(statsOf(name)?.p95_latency_ms, statsOf(name)) },
        ]}
      />
    </Card>
  );
}

export function ErrorCard({ errors }: { errors: RecentErrors | undefined }) {
  return (
    <Card title="Latest errors" aside={<Link to="errors">View all</Link>}>
      <Lines
        items={errors?.errors}
        keyOf={({ id }) => id}
        empty="No errors since the start."
        line={({ id, status, message, timestamp }) => (
          <>
            <Link to="request" id={id} class="grow clip" title={message}>
              {status} {message}
            </Link>
            <span class="faint">
              <Ago at={timestamp} />
            </span>
          </>
        )}
      />
    </Card>
  );
}

export function ModelCard({ usage }: { usage: UsageReport | undefined }) {
  const busiest = usage?.rows.toSorted((left, right) => right.requests - left.requests).slice(0, MOST_MODELS);
  return (
    <Card title="Busiest models" aside={<Link to="models">View all</Link>}>
      <Table
        caption="Busiest models"
        rows={busiest}
        keyOf={({ model_id }) => String(model_id)}
        empty="No requests in this time."
        columns={[
          {
            title: "Model",
            cell: ({ model_id }) => <RequestsOf by="model" name={String(model_id)} />,
          },
          { title: "Requests", isNumber: true, cell: ({ requests }) => count(requests) },
          { title: "Tokens", isNumber: true, cell: (row) => count(row.prompt_tokens + row.completion_tokens) },
          { title: "Cost", isNumber: true, cell: ({ cost }) => money(cost) },
        ]}
      />
    </Card>
  );
}

export function LatestCard({ recent }: { recent: Recent }) {
  return (
    <Card title="Latest requests" aside={<Link to="requests">View all</Link>}>
      <Table
        caption="Latest requests"
        rows={recent.latest.value}
        keyOf={({ id }) => id}
        empty="No requests yet."
        columns={[
          {
            title: "Ended",
            cell: (row) => (
              <Link to="request" id={row.id}>
                <Ago at={endOf(row)} />
              </Link>
            ),
          },
          { title: "Outcome", cell: ({ outcome, status }) => <OutcomeMark outcome={outcome} status={status} /> },
          { title: "Model", cell: ({ model }) => model },
          { title: "Backend", isExtra: true, cell: ({ backend }) => backend ?? "–" },
          { title: "Attempts", isNumber: true, isExtra: true, cell: ({ attempts }) => attempts },
          { title: "Duration", isNumber: true, cell: ({ duration_ms }) => duration(duration_ms) },
        ]}
      />
    </Card>
  );
}
