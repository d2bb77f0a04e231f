// From measured rounds to the table: medians over rounds, ratios and differences within a round, targets next to them.

import type { LoadResult } from "./load.ts";
import type { Rounds } from "./measure.ts";
import type { LoadScenario, Target } from "./scenarios.ts";
import { type MeasuredName, SUBJECT_NAMES, type SubjectName } from "./subjects.ts";

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
  /** Signalbox to nginx, translated answers to those that pass through, or one configuration to another. */
  ratio?: { to: "nginx" | "passed"; value: number };
  target?: Target & { measured?: number; met?: boolean };
}

const COLUMN_TITLES: Record<SubjectName, string> = {
  direct: "direct",
  nginx: "nginx",
  bare: "bare Bun",
  signalbox: "Signalbox",
};

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** How far the highest figure lies above the lowest, as a part of the lowest. */
export function spreadOf(values: readonly number[]): number {
  return values.length < 2 ? 0 : Math.max(...values) / Math.min(...values) - 1;
}

export function loadRows(scenario: LoadScenario, results: Rounds<LoadResult>): Row[] {
  return scenario.metrics.map((metric) => {
    const rounds: Row["rounds"] = {};
    for (const [name, figures] of results) {
      if (!(metric.withoutDirect && name === "direct")) rounds[name] = figures.map(metric.read);
    }
    return makeRow({ ...metric, section: scenario.title, rounds });
  });
}

type RowInput = Pick<Row, "section" | "title" | "unit" | "digits" | "show" | "rounds"> & { target?: Target };

export function makeRow({ section, title, unit, digits, show, rounds, target }: RowInput): Row {
  const row: Row = { section, title, unit, digits, show, values: {}, rounds };
  for (const name of SUBJECT_NAMES) {
    const figures = rounds[name];
    if (!figures) continue;
    const added = show === "added" && name !== "direct" && rounds.direct;
    row.values[name] = median(added ? pairwise(figures, rounds.direct!, (left, right) => left - right) : figures);
  }
  const to = rounds.passed ? "passed" : "nginx";
  const base = rounds[to];
  if (show === "value" && base && rounds.signalbox) {
    row.ratio = { to, value: median(pairwise(rounds.signalbox, base, (left, right) => left / right)) };
  }
  if (target) row.target = judge(target, row);
  return row;
}

function judge(target: Target, row: Row): NonNullable<Row["target"]> {
  const measured = target.of === "ratio" ? row.ratio?.value : row.values.signalbox;
  return measured === undefined ? target : { ...target, measured, met: measured <= target.limit };
}

/** Round by round: neighbours in time saw the same machine. */
function pairwise(
  left: readonly number[],
  right: readonly number[],
  combine: (left: number, right: number) => number,
): number[] {
  return left.map((value, index) => combine(value, right[Math.min(index, right.length - 1)]!));
}

function targetText(target: Target, unit: string): string {
  return target.of === "ratio" ? `≤ ${target.limit}×` : `≤ ${target.limit} ${unit}`;
}

/** The table as text: one block per scenario, one column per subject. */
export function formatTable(rows: readonly Row[], names: readonly SubjectName[]): string {
  const header = ["", ...names.map((name) => COLUMN_TITLES[name]), "ratio", "target", ""];
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
  const widths = header.map((_, column) =>
    Math.max(...lines.filter((line) => line.length > 1).map((line) => line[column]!.length)),
  );
  return lines
    .map((line) =>
      line.length === 1
        ? `\n${line[0]}`
        : line
            .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
            .join("  ")
            .trimEnd(),
    )
    .join("\n");
}

function figure(row: Row, name: SubjectName): string {
  const value = row.values[name];
  if (value === undefined) return "-";
  const text = value.toFixed(row.digits);
  return row.show === "added" && name !== "direct" && value >= 0 ? `+${text}` : text;
}

function verdict(row: Row): string {
  if (!row.target) return "";
  if (row.target.met === undefined) return "not measured";
  return row.target.met ? "met" : "MISSED";
}

/** Thread names without their numbers: the workers of a pool are one. */
function threadKind(name: string): string {
  return name.replace(/[ _-]?\d+$/, "");
}

/**
 * "main 41.2, HTTP Client 12.0": medians over rounds of the microseconds per request or chunk.
 * @param unit - how many of them a result counts
 */
export function threadShares(results: readonly LoadResult[], unit: (result: LoadResult) => number): string {
  const perRound = results.map((result) => {
    const shares = new Map<string, number>();
    for (const [name, microseconds] of Object.entries(result.cpuMicrosecondsByThread)) {
      const kind = threadKind(name);
      shares.set(kind, (shares.get(kind) ?? 0) + microseconds / unit(result));
    }
    return shares;
  });
  return [...new Set(perRound.flatMap((shares) => [...shares.keys()]))]
    .map((kind) => ({ kind, share: median(perRound.map((shares) => shares.get(kind) ?? 0)) }))
    .filter(({ share }) => share >= 0.05)
    .sort((left, right) => right.share - left.share)
    .map(({ kind, share }) => `${kind} ${share.toFixed(1)}`)
    .join(", ");
}
