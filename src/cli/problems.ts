// Configuration problems as lines for the terminal, or as JSON.

import { relative } from "node:path";
import type { Problem } from "../config/values/problems.ts";
import { formatPath } from "../config/values/values.ts";

/** A headline, then one line per problem, ordered by place, in the form that editors make clickable. */
export function renderProblems(problems: readonly Problem[], path: string | undefined, cwd: string): string {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  const subject = path === undefined ? "the configuration" : shorten(path, cwd);
  const ordered = [...problems].sort(
    (one, other) => fileOrder(one, path) - fileOrder(other, path) || lineOrder(one, other),
  );
  return [`${count} in ${subject}:`, ...ordered.map((problem) => `  ${renderProblem(problem, cwd)}`), ""].join("\n");
}

/** The result of --check-config. */
interface CheckResult {
  /** Undefined without a file. */
  path: string | undefined;
  problems: readonly Problem[];
  warnings: readonly string[];
}

export function renderCheck({ path, problems, warnings }: CheckResult, cwd: string): string {
  const told = warnings.map((warning) => `  ${printable(warning)}`);
  if (problems.length > 0) {
    const count = warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`;
    return renderProblems(problems, path, cwd) + (told.length === 0 ? "" : [`${count}:`, ...told, ""].join("\n"));
  }
  const subject = path === undefined ? "there is no configuration file; the defaults" : shorten(path, cwd);
  return [`${subject}: nothing is wrong`, ...told, ""].join("\n");
}

/** Uses the field names of the admin API. */
export function renderCheckAsJson({ path, problems, warnings }: CheckResult): string {
  const errors = problems.map((problem) => ({
    field: formatPath(problem.path),
    message: problem.message,
    file: problem.file ?? null,
    line: problem.line ?? null,
    variable: problem.variable ?? null,
  }));
  return `${JSON.stringify({ valid: errors.length === 0, file: path ?? null, errors, warnings })}\n`;
}

function renderProblem(problem: Problem, cwd: string): string {
  const place =
    problem.file === undefined
      ? problem.variable
      : shorten(problem.file, cwd) + (problem.line === undefined ? "" : `:${problem.line}`);
  return printable(
    [place, formatPath(problem.path), problem.message].filter((part) => part !== undefined && part !== "").join(": "),
  );
}

/** A key in a file may hold anything; control characters must not reach the terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, "?");
}

/** Relative where that is shorter to read: inside the working folder. */
function shorten(path: string, cwd: string): string {
  const inside = relative(cwd, path);
  return inside === "" || inside.startsWith("..") ? path : inside;
}

/** The main file first, then other files, then the environment. */
function fileOrder(problem: Problem, path: string | undefined): number {
  if (problem.file === undefined) return 2;
  return problem.file === path ? 0 : 1;
}

function lineOrder(one: Problem, other: Problem): number {
  return (one.line ?? 0) - (other.line ?? 0);
}
