// Requests, by whatever one is looking for.

import { batch, type Signal } from "@preact/signals";
import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { RequestRow, Requests } from "../../../admin/request-schemas.ts";
import { messageOf } from "../app/api.ts";
import { useApp } from "../app/context.ts";
import { setting, useAtMost, useKept, useLive, useNow } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { ago, clockTime, count, dateTime, duration, grouped } from "../format.ts";
import { Button, Choice } from "../parts/button.tsx";
import { Bar, Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { List, useOrder } from "../parts/list.tsx";
import { OutcomeMark } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import type { Column, Sorting } from "../parts/table.tsx";
import { linkTo } from "../route.ts";
import { Chips } from "./request-chips.tsx";
import { FILTERS, Filters, filterQuery, type RequestFilters } from "./request-filters.tsx";
import { RequestGroups } from "./request-groups.tsx";

const FIRST_PAGE = 100;
const NEXT_PAGES = 1_000;
/** More rows are no list that is read; filters and groups find what is looked for. */
const MOST_ROWS = 100_000;

const VIEWS = [
  ["requests", "Requests"],
  ["groups", "Groups"],
] as const;

/** Rows behind the first page, and where they go on. */
interface OlderRows {
  rows: readonly RequestRow[];
  cursor: string | null;
  /** The time of all rows: while older ones are loaded, no newer ones come. */
  time: string;
}

/** The gateway has them by time and by duration, the largest first. */
function isByGateway({ title, isDescending }: Sorting): boolean {
  return isDescending && (title === "Duration" || title === "Time");
}

export function RequestsPage() {
  const { api, visits, range, toasts } = useApp();
  const { query } = visits.current.value.route;
  const filters = useKept<RequestFilters>("filters", () =>
    Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined])),
  );
  const view = useKept("view", () => (query.get("view") === "groups" ? "groups" : "requests"));
  const older = useKept<OlderRows | undefined>("older", () => undefined);
  const isFollowing = useKept("following", () => true);
  const order = useOrder();
  const list = useResource<Requests>(() => pagePath(FIRST_PAGE));
  const backends = useResource<BackendStatusList>("admin/backends");
  const keys = useResource<KeyList>("admin/keys");
  // Answered from memory, in milliseconds.
  const refresh = useAtMost(2_000, () => void list.refresh());
  useLive((event) => {
    if (event === "request" && isFollowing.value && older.value === undefined) refresh();
  });

  function pagePath(limit: number, cursor?: string): string {
    const parameters = filterQuery(filters.value);
    parameters.set("limit", String(limit));
    if (order.value?.title === "Duration" && order.value.isDescending) parameters.set("sort", "duration");
    if (cursor !== undefined) parameters.set("cursor", cursor);
    return `admin/requests?${older.value?.time ?? range.query()}&${parameters}`;
  }

  function change(name: keyof RequestFilters, value: string): void {
    batch(() => {
      filters.value = { ...filters.peek(), [name]: value };
      older.value = undefined;
    });
    visits.setQuery(filters.peek());
  }

  async function loadMore(cursor: string): Promise<void> {
    const { rows: before, time } = older.peek() ?? { rows: [], time: range.query(api.now()) };
    try {
      const { requests, next_cursor } = await api.get<Requests>(pagePath(NEXT_PAGES, cursor));
      older.value = { rows: [...before, ...requests], cursor: next_cursor, time };
    } catch (thrown) {
      toasts.say(messageOf(thrown), true);
    }
  }

  const { value: data } = list.data;
  const rows = data && withOlder(data.requests, older.value?.rows ?? []);
  const cursor = older.value === undefined ? (data?.next_cursor ?? null) : older.value.cursor;
  const isGroups = view.value === "groups";
  return (
    <>
      <Head title="Requests">
        <span class="faint">{data !== undefined && howMany(data)}</span>
        <Choice
          label="What the rows are"
          options={VIEWS}
          chosen={view.value}
          choose={(chosen) => {
            view.value = chosen === "groups" ? "groups" : "requests";
            visits.setQuery({ view: isGroups ? undefined : "groups" });
          }}
        />
        <FollowButton isFollowing={isFollowing} refresh={() => void list.refresh()} />
      </Head>
      <Chips filters={filters.value} change={change} />
      <details class="more-filters" open={FILTERS.some((name) => isTyped(name) && filters.value[name])}>
        <summary>More filters</summary>
        <Filters
          filters={filters.value}
          change={change}
          backends={backends.data.value?.backends ?? []}
          keys={keys.data.value?.keys ?? []}
        />
      </details>
      <Trouble of={[list]} />
      {isGroups ? (
        <RequestGroups
          caption="Groups of requests, the largest first"
          filters={filterQuery(filters.value).toString()}
          kept={filters.value}
          empty="No requests match. Choose a longer time or fewer filters."
        />
      ) : (
        <RequestList rows={rows} order={order} isWhole={cursor === null} />
      )}
      {!isGroups && cursor !== null && (rows?.length ?? 0) < MOST_ROWS && (
        <div class="row end">
          <Button onClick={() => void loadMore(cursor)}>Load {grouped(NEXT_PAGES)} more</Button>
        </div>
      )}
    </>
  );
}

