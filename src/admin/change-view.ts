// What an answer tells of a change of the configuration: what was done, field by field, and how it takes effect.

import { changesReloadClass, longSpelling, sectionReloadClass } from "../config/change/capability.ts";
import type { Change } from "../config/change/change.ts";
import { changesBySection, type FieldChange } from "../config/change/diff.ts";
import type { ReloadClass } from "../config/sections/section.ts";

export function changesOf(changes: readonly FieldChange[], section: string) {
  return changesBySection(changes)[section] ?? {};
}

/** How a change takes effect; without a change, how those of the section do. */
export function reloadOf(section: string, changes: readonly FieldChange[], applied: boolean) {
  const capability: ReloadClass = changes.length === 0 ? sectionReloadClass(section) : changesReloadClass(changes);
  return { hot_reload_capability: capability, hot_reload_applied: applied && capability !== "requires_restart" };
}

/** One sentence for the caller. */
export function messageOf({ applied, version }: Change, what: string, dryRun: boolean): string {
  if (dryRun) return "Nothing was changed: this is a dry run.";
  return applied ? `${what}; this is version ${version}.` : "Nothing differs, so nothing was changed.";
}

/** Per section what became of it, and how it takes effect. */
export function reloadResults(sections: readonly string[], { changes, applied }: Change) {
  const results = sections.map((name) => {
    const own = changes.filter(({ section }) => section === name);
    const { hot_reload_capability: capability } = reloadOf(name, own, applied);
    const status = own.length === 0 ? ("unchanged" as const) : applied ? ("applied" as const) : ("valid" as const);
    return [name, { status, hot_reload_type: longSpelling(capability), hot_reload: capability }] as const;
  });
  return Object.fromEntries(results);
}
