// What is wrong with a configuration, told so that an operator can find the place.

import type { Path, PathSegment } from "./values.ts";

export interface ConfigProblem {
  /** The key at fault, e.g. `backends[0].url`; empty when the file as a whole is meant. */
  path: string;
  /** Never holds the value of a setting: it may be a secret. */
  message: string;
  /** Counted from 1. */
  line?: number;
  /** The file at fault, absolute. */
  file?: string;
  /** The environment variable at fault. */
  variable?: string;
}

/** A problem before its file and line are looked up. */
export interface PathProblem {
  path: Path;
  message: string;
  /** The environment variable that the value came from or was asked from. */
  variable?: string;
  /** The value was set by an environment override, so no line of a file is at fault. */
  overridden?: boolean;
}

export interface CheckProblem {
  path: PathSegment[];
  message: string;
}

/** Where relative paths begin. */
export interface CheckPlace {
  baseDir: string;
  home: string | undefined;
}

/** A rule that one field's schema cannot say. */
export type SettingsRule<Settings> = (settings: Settings) => CheckProblem[];

/** A rule of a layer above; some of them look at files. */
export type SettingsCheck<Settings> = (
  settings: Settings,
  place: CheckPlace,
) => readonly CheckProblem[] | Promise<readonly CheckProblem[]>;
