// From measured rounds to the table: medians over rounds, ratios and differences within a round, targets next to them.

import { median, medianRatio, pairwise } from "./figures.ts";
import type { LoadResult } from "./load.ts";
import type { Rounds } from "./measure.ts";
import type { LoadScenario, Target } from "./scenarios.ts";
import { type MeasuredName, SUBJECT_TITLES, type SubjectName } from "./subjects.ts";
import { threadsOf } from "./threads.ts";

export interface Row {
  section: string;
  title: string;
  unit: string;
  digits: number;
  /** added: the figures are differences to direct; direct itself holds the absolute figure. */
  show: "value" | "added";
  values: Partial<Record<SubjectName, number>>;
  /** Every round of every subject, absolute. */
  rounds: Partial<Record<MeasuredName, number[]>>;
  /** CPU by thread of every subject, where they are listed one by one. */
  threads?: Partial<Record<MeasuredName, string>>;
  /** Signalbox to nginx, translated answers to those that pass through, or one configuration to another. */
  ratio?: { to: "nginx" | "passed"; value: number };
  target?: Target & { measured?: number; met?: boolean };
}

export function loadRows(scenario: LoadScenario, results: Rounds<LoadResult>): Row[] {
  return scenario.metrics.map((metric) => {
    const rounds: Row["rounds"] = {};
    for (const [name, figures] of results) {
      if (!(metric.withoutDirect && name === "direct")) rounds[name] = figures.map(metric.read);
    }
    const row = makeRow({ ...metric, section: scenario.title, rounds });
    if (scenario.subjects && metric.unit === "µs") row.threads = threadsOf(metric, results);
    return row;
  });
}

type RowInput = Pick<Row, "section" | "title" | "unit" | "digits" | "show" | "rounds"> & { target?: Target };

export function makeRow({ section, title, unit, digits, show, rounds, target }: RowInput): Row {
  const row: Row = { section, title, unit, digits, show, values: {}, rounds };
  for (const name of Object.keys(SUBJECT_TITLES) as SubjectName[]) {
    const figures = rounds[name];
    if (!figures) continue;
    const added = show === "added" && name !== "direct" && rounds.direct;
    row.values[name] = median(added ? pairwise(figures, rounds.direct!, (left, right) => left - right) : figures);
  }
  const to = rounds.passed ? "passed" : "nginx";
  const base = rounds[to];
  if (show === "value" && base && rounds.signalbox) row.ratio = { to, value: medianRatio(rounds.signalbox, base) };
  if (target) row.target = judge(target, row);
  return row;
}

function judge(target: Target, row: Row): NonNullable<Row["target"]> {
  const measured = target.of === "ratio" ? row.ratio?.value : row.values.signalbox;
  return measured === undefined ? target : { ...target, measured, met: measured <= target.limit };
}

function targetText(target: Target, unit: string): string {
  const sign = target.of === "ratio" ? "×" : ` ${unit}`;
  return `≤ ${target.limit}${sign}${target.aim === undefined ? "" : ` (aim ${target.aim}${sign})`}`;
}

/** The table as text: one block per scenario, one column per subject. */
export function formatTable(rows: readonly Row[], names: readonly SubjectName[]): string {
  const header = ["", ...names.map((name) => SUBJECT_TITLES[name]), "ratio", "target", ""];
  const lines: string[][] = [header];
  let section = "";
  for (const row of rows) {
    if (row.section !== section) {
      section = row.section;
      lines.push([section]);
    }
    lines.push([
      `  ${row.title} (${row.unit})`,
      ...names.map((name) => figure(row, name)),
      row.ratio === undefined ? "" : `${row.ratio.value.toFixed(2)}× ${row.ratio.to}`,
      row.target ? targetText(row.target, row.unit) : "",
      verdict(row),
    ]);
  }
  return alignColumns(lines);
}

/** Lines of one cell are headings; the first column goes left, and the last one, too, where it is `text`. */
export function alignColumns(lines: readonly string[][], last: "figure" | "text" = "figure"): string {
  const widths = lines[0]!.map((_, column) =>
    Math.max(...lines.filter((line) => line.length > 1).map((line) => line[column]!.length)),
  );
  const isText = (column: number) => column === 0 || (last === "text" && column === widths.length - 1);
  const pad = (cell: string, column: number) =>
    isText(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  return lines.map((line) => (line.length === 1 ? `\n${line[0]}` : line.map(pad).join("  ").trimEnd())).join("\n");
}

/** The median, and behind it the best round where that is known. */
function figure(row: Row, name: SubjectName): string {
  const value = row.values[name];
  if (value === undefined) return "-";
  const text = value.toFixed(row.digits);
  if (row.show === "added" && name !== "direct") return value >= 0 ? `+${text}` : text;
  const rounds = row.rounds[name] ?? [];
  return row.unit === "µs" && rounds.length > 1 ? `${text} (${Math.min(...rounds).toFixed(row.digits)})` : text;
}

function verdict(row: Row): string {
  if (!row.target) return "";
  if (row.target.met === undefined) return "not measured";
  return row.target.met ? "met" : "MISSED";
}
