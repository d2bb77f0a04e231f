// Reads the params of methods: wrong types are refused with the field and the fix, unknown fields are not looked at, and
// null is the same as nothing.

import { isObject, isPresent, type JsonObject } from "../lib/json.ts";
import { invalidParams } from "./rpc-error.ts";

export function readParams(params: unknown): JsonObject {
  if (!isPresent(params)) return {};
  if (!isObject(params)) throw invalidParams("params must be an object.");
  return params;
}

export function optionalText(from: JsonObject, name: string, field: string = name): string | undefined {
  const value = from[name];
  if (!isPresent(value)) return undefined;
  if (typeof value !== "string") throw invalidParams(`${field} must be a string.`);
  return value;
}

export function requiredText(from: JsonObject, name: string, field: string = name): string {
  const value = optionalText(from, name, field);
  if (value === undefined) throw invalidParams(`${field} is missing: give it as a string.`);
  return value;
}

export function optionalObject(from: JsonObject, name: string, field: string = name): JsonObject | undefined {
  const value = from[name];
  if (!isPresent(value)) return undefined;
  if (!isObject(value)) throw invalidParams(`${field} must be an object.`);
  return value;
}

export function optionalList(from: JsonObject, name: string, field: string = name): unknown[] | undefined {
  const value = from[name];
  if (!isPresent(value)) return undefined;
  if (!Array.isArray(value)) throw invalidParams(`${field} must be a list.`);
  return value;
}

export function optionalBoolean(from: JsonObject, name: string, field: string = name): boolean | undefined {
  const value = from[name];
  if (!isPresent(value)) return undefined;
  if (typeof value !== "boolean") throw invalidParams(`${field} must be true or false.`);
  return value;
}

export function optionalNumber(from: JsonObject, name: string, field: string = name): number | undefined {
  const value = from[name];
  if (!isPresent(value)) return undefined;
  if (typeof value !== "number") throw invalidParams(`${field} must be a number.`);
  return value;
}

/** The first of several names that is given: what one protocol calls so, the other calls otherwise. */
export function firstGiven(from: JsonObject, names: readonly string[]): string | undefined {
  return names.find((name) => isPresent(from[name]));
}

/** A field of the params, or the one of the same name in `_meta`: the public protocol's place for what it has no field for. */
export function withMeta(params: JsonObject, names: readonly string[]): JsonObject {
  const meta = optionalObject(params, "_meta") ?? {};
  const given: JsonObject = {};
  for (const name of names) given[name] = isPresent(params[name]) ? params[name] : meta[name];
  return given;
}
