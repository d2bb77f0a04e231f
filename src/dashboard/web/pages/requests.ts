// Requests, by whatever one is looking for.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { RequestRow, Requests } from "../../../admin/request-schemas.ts";
import { atMost, type MakePage, type PageContext, resource } from "../context.ts";
import { ago, clockTime, count, dateTime, duration, grouped } from "../format.ts";
import { outcomeMark } from "../marks.ts";
import { bar, button, field, select, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type Children, h, type View } from "../view.ts";

const PAGE_SIZE = 50;

/** Suggestions; every status and class of them may be asked for. */
const STATUSES = ["2xx", "4xx", "429", "499", "5xx"] as const;
const STATUS = /^[1-5](?:xx|\d\d)$/;

const TIMES = [
  ["", "any"],
  ["60000", "last minute"],
  ["300000", "last 5 min"],
  ["900000", "last 15 min"],
  ["3600000", "last hour"],
  ["86400000", "last day"],
] as const;

const OUTCOMES = [
  ["", "any"],
  ["succeeded", "ok"],
  ["refused", "refused"],
  ["failed", "failed"],
  ["stream_broken", "broke off"],
  ["client_left", "client left"],
  ["running", "running"],
] as const;

/** Names of the filters in the address of the page. */
const FILTERS = [
  "model",
  "backend",
  "key",
  "user",
  "organization",
  "outcome",
  "status",
  "slower",
  "time",
  "id",
] as const;
type Filters = Partial<Record<(typeof FILTERS)[number], string>>;

export const requestsPage: MakePage = (context) => {
  const filters: Filters = Object.fromEntries(
    FILTERS.map((name) => [name, context.route.query.get(name) ?? undefined]),
  );
  /** Of the pages that were left behind, the one shown last. */
  const cursors: string[] = [];
  let isFollowing = true;

  const list = resource<Requests>(context, () => pathOf(filters, cursors.at(-1), context.now()));
  const backends = resource<BackendStatusList>(context, () => "admin/backends");
  const keys = resource<KeyList>(context, () => "admin/keys");
  // Answered from memory, in milliseconds.
  const again = atMost(2_000, () => void list.refresh(), context);
  context.onLeave(
    context.live.listen((event) => {
      if (event === "request" && isFollowing && cursors.length === 0) again();
    }),
  );
  const typed = atMost(250, () => void list.refresh(), context);

  function change(name: keyof Filters, value: string): void {
    filters[name] = value;
    cursors.length = 0;
    const link = linkTo("requests", undefined, filters);
    history.replaceState(null, "", link);
    typed();
    context.redraw();
  }

  function goTo(cursor: string | undefined): void {
    if (cursor === undefined) cursors.pop();
    else cursors.push(cursor);
    void list.refresh();
  }

  return {
    title: "Requests",
    view: () => [
      h(
        "div",
        { class: "head" },
        h("h1", { tabindex: "-1" }, "Requests"),
        h("span", { class: "faint" }, list.data === undefined ? "" : howMany(list.data)),
        button(
          "Follow",
          () => {
            isFollowing = !isFollowing;
            if (isFollowing) void list.refresh();
            context.redraw();
          },
          { kind: "small", pressed: isFollowing },
        ),
      ),
      filterRow(filters, change, { backends: backends.data, keys: keys.data, rows: list.data?.requests }),
      trouble(list),
      requestTable(list.data, context),
      h(
        "div",
        { class: "row end" },
        button("Newer", () => goTo(undefined), { disabled: cursors.length === 0 }),
        button("Older", () => goTo(list.data?.next_cursor ?? undefined), {
          disabled: (list.data?.next_cursor ?? null) === null,
        }),
      ),
    ],
  };
};

/** The gateway ends its search when it has found very many, or has looked for long. */
function howMany({ total, searched_since: since }: Requests): string {
  return since === null ? `${grouped(total)} fit` : `${grouped(total)} fit since ${dateTime(since)}, maybe more before`;
}

/** The path that asks for just these. */
function pathOf(filters: Filters, cursor: string | undefined, nowMs: number): string {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE) });
  const { time, slower, status, ...plain } = filters;
  for (const [name, value] of Object.entries(plain)) if (value) query.set(name, value);
  // What is not written to its end yet is no filter.
  if (status !== undefined && STATUS.test(status)) query.set("status", status);
  const slowerMs = Number(slower);
  if (slower && Number.isInteger(slowerMs) && slowerMs >= 0) query.set("min_duration_ms", slower);
  if (time && Number(time) > 0) query.set("since", String(Math.round(nowMs - Number(time))));
  if (cursor !== undefined) query.set("cursor", cursor);
  return `admin/requests?${query}`;
}

