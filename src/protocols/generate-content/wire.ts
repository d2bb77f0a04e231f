// Reading of untrusted JSON and the few shapes that the halves of the generateContent format share. Parts stay loose on
// purpose: new kinds of parts appear faster than types can follow.

import { isObject, type JsonObject } from "../../lib/json.ts";

/** A piece of a message: text, inlineData, functionCall, ... with thought and thoughtSignature beside it. */
export type Part = JsonObject;

export interface Content {
  role: "user" | "model";
  parts: Part[];
}

/** The text, or "" for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objectsOf(value: unknown): JsonObject[] {
  return arrayOf(value).filter(isObject);
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** A count: never negative, undefined for anything that is none. Large ones may come as text. */
export function optionalCount(value: unknown): number | undefined {
  const count = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof count === "number" && Number.isFinite(count) ? Math.max(0, Math.trunc(count)) : undefined;
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}
