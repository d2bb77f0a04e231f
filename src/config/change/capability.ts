// How changes of the configuration take effect, in both spellings of the admin API.

import { specOf } from "../schema/section-patterns.ts";
import { SECTIONS, type SectionSpec } from "../sections/registry.ts";
import type { ReloadClass } from "../sections/section.ts";
import type { Path } from "../values/values.ts";
import type { FieldChange } from "./diff.ts";

const LONG_SPELLINGS = {
  immediate: "immediate_update",
  gradual: "gradual_update",
  requires_restart: "requires_restart",
} as const satisfies Record<ReloadClass, string>;

type LongReloadClass = (typeof LONG_SPELLINGS)[ReloadClass];

export function longSpelling(reload: ReloadClass): LongReloadClass {
  return LONG_SPELLINGS[reload];
}

const ORDER = Object.keys(LONG_SPELLINGS) as ReloadClass[];

/** The class that a section is listed with. */
export function sectionReloadClass(name: string): ReloadClass {
  return specOf(name)?.reload ?? "gradual";
}

/** The class of one field; the path starts with the section. */
export function fieldReloadClass(path: Path): ReloadClass {
  const spec = specOf(path[0]);
  if (spec?.restartFields?.some((field) => isWithin(path.slice(1), field))) return "requires_restart";
  return otherReloadClass(spec);
}

/** The class of fields that take effect without a restart. */
function otherReloadClass(spec: SectionSpec | undefined): ReloadClass {
  return spec?.reload === "immediate" ? "immediate" : "gradual";
}

/** True if a path below a section is the field or lies below it. */
export function isWithin(path: Path, field: string): boolean {
  return field.split(".").every((part, index) => part === String(path[index]));
}

/** The slowest class of the changes; a change without any takes effect at once. */
export function changesReloadClass(changes: readonly { path: Path }[]): ReloadClass {
  const slowest = Math.max(0, ...changes.map(({ path }) => ORDER.indexOf(fieldReloadClass(path))));
  return ORDER[slowest] as ReloadClass;
}

export function sectionNames(): { sections: string[]; extensions: string[] } {
  return {
    sections: SECTIONS.filter(({ isExtension }) => !isExtension).map(({ name }) => name),
    extensions: SECTIONS.filter(({ isExtension }) => isExtension).map(({ name }) => name),
  };
}

export function describeSection(name: string) {
  const spec = specOf(name);
  if (spec === undefined) return undefined;
  return { name, description: spec.description, hot_reload_capability: sectionReloadClass(name) };
}

/** The `capabilities` of GET /admin/config/hot-reload-status. */
export function reloadCapabilities(): Record<LongReloadClass, { description: string; items: string[] }> {
  const capability = (reload: ReloadClass, description: string) => ({
    description,
    items: SECTIONS.flatMap((spec) => fieldsOf(spec, reload).map((field) => `${spec.name}.${field}`)),
  });
  return {
    immediate_update: capability("immediate", "Applied at once."),
    gradual_update: capability("gradual", "Existing connections are kept; new requests use the new values."),
    requires_restart: capability("requires_restart", "Accepted and kept, with a warning; applied after a restart."),
  };
}

/** The fields of one class, or `*` for all that need no restart. */
function fieldsOf(spec: SectionSpec, reload: ReloadClass): readonly string[] {
  const { restartFields = [], schema, listsFields = spec.reload === "requires_restart" } = spec;
  if (reload === "requires_restart") return restartFields;
  if (reload !== otherReloadClass(spec)) return [];
  if (!listsFields) return ["*"];
  const fields = "shape" in schema ? Object.keys(schema.shape as object) : [];
  return fields.filter((field) => !restartFields.includes(field));
}

/** One or two sentences about what a change does to a running gateway. */
export function estimateImpact(changes: readonly FieldChange[]): string {
  if (changes.length === 0) return "None: nothing would change.";
  const sentences: string[] = [];
  const backends = changes.filter(({ section, path }) => section === "backends" && path.length === 2);
  const added = backends.filter(({ from }) => from === null);
  const removed = backends.filter(({ to }) => to === null);
  if (added.length > 0) sentences.push(`Added backends (${added.length}) are checked at once and then used.`);
  if (removed.length > 0) {
    sentences.push(`Removed backends (${removed.length}) get no new requests and finish those in flight.`);
  }
  const delayed = changes.filter(({ path }) => fieldReloadClass(path) === "requires_restart");
  if (delayed.length > 0) {
    const names = delayed.map(({ path }) => path.join(".")).join(", ");
    sentences.push(`Only after a restart: ${names}.`);
  }
  if (delayed.length < changes.length) {
    sentences.push(
      changesReloadClass(changes.filter((change) => !delayed.includes(change))) === "immediate"
        ? "The next request uses the new values; running requests are not touched."
        : "Running requests finish with the old values; new ones use the new values.",
    );
  }
  return sentences.join(" ");
}
