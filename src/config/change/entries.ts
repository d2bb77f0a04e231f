// Entries of lists: which entry of another list is the same one, by its name.

import { matches, specOf } from "../schema/section-patterns.ts";
import { isMapping, type Path } from "../values/values.ts";

/** Where the name stands in each entry of the list at this path; undefined for a list whose entries have none. */
export function entryNameKey(path: Path): string | undefined {
  return entryKeys(path)?.[0];
}

function entryKeys(path: Path): readonly [name: string, ...otherwise: string[]] | undefined {
  const lists = Object.entries(specOf(path[0])?.entryNames ?? {});
  return lists.find(([pattern]) => matches(pattern === "" ? [] : pattern.split("."), path.slice(1)))?.[1];
}

export function nameOf(entry: unknown, key: string): string | undefined {
  if (!isMapping(entry) || !Object.hasOwn(entry, key)) return undefined;
  const name = entry[key];
  return typeof name === "string" ? name : undefined;
}

/** The entries that an entry of the list at this path may be a new form of: those of its name, or all without one. */
export function entriesLike(entry: unknown, olds: readonly unknown[], path: Path): unknown[] {
  const key = entryNameKey(path);
  if (key === undefined) return [...olds];
  const name = nameOf(entry, key);
  return olds.filter((old) => nameOf(old, key) === name);
}

/** Entries of a list by their name; undefined for a list without names, or with one that is missing or repeated. */
export function namedEntries(list: readonly unknown[], path: Path): Map<string, unknown> | undefined {
  const key = entryNameKey(path);
  if (key === undefined) return undefined;
  const named = new Map<string, unknown>();
  for (const entry of list) {
    const name = nameOf(entry, key);
    if (name === undefined || named.has(name)) return undefined;
    named.set(name, entry);
  }
  return named;
}

/**
 * Entries of a list by what tells them apart, which may be a secret: never shown. Undefined for a list whose entries have
 * no names.
 */
export function identifiedEntries(list: readonly unknown[], path: Path): Map<string, unknown> | undefined {
  const keys = entryKeys(path);
  if (keys === undefined) return undefined;
  const counts = new Map<string, number>();
  return new Map(
    list.map((entry) => {
      const parts = keys.map((key) => nameOf(entry, key));
      const known = parts.findIndex((part) => part !== undefined);
      const identity = JSON.stringify([known, known === -1 ? undefined : parts[known]]);
      // Entries that cannot be told apart are counted.
      const count = (counts.get(identity) ?? 0) + 1;
      counts.set(identity, count);
      return [`${identity}${count}`, entry] as const;
    }),
  );
}
