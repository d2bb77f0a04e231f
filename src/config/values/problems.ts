// What is wrong with a configuration, told so that an operator can find the place.

import { formatPath, type Path } from "./values.ts";

/** From the reading of a file to the answer of the admin API; each step adds what it knows of the place. */
export interface Problem {
  /** The key at fault; empty when the file, or the document as a whole, is meant. */
  path: Path;
  /** Never holds the value of a setting: it may be a secret. */
  message: string;
  /** The file at fault, absolute. */
  file?: string;
  /** Counted from 1. */
  line?: number;
  /** The environment variable that the value came from or was asked from. */
  variable?: string;
  /** The value was set by an environment override, so no line of a file is at fault. */
  overridden?: boolean;
  /** As written; left out where it is, or could be, a secret. */
  value?: unknown;
}

/** Where the text stands that the paths of problems lead into. */
export interface Source {
  file?: string | undefined;
  lineOf?: ((path: Path) => number | undefined) | undefined;
}

/** With the line of the file it stands on. */
export function located(problem: Problem, { file, lineOf }: Source): Problem {
  if (problem.overridden) return problem;
  const line = problem.line ?? lineOf?.(problem.path);
  return { ...problem, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
}

/** The problems at places that are not told yet: one per place is enough. */
export function elsewhere(problems: readonly Problem[], told: readonly Problem[]): Problem[] {
  const places = new Set(told.map(({ path }) => formatPath(path)));
  return problems.filter(({ path }) => !places.has(formatPath(path)));
}

/** A problem as the admin API and the log tell it, by the name of a field. */
export interface FieldProblem {
  field: string;
  message: string;
  value?: unknown;
  line?: number;
}

/** Of the running configuration: a file that a problem names is one that the document includes. */
export function toFieldProblem({ path, message, file, line, variable, value }: Problem): FieldProblem {
  if (file !== undefined) {
    const place = [file, line, formatPath(path)].filter((part) => part !== undefined && part !== "").join(":");
    return { field: "api_keys.api_keys_file", message: `${place}: ${message}` };
  }
  const isNamed = variable === undefined || message.includes(variable);
  return {
    field: formatPath(path),
    message: isNamed ? message : `${message} (set by the variable ${variable})`,
    ...(value !== undefined && { value }),
    ...(line !== undefined && { line }),
  };
}

export function describeProblem(problem: Problem): string {
  const { field, message } = toFieldProblem(problem);
  return field === "" ? message : `${field}: ${message}`;
}

/** Base of relative paths. */
export interface CheckPlace {
  baseDir: string;
  home: string | undefined;
}

/** A rule that one field's schema cannot say. */
export type SettingsRule<Settings> = (settings: Settings) => Problem[];

/** A rule of a layer above; some of them look at files. */
export type SettingsCheck<Settings> = (
  settings: Settings,
  place: CheckPlace,
) => readonly Problem[] | Promise<readonly Problem[]>;
