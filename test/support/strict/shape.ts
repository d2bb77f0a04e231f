// Strict checks of a JSON body: every member must be known, of the right type and within its bounds.

import type { JsonObject } from "./script.ts";

export class Refused extends Error {
  readonly reason: "unknown" | "missing" | "invalid";
  readonly field: string;
  readonly status: number;
  readonly code: string | undefined;

  constructor(reason: Refused["reason"], field: string, message: string, status = 400, code?: string) {
    super(message);
    this.reason = reason;
    this.field = field;
    this.status = status;
    this.code = code;
  }
}

export type Check = (value: unknown, field: string) => void;

export function refuse(field: string, message: string): never {
  throw new Refused("invalid", field, message);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Members that may be missing end in "?", those that may also be null in "??". */
export function shape(members: Record<string, Check>, rules: { camelCase?: boolean } = {}): Check {
  const known = new Map<string, { check: Check; isOptional: boolean; isNullable: boolean }>();
  for (const [key, check] of Object.entries(members)) {
    const isNullable = key.endsWith("??");
    known.set(key.replace(/\?+$/, ""), { check, isOptional: key.endsWith("?"), isNullable });
  }
  return (value, field) => {
    if (!isObject(value)) refuse(field, "expected an object");
    const seen = new Set<string>();
    for (const [key, member] of Object.entries(value)) {
      const name = rules.camelCase ? camelCase(key) : key;
      const path = field === "" ? key : `${field}.${key}`;
      const rule = known.get(name);
      if (rule === undefined) throw new Refused("unknown", path, `unknown member ${key}`);
      if (seen.has(name)) refuse(path, "given twice");
      seen.add(name);
      if (member === null && rule.isNullable) continue;
      rule.check(member, path);
    }
    for (const [key, { isOptional }] of known) {
      if (isOptional || seen.has(key)) continue;
      throw new Refused("missing", field === "" ? key : `${field}.${key}`, "required");
    }
  };
}

/** The shape that belongs to the value of the member `tag`. */
export function tagged(tag: string, shapes: Record<string, Check>): Check {
  return (value, field) => {
    if (!isObject(value)) refuse(field, "expected an object");
    const name = value[tag];
    if (name === undefined) throw new Refused("missing", `${field}.${tag}`, "required");
    const check = typeof name === "string" ? shapes[name] : undefined;
    if (check === undefined) refuse(`${field}.${tag}`, `${String(name)} is none of ${Object.keys(shapes).join(", ")}`);
    check(value, field);
  };
}

export const anything: Check = () => {};

export const anyObject: Check = (value, field) => {
  if (!isObject(value)) refuse(field, "expected an object");
};

export const boolean: Check = (value, field) => {
  if (typeof value !== "boolean") refuse(field, "expected a boolean");
};

export function string(rules: { min?: number; max?: number; pattern?: RegExp } = {}): Check {
  return (value, field) => {
    if (typeof value !== "string") refuse(field, "expected a string");
    const { length } = value;
    if (length < (rules.min ?? 0) || length > (rules.max ?? Number.POSITIVE_INFINITY)) refuse(field, "wrong length");
    if (rules.pattern?.test(value) === false) refuse(field, `does not match ${rules.pattern}`);
  };
}

export function number(min: number, max = Number.POSITIVE_INFINITY): Check {
  return (value, field) => {
    if (typeof value !== "number") refuse(field, "expected a number");
    if (value < min || value > max) refuse(field, `expected ${min} to ${max}`);
  };
}

export function integer(min: number, max = Number.POSITIVE_INFINITY): Check {
  return (value, field) => {
    if (!Number.isInteger(value)) refuse(field, "expected an integer");
    number(min, max)(value, field);
  };
}

export function oneOf(...values: unknown[]): Check {
  return (value, field) => {
    if (!values.includes(value)) refuse(field, `${JSON.stringify(value)} is none of ${values.join(", ")}`);
  };
}

export function list(member: Check, min = 0, max = Number.POSITIVE_INFINITY): Check {
  return (value, field) => {
    if (!Array.isArray(value)) refuse(field, "expected an array");
    if (value.length < min || value.length > max) refuse(field, `expected ${min} to ${max} entries`);
    for (const [index, entry] of value.entries()) member(entry, `${field}[${index}]`);
  };
}

/** A string by the first rule, anything else by the second. */
export function stringOr(text: Check, other: Check): Check {
  return (value, field) => (typeof value === "string" ? text : other)(value, field);
}

export const base64: Check = (value, field) => {
  if (typeof value !== "string" || value === "") refuse(field, "expected base64");
  if (value.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) refuse(field, "invalid base64");
};

export const httpUrl: Check = (value, field) => {
  if (typeof value !== "string" || !/^https?:\/\//.test(value)) refuse(field, "expected an http URL");
};

/** A data URL of one of these types, or (where accepted) an http URL. */
export function dataUrl(types: RegExp, orHttp = false): Check {
  return (value, field) => {
    if (typeof value !== "string") refuse(field, "expected a string");
    const match = /^data:([^;,]+);base64,/.exec(value);
    if (match === null) return orHttp ? httpUrl(value, field) : refuse(field, "expected a data URL");
    if (!types.test(match[1] ?? "")) refuse(field, `the type ${match[1]} is not supported`);
    base64(value.slice(match[0].length), field);
  };
}

const IMAGE_STARTS: Record<string, RegExp> = {
  "image/png": /^iVBORw0KGgo/,
  "image/jpeg": /^\/9j\//,
  "image/gif": /^R0lGOD/,
  "image/webp": /^UklGR/,
  "application/pdf": /^JVBERi0/,
};

/** Vendors look at the bytes: they refuse a file under another type's name. */
export function checkSignature(mediaType: string, data: string, field: string): void {
  if (IMAGE_STARTS[mediaType]?.test(data) === false) refuse(field, `the content is not ${mediaType}`);
}

export function camelCase(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
