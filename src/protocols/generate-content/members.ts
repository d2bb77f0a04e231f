// Members of a client's body in either spelling: Google's JSON is written in camelCase, and the same names in snake_case
// are read too, as is one object where a list is expected (https://protobuf.dev/programming-guides/json).

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { objectOf, objectsOf } from "../reading.ts";

/** The value of a member; `snake` is its other spelling. */
export function either(object: JsonObject, camel: string, snake: string): unknown {
  const value = object[camel];
  return isPresent(value) ? value : object[snake];
}

export function eitherObject(object: JsonObject, camel: string, snake: string): JsonObject {
  return objectOf(either(object, camel, snake));
}

/** A list, or the one entry of it. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isPresent(value) ? [value] : [];
}

export function objectsIn(value: unknown): JsonObject[] {
  return objectsOf(listOf(value));
}

/** The name in camelCase. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The members by their names in camelCase; values stay as they are. */
export function inCamelCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [camelCase(name), value]));
}

/** A route writes its fields in camelCase: they stand beside a client's own in snake_case, and count. */
export function generationConfigOf({ generationConfig: camel, generation_config: snake }: JsonObject): JsonObject {
  if (!isObject(camel)) return objectOf(snake);
  return isObject(snake) ? { ...inCamelCase(snake), ...camel } : camel;
}
