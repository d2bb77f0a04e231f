// What differs between two documents, field by field.

import { isMapping, type Mapping, type Path, valueAt } from "../values/values.ts";
import { namedEntries } from "./entries.ts";
import { maskSecrets } from "./mask.ts";

export interface FieldChange {
  section: string;
  /** Dot path below the section; entries of lists with names stand there with their name. Empty: the whole section. */
  field: string;
  /** The field with its section, one part per level. */
  path: Path;
  /** Secrets are masked; null where there was nothing. */
  from: unknown;
  to: unknown;
  /** The edited file has set what was changed through the API since it was applied last. */
  replaced?: true;
}

/** For a view; a secret that changed is named by its field, with the masked form on both sides. */
export function diffDocuments(from: Mapping, to: Mapping): FieldChange[] {
  return compareDocuments(from, to).map(({ path, valuePath, from, to }) => ({
    section: String(path[0]),
    field: path.slice(1).join("."),
    path,
    from: maskSecrets(from, valuePath) ?? null,
    to: maskSecrets(to, valuePath) ?? null,
  }));
}

interface RawChange {
  path: Path;
  /** As the path, with an index for entries of lists: the notation of secret paths. */
  valuePath: Path;
  from: unknown;
  to: unknown;
}

/** Undefined stands for what is not there. Holds secrets. */
export function compareDocuments(from: Mapping, to: Mapping): RawChange[] {
  const changes: RawChange[] = [];

  function compare(old: unknown, value: unknown, path: Path, valuePath: Path): void {
    if (isMapping(old) && isMapping(value)) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(value)])) {
        compare(valueAt(old, [key]), valueAt(value, [key]), [...path, key], [...valuePath, key]);
      }
      return;
    }
    if (Array.isArray(old) && Array.isArray(value)) {
      const olds = namedEntries(old, valuePath);
      const values = namedEntries(value, valuePath);
      if (olds !== undefined && values !== undefined && isSameOrder([...olds.keys()], [...values.keys()])) {
        for (const name of new Set([...olds.keys(), ...values.keys()])) {
          compare(olds.get(name), values.get(name), [...path, name], [...valuePath, 0]);
        }
        return;
      }
    }
    if (!Bun.deepEquals(old, value, true)) changes.push({ path, valuePath, from: old, to: value });
  }

  compare(from, to, [], []);
  return changes;
}

/** True if the names that both lists have stand in the same order: the order of backends matters. */
function isSameOrder(one: readonly string[], other: readonly string[]): boolean {
  const common = one.filter((name) => other.includes(name));
  return Bun.deepEquals(
    common,
    other.filter((name) => one.includes(name)),
  );
}

/** Names of the fields in which an edited file replaced what the API had changed. */
export function replacedFields(changes: readonly FieldChange[]): string[] {
  return changes.filter(({ replaced }) => replaced).map(({ path }) => path.join("."));
}

/** {section: {field: {from, to}}}, as the admin API shows changes. */
export function changesBySection(
  changes: readonly FieldChange[],
): Record<string, Record<string, { from: unknown; to: unknown }>> {
  const sections = new Map<string, [string, { from: unknown; to: unknown }][]>();
  for (const { section, field, from, to } of changes) {
    const fields = sections.get(section) ?? [];
    fields.push([field, { from, to }]);
    sections.set(section, fields);
  }
  return Object.fromEntries([...sections].map(([section, fields]) => [section, Object.fromEntries(fields)]));
}
