// Errors: what clients were answered with lately, of which kind and from where.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ErrorRecord, ErrorStatistics, RecentErrors } from "../../../admin/errors.ts";
import { atMost, type MakePage, type PageContext, resource } from "../context.ts";
import { ago, dateTime, grouped, plural, words } from "../format.ts";
import { bar, button, card, choice, select, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type Children, h, type View } from "../view.ts";

const WINDOWS = [
  ["30m", "30 min"],
  ["1h", "1 h"],
  ["24h", "24 h"],
  ["7d", "7 d"],
] as const;

const SHOWN = 100;

/** For POST /admin/debug/error. */
const TEST_TYPES = ["timeout", "connection_error", "circuit_open", "status_429", "status_500", "status_503"] as const;

export const errorsPage: MakePage = (context) => {
  const chosen = {
    window: "24h",
    type: context.route.query.get("type") ?? "",
    backend: context.route.query.get("backend") ?? "",
  };
  const stats = resource<ErrorStatistics>(context, () => `admin/errors/stats?window=${chosen.window}`, {
    everyMs: 10_000,
  });
  const list = resource<RecentErrors>(context, () => pathOf(chosen), { everyMs: 10_000 });
  const backends = resource<BackendStatusList>(context, () => "admin/backends");
  const again = atMost(2_000, () => void Promise.all([list.refresh(), stats.refresh()]), context);
  context.onLeave(
    context.live.listen((event, data) => {
      if (event === "request" && (data as { failed: number }).failed > 0) again();
    }),
  );

  function change(more: Partial<typeof chosen>): void {
    Object.assign(chosen, more);
    history.replaceState(null, "", linkTo("errors", undefined, { type: chosen.type, backend: chosen.backend }));
    void Promise.all([list.refresh(), stats.refresh()]);
    context.redraw();
  }

  return {
    title: "Errors",
    view() {
      const types = Object.keys(stats.data?.by_type ?? {});
      const names = new Set([
        ...(backends.data?.backends ?? []).map(({ name }) => name),
        ...Object.keys(stats.data?.by_backend ?? {}),
      ]);
      const asOptions = (values: Iterable<string>) => [
        ["", "any"] as const,
        ...[...values].map((value) => [value, words(value)] as const),
      ];
      return [
        h(
          "div",
          { class: "head" },
          h("h1", { tabindex: "-1" }, "Errors"),
          h("span", { class: "faint" }, stats.data === undefined ? "" : plural(stats.data.total, "error")),
          choice("Time that is counted", WINDOWS, chosen.window, (window) => change({ window })),
          button("Record a test error", () => recordTest(context, [...names]), { kind: "small" }),
        ),
        trouble(list, stats),
        h(
          "div",
          { class: "columns three" },
          counts("By type", stats.data?.by_type, (type) => change({ type })),
          counts("By status", stats.data?.by_status),
          counts("By backend", stats.data?.by_backend, (backend) => change({ backend })),
        ),
        h(
          "div",
          { class: "filters" },
          select(
            "filter-type",
            "Type",
            asOptions(new Set([...types, ...(chosen.type === "" ? [] : [chosen.type])])),
            chosen.type,
            (type) => change({ type }),
          ),
          select(
            "filter-backend",
            "Backend",
            [["", "any"], ...[...names].map((name) => [name, name] as const)],
            chosen.backend,
            (backend) => change({ backend }),
          ),
        ),
        errorTable(list.data, context.now()),
      ];
    },
  };
};

function pathOf({ type, backend }: { type: string; backend: string }): string {
  const query = new URLSearchParams({ limit: String(SHOWN) });
  if (type !== "") query.set("type", type);
  if (backend !== "") query.set("backend", backend);
  return `admin/errors/recent?${query}`;
}

const MOST_COUNTS = 6;

function counts(
  title: string,
  byName: Readonly<Record<string, number>> | undefined,
  choose?: (name: string) => void,
): View {
  const sorted = Object.entries(byName ?? {}).sort(([, a], [, b]) => b - a);
  const most = sorted[0]?.[1] ?? 1;
  return card(
    title,
    h(
      "ul",
      { class: "lines" },
      sorted.length === 0 && h("li", { class: "empty", key: "(none)" }, byName === undefined ? "Loading…" : "None."),
      sorted.slice(0, MOST_COUNTS).map(([name, value]) =>
        h(
          "li",
          { key: name },
          choose === undefined
            ? h("span", { class: "grow" }, name)
            : h(
                "span",
                { class: "grow" },
                button(name, () => choose(name), { kind: "small", label: `Only ${name}` }),
              ),
          bar(value / most, grouped(value)),
        ),
      ),
    ),
  );
}

function errorTable(list: RecentErrors | undefined, nowMs: number): View {
  return table<ErrorRecord>({
    caption: "Errors, the newest first",
    rows: list?.errors ?? [],
    keyOf: ({ id, timestamp }) => `${id} ${timestamp}`,
    empty: list === undefined ? "Loading…" : "No error that is kept fits.",
    columns: [
      {
        title: "When",
        cell: ({ id, timestamp }) =>
          h("a", { href: linkTo("request", id), title: dateTime(timestamp) }, ago(Date.parse(timestamp), nowMs)),
      },
      { title: "Status", isNumber: true, cell: ({ status }) => status },
      {
        title: "Type",
        class: "roomy",
        cell: ({ type, code }) => h("span", { title: code === null ? undefined : String(code) }, words(type)),
      },
      { title: "What the client was told", class: "wide", cell: ({ message }) => message },
      { title: "Model", isExtra: true, cell: ({ model }) => model ?? "–" },
      { title: "Failed attempts", cell: ({ attempts }) => failedAttempts(attempts) },
    ],
  });
}

function failedAttempts(attempts: ErrorRecord["attempts"]): Children {
  if (attempts.length === 0) return "–";
  return attempts.map(({ backend, failure }) =>
    h("div", null, `${backend}: `, h("span", { class: "faint" }, words(failure))),
  );
}

function recordTest({ act, redraw }: PageContext, backends: readonly string[]): void {
  const wanted = { type: TEST_TYPES[0] as string, backend: backends[0] ?? "" };
  const set = (more: Partial<typeof wanted>) => {
    Object.assign(wanted, more);
    redraw();
  };
  act({
    title: "Record a test error",
    text: "It is listed and counted like a real one, for trying alarms; the backend and its circuit are left alone.",
    verb: "Record it",
    fields: () =>
      h(
        "div",
        { class: "row" },
        select(
          "test-type",
          "Type",
          TEST_TYPES.map((type) => [type, words(type)] as const),
          wanted.type,
          (type) => set({ type }),
        ),
        select(
          "test-backend",
          "Backend",
          backends.map((name) => [name, name] as const),
          wanted.backend,
          (backend) => set({ backend }),
        ),
      ),
    asked: () => (wanted.backend === "" ? undefined : { method: "POST", path: "admin/debug/error", body: wanted }),
  });
}
