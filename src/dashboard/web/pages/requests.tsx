// Requests, by whatever one is looking for.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { RequestRow, Requests } from "../../../admin/request-schemas.ts";
import { useApp } from "../app/context.ts";
import { useAtMost, useKept, useLive, useNow } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { ago, clockTime, count, dateTime, duration, grouped } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Bar, Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { OutcomeMark } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { FILTERS, Filters, pathOf, type RequestFilters } from "./request-filters.tsx";

export function RequestsPage() {
  const { visits, range } = useApp();
  const { query } = visits.current.value.route;
  const filters = useKept<RequestFilters>("filters", () =>
    Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined])),
  );
  /** Of the pages that were left behind, the one shown last. */
  const cursors = useKept<readonly string[]>("cursors", () => []);
  const isFollowing = useKept("following", () => true);
  const list = useResource<Requests>(() => pathOf(filters.value, cursors.value.at(-1), range.query()));
  const backends = useResource<BackendStatusList>("admin/backends");
  const keys = useResource<KeyList>("admin/keys");
  // Answered from memory, in milliseconds.
  const refresh = useAtMost(2_000, () => void list.refresh());
  useLive((event) => {
    if (event === "request" && isFollowing.value && cursors.value.length === 0) refresh();
  });

  function change(name: keyof RequestFilters, value: string): void {
    filters.value = { ...filters.peek(), [name]: value };
    cursors.value = [];
    visits.setQuery(filters.peek());
  }

  const { value: data } = list.data;
  const older = data?.next_cursor ?? null;
  return (
    <>
      <Head title="Requests">
        <span class="faint">{data !== undefined && howMany(data)}</span>
        <Button
          kind="small"
          isPressed={isFollowing.value}
          onClick={() => {
            isFollowing.value = !isFollowing.value;
            if (isFollowing.value) void list.refresh();
          }}
        >
          Follow
        </Button>
      </Head>
      <Filters
        filters={filters.value}
        change={change}
        backends={backends.data.value?.backends ?? []}
        keys={keys.data.value?.keys ?? []}
      />
      <Trouble of={[list]} />
      <RequestTable rows={data?.requests} />
      <div class="row end">
        <Button
          isDisabled={cursors.value.length === 0}
          onClick={() => {
            cursors.value = cursors.value.slice(0, -1);
          }}
        >
          Newer
        </Button>
        <Button
          isDisabled={older === null}
          onClick={() => {
            if (older !== null) cursors.value = [...cursors.value, older];
          }}
        >
          Older
        </Button>
      </div>
    </>
  );
}

/** The gateway ends its search when it has found very many, or has looked for long. */
function howMany({ total, searched_since: since }: Requests): string {
  return since === null ? `${grouped(total)} fit` : `${grouped(total)} fit since ${dateTime(since)}, maybe more before`;
}

function RequestTable({ rows }: { rows: readonly RequestRow[] | undefined }) {
  const longest = rows?.reduce((most, { duration_ms }) => Math.max(most, duration_ms), 1) ?? 1;
  return (
    <Table
      caption="Requests, the newest first"
      rows={rows}
      keyOf={({ id }) => id}
      empty="No request that is kept fits."
      columns={[
        { title: "Time", cell: (row) => <TimeCell {...row} /> },
        {
          title: "Outcome",
          cell: ({ outcome, status, failure, code }) => (
            <span title={code ?? failure ?? undefined}>
              <OutcomeMark outcome={outcome} status={status} />
            </span>
          ),
        },
        { title: "Model", cell: (row) => <ModelCell {...row} /> },
        { title: "Backend", cell: ({ backend }) => backend ?? "–" },
        { title: "Caller", isExtra: true, cell: (row) => <CallerCell {...row} /> },
        { title: "Tries", isNumber: true, cell: ({ attempts }) => attempts },
        {
          title: "Duration",
          isNumber: true,
          cell: ({ duration_ms }) => <Bar share={duration_ms / longest} text={duration(duration_ms)} />,
        },
        {
          title: "First byte",
          isNumber: true,
          cell: ({ first_byte_ms }) => (first_byte_ms === null ? "–" : duration(first_byte_ms)),
        },
        { title: "Tokens", isNumber: true, isExtra: true, cell: tokensText },
        {
          title: "Id",
          isExtra: true,
          class: "id",
          cell: ({ request_id }) => (
            <code class="clip" title={request_id}>
              {request_id}
            </code>
          ),
        },
      ]}
    />
  );
}

function TimeCell({ id, started_at }: RequestRow) {
  return (
    <Link to="request" id={id} title={`${dateTime(started_at)} · ${ago(Date.parse(started_at), useNow())}`}>
      {clockTime(started_at)}
    </Link>
  );
}

function ModelCell({ model, answered_by, operation, target }: RequestRow) {
  if (model === "" && target !== null) {
    return (
      <code class="clip" title={target}>
        {target}
      </code>
    );
  }
  return (
    <span title={operation}>
      {model}
      {answered_by !== null && answered_by !== model && <span class="faint"> → {answered_by}</span>}
    </span>
  );
}

/** Its key, else its address. */
function CallerCell({ key_id, user_id, organization_id, client }: RequestRow) {
  const more = [organization_id, user_id, client].filter((name) => name !== null).join(" · ");
  return <span title={more === "" ? undefined : more}>{key_id ?? client ?? "–"}</span>;
}

function tokensText({ prompt_tokens, completion_tokens }: RequestRow): string {
  if (prompt_tokens === null && completion_tokens === null) return "–";
  return `${count(prompt_tokens ?? 0)} / ${count(completion_tokens ?? 0)}`;
}
