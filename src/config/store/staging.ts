// Staged sections in relation to the current configuration: what they would change, and whether they still may.

import type { SectionChange } from "../change/change.ts";
import type { FieldChange } from "../change/diff.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { type Mapping, valueAt } from "../values/values.ts";
import type { StagedSection } from "./staged.ts";

export interface StagedView extends Omit<StagedSection, "value" | "base"> {
  /** Against the current configuration; masked. */
  changes: FieldChange[];
  /** The section was changed by someone else since. */
  conflict: boolean;
}

export function toStaged(
  { section, value, earlier }: { section: string; value: unknown; earlier: StagedSection | undefined },
  change: SectionChange,
  current: ConfigSnapshot,
  stagedAtMs: number,
): StagedSection {
  // A patch of what is staged knows no more of the current section than that did.
  const patched = change.mode === "merge" ? earlier : undefined;
  return {
    section,
    value,
    base: patched === undefined ? valueAt(current.document, [section]) : patched.base,
    baseVersion: patched?.baseVersion ?? current.version,
    stagedAtMs,
    source: change.source,
    user: change.user,
    description: change.description,
  };
}

/** Whether someone else has changed the section since. */
export function isContested({ section, base }: StagedSection, { document }: ConfigSnapshot): boolean {
  return !Bun.deepEquals(base, valueAt(document, [section]), true);
}

export function viewStaged(entry: StagedSection, changes: readonly FieldChange[], current: ConfigSnapshot): StagedView {
  const { value: _value, base: _base, ...view } = entry;
  return { ...view, changes: [...changes], conflict: isContested(entry, current) };
}

/** The document as it would be with these sections. */
export function overlayStaged(document: Mapping, staged: readonly StagedSection[]): Mapping {
  const sections = new Map<string, unknown>(Object.entries(document));
  for (const { section, value } of staged) {
    if (value === undefined) sections.delete(section);
    else sections.set(section, value);
  }
  return Object.fromEntries(sections);
}
