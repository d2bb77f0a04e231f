// Reading values of the wire without trust: what is missing or of another type counts as left out.

import { isObject, type JsonObject } from "../lib/json.ts";

/** The text, or "" for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function optionalText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function optionalBoolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

export function optionalNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** A text such as 1e999 is read as a number that no text can say again. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** A count of tokens or a place in a list: whole, not negative. */
export function wholeNumberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

/** A number that counts something: finite, not negative. */
export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function optionalObject(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

export function objectsOf(value: unknown): JsonObject[] {
  return arrayOf(value).filter(isObject);
}

export function textsOf(value: unknown): string[] {
  return arrayOf(value).filter((entry) => typeof entry === "string");
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Undefined for an empty list. */
export function filled<List extends readonly unknown[]>(list: List): List | undefined {
  return list.length > 0 ? list : undefined;
}
