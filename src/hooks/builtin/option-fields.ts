// The fields of the options of built-in hooks: checked when a hook is loaded, with the name of the field and what is expected.

import type { JsonObject } from "../../lib/json.ts";

export function checkNames(given: JsonObject, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`options.${unknown}: unknown; expected one of ${known.join(", ")}`);
}

export function booleanIn(given: JsonObject, name: string, usual: boolean): boolean {
  const value = given[name] ?? usual;
  if (typeof value !== "boolean") throw new Error(`options.${name}: expected true or false`);
  return value;
}

export function numberIn(given: JsonObject, name: string, usual: number | undefined): number | undefined {
  const value = given[name] ?? usual;
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
    throw new Error(`options.${name}: expected a number from 0 on`);
  }
  return value;
}

export function textIn(given: JsonObject, name: string, usual: string | undefined): string | undefined {
  const value = given[name] ?? usual;
  if (value !== undefined && (typeof value !== "string" || value === ""))
    throw new Error(`options.${name}: expected a text`);
  return value;
}

/** @param allowed - the default, and all that may stand there; undefined: any texts, and none by default */
export function listIn(given: JsonObject, name: string, allowed: readonly string[] | undefined): string[] {
  const value = given[name] ?? allowed ?? [];
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string" && entry !== "")) {
    throw new Error(`options.${name}: expected a list of texts`);
  }
  const wrong = allowed && (value as string[]).find((entry) => !allowed.includes(entry));
  if (wrong !== undefined) throw new Error(`options.${name}: expected some of ${allowed?.join(", ")}`);
  return [...(value as string[])];
}
