// What a change means for the running gateway: fields that wait for a restart, and a snapshot that no reader can change.

import { SECTIONS, type Settings } from "../sections/registry.ts";
import { valueAt, withValueAt } from "../values/values.ts";

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

/** Readers share one snapshot: it must not be changed. Only plain values are frozen. */
export function freezeDeep<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const prototype = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return value;
  Object.freeze(value);
  for (const entry of Object.values(value)) freezeDeep(entry);
  return value;
}
