// What a change means for the running gateway: fields that wait for a restart, warnings, what an edited file replaced.

import { isWithin } from "../change/capability.ts";
import { compareDocuments, type FieldChange } from "../change/diff.ts";
import { specOf } from "../schema/section-patterns.ts";
import { SECTIONS, type Settings } from "../sections/registry.ts";
import { isMapping, type Mapping, type Path, valueAt } from "../values/values.ts";

const RESTART_PATHS: readonly string[][] = SECTIONS.flatMap(({ name, restartFields = [] }) =>
  restartFields.map((field) => [name, ...field.split(".")]),
);

/** The new settings, with the running values of the fields that are read at start only. */
export function keepRestartFields(next: Settings, running: Settings): Settings {
  let result: unknown = next;
  for (const path of RESTART_PATHS) result = withValueAt(result, path, valueAt(running, path));
  return result as Settings;
}

/** Names of the fields in which two settings differ that are read at start only. */
export function pendingRestartFields(running: Settings, next: Settings): string[] {
  return RESTART_PATHS.filter((path) => !Bun.deepEquals(valueAt(running, path), valueAt(next, path), true)).map(
    (path) => path.join("."),
  );
}

function withValueAt(mapping: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  if (!isMapping(mapping)) return mapping;
  return { ...mapping, [key]: withValueAt(mapping[key], rest, value) };
}

/** What whoever makes these changes should know. */
export function warningsOfChanges(
  changes: readonly FieldChange[],
  overrides: readonly { variable: string; path: Path }[],
): string[] {
  const warnings: string[] = [];
  for (const { path } of changes) {
    const name = path.join(".");
    const spec = specOf(path[0]);
    const isOneOf = (fields: readonly string[] = []) => fields.some((field) => isWithin(path.slice(1), field));
    // What does nothing is told apart (without-effect.ts), and waits for nothing.
    if (!isOneOf(spec?.notInEffect) && isOneOf(spec?.restartFields))
      warnings.push(`${name} takes effect after a restart`);
  }
  for (const { variable, path } of overrides) {
    const list = path.findIndex((segment) => typeof segment === "number");
    const fixed = list === -1 ? path : path.slice(0, list);
    const isTouched = changes.some((change) =>
      fixed.every((segment, index) => index >= change.path.length || segment === change.path[index]),
    );
    if (isTouched) warnings.push(`${path.join(".")} is set by the environment variable ${variable}, which wins`);
  }
  return warnings;
}

/** Fields that were changed after the file was read, and that the edited file has set to something else again. */
export function replacedFields(fileBefore: Mapping, before: Mapping, after: Mapping): string[] {
  const made = compareDocuments(fileBefore, before).map(({ path }) => path);
  const undone = compareDocuments(before, after).map(({ path }) => path);
  return made.filter((path) => undone.some((other) => isSameOrAround(path, other))).map((path) => path.join("."));
}

function isSameOrAround(one: Path, other: Path): boolean {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index++) if (one[index] !== other[index]) return false;
  return true;
}

/** Readers share one snapshot: nobody may change it. Only plain values are frozen. */
export function freezeDeep<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const prototype = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return value;
  Object.freeze(value);
  for (const entry of Object.values(value)) freezeDeep(entry);
  return value;
}
