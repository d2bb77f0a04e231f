// Backends: how each is, and taking one out, putting it back and weighing it.

import type { BackendStatus, BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { BackendStatistics } from "../../../admin/stats.ts";
import { atMost, type MakePage, type PageContext, resource } from "../context.ts";
import { ago, count, duration, failedShare, longDuration, NOTABLE_FAILURES, percent } from "../format.ts";
import { backendState, circuitMark, marked } from "../marks.ts";
import { button, field, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type Children, h } from "../view.ts";

const MAX_WEIGHT = 100;

type BackendTableRow = BackendStatus & { stats: BackendStatistics | undefined };

export const backendsPage: MakePage = (context) => {
  const list = resource<BackendStatusList>(context, () => "admin/backends", { everyMs: 2_000 });
  const stats = resource<{ backends: BackendStatistics[] }>(context, () => "admin/stats/backends?window=1h", {
    everyMs: 5_000,
  });
  const changed = atMost(500, () => void list.refresh(), context);
  context.onLeave(
    context.live.listen((event) => {
      if (event !== "request") changed();
    }),
  );

  function withStats(backend: BackendStatus): BackendTableRow {
    return { ...backend, stats: stats.data?.backends.find(({ backend_name }) => backend_name === backend.name) };
  }

  return {
    title: "Backends",
    view() {
      const { data } = list;
      return [
        h(
          "div",
          { class: "head" },
          h("h1", { tabindex: "-1" }, "Backends"),
          h(
            "span",
            { class: "faint" },
            data === undefined
              ? ""
              : `${data.askable_count} of ${data.total_count} can be asked · numbers of the last hour`,
          ),
          h("a", { class: "button", href: linkTo("configuration", "backends") }, "Add or change"),
        ),
        trouble(list),
        table<BackendTableRow>({
          caption: "Backends",
          rows: (data?.backends ?? []).map(withStats),
          keyOf: ({ name, phase }) => `${name} ${phase}`,
          empty: data === undefined ? "Loading…" : "There is no backend yet: add one.",
          rowClass: ({ enabled }) => (enabled ? undefined : "off"),
          columns: [
            { title: "Backend", cell: nameCell },
            { title: "State", cell: (each) => stateCell(each, context.now()) },
            { title: "Circuit", cell: ({ circuit }) => circuitMark(circuit) },
            { title: "In flight", isNumber: true, cell: ({ in_flight }) => count(in_flight) },
            { title: "Requests", isNumber: true, cell: (each) => requestsCell(each.stats) },
            { title: "Latency", isNumber: true, cell: (each) => latencyCell(each.stats) },
            { title: "First token", isNumber: true, cell: (each) => firstTokenCell(each.stats) },
            { title: "Weight", isNumber: true, cell: ({ weight }) => (weight === 0 ? "0 (standby)" : weight) },
            { title: "Actions", cell: (each) => actions(context, each) },
          ],
        }),
      ];
    },
  };
};

function nameCell({ name, url, type, models }: BackendStatus): Children {
  const served = models.length === 0 ? "no models yet" : models.join(", ");
  return [
    h("a", { href: linkTo("requests", undefined, { backend: name }), class: "strong" }, name),
    h(
      "div",
      {
        class: "faint clip",
        title: `${url}
${served}`,
      },
      `${type} · ${served}`,
    ),
  ];
}

function stateCell(row: BackendStatus, nowMs: number): Children {
  const { tone, text } = backendState(row);
  const { last_check, last_error, phase, drain_remaining_ms } = row;
  const checked = last_check === null ? "not checked yet" : `checked ${ago(Date.parse(last_check), nowMs)}`;
  const left =
    drain_remaining_ms === null
      ? "until the last request is over"
      : `for ${longDuration(drain_remaining_ms / 1000)} at most`;
  const more = phase === "draining" ? left : tone === "bad" && last_error !== null ? last_error : checked;
  return [marked(tone, text), h("div", { class: "faint clip", title: more }, more)];
}

function requestsCell(stats: BackendStatistics | undefined): Children {
  if (stats === undefined || stats.total_requests === 0) return "–";
  const failed = failedShare(stats);
  return [
    h("div", null, count(stats.total_requests)),
    h("div", { class: failed >= NOTABLE_FAILURES ? "bad-text" : "faint" }, `${percent(failed)} failed`),
  ];
}

function latencyCell(stats: BackendStatistics | undefined): Children {
  if (stats === undefined || stats.successful_requests === 0) return "–";
  return [
    h("div", null, duration(stats.p50_latency_ms)),
    h("div", { class: "faint" }, `p95 ${duration(stats.p95_latency_ms)}`),
  ];
}

function firstTokenCell(stats: BackendStatistics | undefined): Children {
  if (stats?.p50_first_token_ms === null || stats?.p95_first_token_ms === null || stats === undefined) return "–";
  return [
    h("div", null, duration(stats.p50_first_token_ms)),
    h("div", { class: "faint" }, `p95 ${duration(stats.p95_first_token_ms)}`),
  ];
}

function actions(context: PageContext, row: BackendStatus): Children {
  const { name, enabled, phase } = row;
  // One that was removed is not in the configuration any more.
  if (phase === "draining" && enabled) return h("span", { class: "faint" }, "removed");
  return h(
    "div",
    { class: "row tight" },
    button(enabled ? "Drain" : "Enable", () => switchBackend(context, row), {
      kind: "small",
      label: `${enabled ? "Drain" : "Enable"} ${name}`,
    }),
    button("Weight", () => weigh(context, row), { kind: "small", label: `Weight of ${name}` }),
  );
}

function switchBackend({ act }: PageContext, { name, enabled, in_flight }: BackendStatus): void {
  act({
    title: enabled ? `Drain ${name}` : `Enable ${name}`,
    text: enabled
      ? `It gets no new requests from now on; ${in_flight === 0 ? "none is" : `${count(in_flight)} in flight are`} finished there. It stays in the configuration.`
      : "It is checked at once, and gets requests as soon as it is ready.",
    verb: enabled ? "Drain" : "Enable",
    isDangerous: enabled,
    asked: () => ({ method: "PUT", path: pathOf(name), body: { enabled: !enabled } }),
  });
}

function weigh({ act, redraw }: PageContext, { name, weight }: BackendStatus): void {
  let wanted = String(weight);
  act({
    title: `Weight of ${name}`,
    text: "Its share of the requests is its weight among those of the others (with the strategy WeightedRoundRobin). 0 means standby: it is asked when no other can be.",
    verb: "Set the weight",
    fields: () =>
      field(
        "weight",
        `Weight, 0 to ${MAX_WEIGHT}`,
        wanted,
        (value) => {
          wanted = value;
          redraw();
        },
        { type: "number", min: 0, max: MAX_WEIGHT, step: 1 },
      ),
    asked() {
      const value = Number(wanted);
      const isFine = wanted.trim() !== "" && Number.isInteger(value) && value >= 0 && value <= MAX_WEIGHT;
      return isFine ? { method: "PUT", path: `${pathOf(name)}/weight`, body: { weight: value } } : undefined;
    },
  });
}

function pathOf(name: string): string {
  return `admin/backends/${encodeURIComponent(name)}`;
}
