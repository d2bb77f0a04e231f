// Rules and dashboard: promtool takes them, they ask for metrics that there are, and every alert has its chapter.

import { describe, expect, test } from "bun:test";
import { programPath } from "../../scripts/debian-packages.ts";
import { INSTRUMENTS, type Instrument } from "../../src/metrics/instruments.ts";
import { DEPLOY, read, readYaml, runProgram } from "./repository.ts";

const RULES = "deploy/prometheus/signalbox.rules.yml";
const DASHBOARD = "deploy/grafana/signalbox.json";

interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}
interface Panel {
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}
interface Dashboard {
  panels: Panel[];
  annotations: { list: { expr: string }[] };
  templating: { list: { definition?: string }[] };
}

const rules = (readYaml(RULES)[0] as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const dashboard = JSON.parse(read(DASHBOARD)) as Dashboard;

/** Every name that a metric has in Prometheus -> its labels. */
const series = new Map(
  Object.values<Instrument>(INSTRUMENTS).flatMap(({ type, name, labels }) =>
    type === "histogram"
      ? [
          [`${name}_bucket`, [...labels, "le"]] as const,
          [`${name}_sum`, labels] as const,
          [`${name}_count`, labels] as const,
        ]
      : [[name, labels] as const],
  ),
);
/** Those that Prometheus adds. */
const TARGET_LABELS = ["job", "instance"];

const LABEL_LISTS = /\b(?:by|on|without|ignoring|group_left|group_right) *\(([^)]*)\)/g;

/** What is wrong with the metrics of an expression. */
function complaints(expression: string): string[] {
  const recorded = new Set(rules.flatMap(({ record }) => record ?? []));
  const found: string[] = [];
  const withoutLabels = expression.replaceAll(LABEL_LISTS, "");
  for (const [, name = "", matchers = ""] of withoutLabels.matchAll(
    /\b([a-z][a-z0-9_:]*[_:][a-z0-9_:]+)\b(?:\{([^}]*)\})?/g,
  )) {
    const labels = series.get(name);
    if (labels === undefined) {
      if (!/^(signalbox|gen_ai|process|http|nodejs|go)_|:/.test(name)) continue;
      if (!recorded.has(name)) found.push(`there is no ${name}`);
      continue;
    }
    for (const [, label = ""] of matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)) {
      if (![...labels, ...TARGET_LABELS].includes(label)) found.push(`${name} has no label ${label}`);
    }
  }
  for (const [, names = ""] of expression.matchAll(LABEL_LISTS)) {
    const known = new Set([...TARGET_LABELS, "le", ...[...series.values()].flat()]);
    for (const label of names.split(",").map((each) => each.trim())) {
      if (label !== "" && !known.has(label)) found.push(`no metric has a label ${label}`);
    }
  }
  return found;
}

test("the check finds names and labels that there are not", () => {
  expect(complaints('sum(rate(signalbox_request_total{status="200"}[5m]))')).toEqual([
    "there is no signalbox_request_total",
  ]);
  expect(complaints('signalbox_backend_up{name="x"}')).toEqual(["signalbox_backend_up has no label name"]);
  expect(complaints("sum by (modell) (signalbox_requests_total)")).toEqual(["no metric has a label modell"]);
  expect(complaints("signalbox:nothing:rate5m > 1")).toEqual(["there is no signalbox:nothing:rate5m"]);
});

describe("the rules", () => {
  const promtool = programPath("promtool");

  test("are right by promtool", async () => {
    const { exitCode, output } = await runProgram([
      promtool,
      "check",
      "rules",
      "--lint-fatal",
      `${DEPLOY}/prometheus/signalbox.rules.yml`,
    ]);
    expect(output).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(exitCode).toBe(0);
  });

  test("fire and stay quiet as their tests say", async () => {
    const { exitCode, output } = await runProgram(
      [promtool, "test", "rules", "signalbox.rules.test.yml"],
      `${DEPLOY}/prometheus`,
    );
    expect(output).toContain("SUCCESS");
    expect(exitCode).toBe(0);
  });

  test("every alert is tried, both ways", () => {
    const { tests } = readYaml("deploy/prometheus/signalbox.rules.test.yml")[0] as {
      tests: { promql_expr_test?: { expr: string; exp_samples: { labels: string }[] }[] }[];
    };
    const firing = tests.flatMap(({ promql_expr_test = [] }) =>
      promql_expr_test.flatMap(({ exp_samples }) =>
        exp_samples.flatMap(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1] ?? []),
      ),
    );
    expect(alerts.map(({ alert }) => alert).filter((name) => !firing.includes(name as string))).toEqual([]);
    for (const { promql_expr_test = [] } of tests.filter(({ promql_expr_test: [first] = [] }) =>
      first?.expr.includes("ALERTS"),
    )) {
      expect(promql_expr_test).toHaveLength(2);
    }
  });

  test("ask for metrics that there are", () => {
    expect(rules.flatMap(({ expr }) => complaints(expr))).toEqual([]);
  });

  test("every alert says how bad it is, what it means, and where to read on", () => {
    const chapters = new Set(
      [...read("docs/runbooks.md").matchAll(/^## (.+)$/gm)].map(([, title = ""]) =>
        title.toLowerCase().replaceAll(" ", "-"),
      ),
    );
    for (const { alert = "", labels, annotations } of alerts) {
      expect(labels?.severity).toMatch(/^(critical|warning|info)$/);
      expect(annotations?.summary?.length).toBeGreaterThan(10);
      expect(annotations?.description?.length).toBeGreaterThan(20);
      expect(annotations?.runbook_url).toBe(`docs/runbooks.md#${alert.toLowerCase()}`);
      expect(chapters).toContain(alert.toLowerCase());
    }
    const named = alerts.map(({ alert = "" }) => alert.toLowerCase());
    expect([...chapters].filter((title) => title.startsWith("signalbox") && !named.includes(title))).toEqual([]);
  });

  test("Prometheus of the compose file takes its configuration", async () => {
    const { exitCode, output } = await runProgram([
      promtool,
      "check",
      "config",
      "--syntax-only",
      `${DEPLOY}/compose/prometheus.yml`,
    ]);
    expect(output).toContain("SUCCESS");
    expect(exitCode).toBe(0);
  });
});

describe("the dashboard", () => {
  const panels = dashboard.panels.filter(({ type }) => type !== "row");
  const expressions = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr),
  ];

  test("asks for metrics that there are", () => {
    expect(expressions.length).toBeGreaterThan(40);
    const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    expect([...expressions, ...variables].flatMap(complaints)).toEqual([]);
    for (const { title, targets = [] } of panels)
      expect({ title, asks: targets.length > 0 }).toEqual({ title, asks: true });
  });

  test("asks in PromQL", async () => {
    const groups = [
      {
        name: "dashboard",
        rules: expressions.map((expr, index) => ({
          record: `dashboard:${index}`,
          expr: expr.replaceAll("$__rate_interval", "5m"),
        })),
      },
    ];
    const path = `${process.env.TMPDIR ?? "/tmp"}/signalbox-dashboard-${process.pid}.rules.yml`;
    await Bun.write(path, JSON.stringify({ groups }));
    const { exitCode, output } = await runProgram([programPath("promtool"), "check", "rules", path]);
    await Bun.file(path).delete();
    expect(output).toContain(`SUCCESS: ${expressions.length} rules found`);
    expect(exitCode).toBe(0);
  });

  test("has no two panels in one place", () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect({ title, taken: taken.has(`${x},${y}`) }).toEqual({ title, taken: false });
          taken.add(`${x},${y}`);
        }
      }
    }
  });
});