interface Known {
  backends: BackendStatusList | undefined;
  keys: KeyList | undefined;
  rows: readonly RequestRow[] | undefined;
}

function filterRow(filters: Filters, change: (name: keyof Filters, value: string) => void, known: Known): View {
  const { backends, keys } = known;
  const models = [...new Set((backends?.backends ?? []).flatMap((row) => row.models))].sort();
  const text = (name: keyof Filters, label: string, options: Parameters<typeof field>[4]) =>
    field(`filter-${name}`, label, filters[name] ?? "", (value) => change(name, value), options);
  return h(
    "form",
    {
      class: "filters",
      role: "search",
      "aria-label": "Requests to show",
      onsubmit: (event: Event) => event.preventDefault(),
    },
    text("model", "Model", { list: models }),
    text("backend", "Backend", { list: (backends?.backends ?? []).map(({ name }) => name) }),
    text("key", "Key", { list: (keys?.keys ?? []).map(({ id }) => id) }),
    text("user", "User", {}),
    text("organization", "Organization", {}),
    select("filter-outcome", "Outcome", OUTCOMES, filters.outcome ?? "", (value) => change("outcome", value)),
    text("status", "Status", { list: STATUSES, placeholder: "502 or 5xx" }),
    text("slower", "Slower than, ms", { type: "number", min: 0, step: 1 }),
    select("filter-time", "Time", TIMES, filters.time ?? "", (value) => change("time", value)),
    text("id", "Part of its id", {}),
  );
}

function requestTable(list: Requests | undefined, { now }: PageContext): View {
  const rows = list?.requests ?? [];
  const longest = rows.reduce((most, { duration_ms }) => Math.max(most, duration_ms), 1);
  return table({
    caption: "Requests, the newest first",
    rows,
    keyOf: ({ id }) => id,
    empty: list === undefined ? "Loading…" : "No request that is kept fits.",
    columns: [
      {
        title: "Time",
        cell: (row) =>
          h(
            "a",
            {
              href: linkTo("request", row.id),
              title: `${dateTime(row.started_at)} · ${ago(Date.parse(row.started_at), now())}`,
            },
            clockTime(row.started_at),
          ),
      },
      { title: "Outcome", cell: outcomeCell },
      { title: "Model", cell: modelCell },
      { title: "Backend", cell: ({ backend }) => backend ?? "–" },
      { title: "Caller", isExtra: true, cell: callerCell },
      { title: "Tries", isNumber: true, cell: ({ attempts }) => attempts },
      {
        title: "Duration",
        isNumber: true,
        cell: ({ duration_ms }) => bar(duration_ms / longest, duration(duration_ms)),
      },
      {
        title: "First byte",
        isNumber: true,
        cell: ({ first_byte_ms }) => (first_byte_ms === null ? "–" : duration(first_byte_ms)),
      },
      { title: "Tokens", isNumber: true, isExtra: true, cell: tokensCell },
      {
        title: "Id",
        isExtra: true,
        class: "id",
        cell: ({ request_id }) => h("code", { class: "clip", title: request_id }, request_id),
      },
    ],
  });
}

function outcomeCell({ outcome, status, failure, code }: RequestRow): Children {
  return h("span", { title: code ?? failure ?? undefined }, outcomeMark(outcome, status));
}

function modelCell({ model, answered_by, operation, target }: RequestRow): Children {
  if (model === "" && target !== null) return h("code", { class: "clip", title: target }, target);
  return h(
    "span",
    { title: operation },
    model,
    answered_by !== null && answered_by !== model && h("span", { class: "faint" }, ` → ${answered_by}`),
  );
}

/** Its key, else its address. */
function callerCell({ key_id, user_id, organization_id, client }: RequestRow): Children {
  const more = [organization_id, user_id, client].filter((name) => name !== null).join(" · ");
  return h("span", { title: more === "" ? undefined : more }, key_id ?? client ?? "–");
}

function tokensCell({ prompt_tokens, completion_tokens }: RequestRow): string {
  if (prompt_tokens === null && completion_tokens === null) return "–";
  return `${count(prompt_tokens ?? 0)} / ${count(completion_tokens ?? 0)}`;
}