/** A filter that no chip shows. */
function isTyped(name: string): boolean {
  return ["user", "code", "slower", "id"].includes(name);
}

/** The first page may have moved on since older rows were loaded. */
function withOlder(first: readonly RequestRow[], older: readonly RequestRow[]): readonly RequestRow[] {
  if (older.length === 0) return first;
  const known = new Set(first.map(({ id }) => id));
  return [...first, ...older.filter(({ id }) => !known.has(id))];
}

function FollowButton({ isFollowing, refresh }: { isFollowing: Signal<boolean>; refresh(): void }) {
  const set = setting(isFollowing);
  return (
    <Button
      kind="small"
      isPressed={isFollowing.value}
      onClick={() => {
        set(!isFollowing.value);
        if (isFollowing.value) refresh();
      }}
    >
      Follow
    </Button>
  );
}

/** The gateway ends its search when it has found very many, or has looked for long. */
function howMany({ total, searched_since: since }: Requests): string {
  return since === null
    ? `${grouped(total)} match`
    : `${grouped(total)} match since ${dateTime(since)}, maybe more before`;
}

interface RequestListProps {
  rows: readonly RequestRow[] | undefined;
  order: Signal<Sorting | undefined>;
  /** All that match are loaded. */
  isWhole: boolean;
}

function RequestList({ rows, order, isWhole }: RequestListProps) {
  const longest = rows?.reduce((most, { duration_ms }) => Math.max(most, duration_ms), 1) ?? 1;
  const sorting = order.value;
  const isPartly = sorting !== undefined && !isByGateway(sorting) && !isWhole;
  return (
    <List
      name="requests"
      caption="Requests"
      order={order}
      isSortedBy={isByGateway}
      rows={rows}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => linkTo("request", id)}
      empty="No requests match. Choose a longer time or fewer filters."
      columns={columnsOf(longest)}
    >
      {isPartly && <span class="faint">Sorted among the {grouped(rows?.length ?? 0)} loaded rows.</span>}
    </List>
  );
}

function columnsOf(longest: number): Column<RequestRow>[] {
  return [
    { title: "Time", value: ({ started_at }) => started_at, cell: (row) => <TimeCell {...row} /> },
    {
      title: "Outcome",
      value: ({ outcome, status }) => `${status ?? ""} ${outcome}`.trim(),
      cell: ({ outcome, status, failure, code }) => (
        <span title={code ?? failure ?? undefined}>
          <OutcomeMark outcome={outcome} status={status} />
        </span>
      ),
    },
    { title: "Model", value: ({ model }) => model, cell: (row) => <ModelCell {...row} /> },
    { title: "Backend", value: ({ backend }) => backend, cell: ({ backend }) => backend ?? "–" },
    {
      title: "Caller",
      isExtra: true,
      value: ({ key_id, client }) => key_id ?? client,
      cell: (row) => <CallerCell {...row} />,
    },
    { title: "Attempts", isNumber: true, value: ({ attempts }) => attempts, cell: ({ attempts }) => attempts },
    {
      title: "Duration",
      isNumber: true,
      value: ({ duration_ms }) => duration_ms,
      cell: ({ duration_ms }) => <Bar share={duration_ms / longest} text={duration(duration_ms)} />,
    },
    {
      title: "First token",
      isNumber: true,
      value: ({ first_byte_ms }) => first_byte_ms,
      cell: ({ first_byte_ms }) => (first_byte_ms === null ? "–" : duration(first_byte_ms)),
    },
    {
      title: "Tokens",
      isNumber: true,
      isExtra: true,
      value: ({ prompt_tokens, completion_tokens }) => (prompt_tokens ?? 0) + (completion_tokens ?? 0),
      cell: tokensText,
    },
    {
      title: "Id",
      isExtra: true,
      class: "id",
      value: ({ request_id }) => request_id,
      cell: ({ request_id }) => (
        <code class="clip" title={request_id}>
          {request_id}
        </code>
      ),
    },
  ];
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
