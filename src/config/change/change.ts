// Changes of the configuration: what is asked, what came of it, and why one was refused.

import { specOf } from "../schema/section-patterns.ts";
import { SECTION_NAMES, type Settings } from "../sections/registry.ts";
import { describeProblem, type Problem } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import type { FieldChange } from "./diff.ts";

/** api, import, rollback and the like; what came from the file has sources of its own. */
export interface ChangeAuthor {
  source: string;
  user?: string | undefined;
  description?: string | undefined;
  /** Has shown credentials of the admin API. */
  elevated?: boolean | undefined;
}

export interface SectionChange extends ChangeAuthor {
  /** Section name -> its new value, or a merge patch (RFC 7396) for it. */
  sections: Mapping;
  mode: "replace" | "merge";
  /** The content comes from another gateway. */
  isImport?: boolean | undefined;
  /** Variables of the environment that an administrator lets an import name, as secrets. */
  confirmedVariables?: readonly string[] | undefined;
  /** The change is refused when this is not the current version. */
  baseVersion?: number | undefined;
  /** Everything is checked, nothing is changed. */
  dryRun?: boolean | undefined;
  /** Sees the settings of a change that is valid, before anyone follows it, and of a dry run. They hold secrets. */
  checked?: (before: Settings, after: Settings) => void;
}

export interface Change {
  /** Version of the configuration in force. */
  version: number;
  previousVersion: number;
  /** False for a dry run, and when nothing differs: then there is no new version. */
  applied: boolean;
  appliedAtMs: number;
  /** Defaults filled in, secrets masked. */
  changes: FieldChange[];
  sections: string[];
  warnings: string[];
  impact: string;
  /** The sections that were named, before and after: defaults filled in, secrets masked. */
  previous: Mapping;
  current: Mapping;
}

export type ChangeError =
  | { kind: "conflict"; expectedVersion: number; currentVersion: number; sections?: string[] }
  | { kind: "unknown_section"; requested: string; available: string[] }
  | { kind: "validation"; problems: readonly Problem[] }
  | { kind: "unknown_version"; version: number }
  | { kind: "too_large"; limitBytes: number }
  | { kind: "nothing_staged"; requested: string[]; pending: string[] }
  /** Could not be kept; nothing was changed. */
  | { kind: "storage"; message: string }
  /** Too many changes are waiting. */
  | { kind: "busy" };

export type Result<Value> = { ok: true; value: Value } | Refused;

export const ok = <Value>(value: Value): Result<Value> => ({ ok: true, value });

export type Refused = { ok: false; error: ChangeError };

export const refused = (error: ChangeError): Refused => ({ ok: false, error });

/** Of a change that was made for another version than the current one. */
export function conflict(baseVersion: number | undefined, currentVersion: number): Refused | undefined {
  if (baseVersion === undefined || baseVersion === currentVersion) return undefined;
  return refused({ kind: "conflict", expectedVersion: baseVersion, currentVersion });
}

export function unknownSection(names: readonly string[]): Refused | undefined {
  const unknown = names.find((name) => specOf(name) === undefined);
  if (unknown === undefined) return undefined;
  return refused({ kind: "unknown_section", requested: unknown, available: [...SECTION_NAMES] });
}

export function describeChangeError(error: ChangeError): string {
  switch (error.kind) {
    case "conflict":
      return `made for version ${error.expectedVersion}, but the current one is ${error.currentVersion}`;
    case "unknown_section":
      return `unknown section ${error.requested}`;
    case "validation":
      return error.problems.map(describeProblem).join("; ");
    case "unknown_version":
      return `there is no version ${error.version}`;
    case "too_large":
      return `larger than ${error.limitBytes} bytes`;
    case "nothing_staged":
      return "nothing is staged";
    case "storage":
      return error.message;
    case "busy":
      return "too many changes are waiting";
  }
}
