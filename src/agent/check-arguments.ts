// The arguments of a call against the schema of its tool: what is missing, and what is of the wrong type, in words that a
// model can act on. Bounded, and lenient where it does not understand a schema: the tool has the last word.

import { isObject, type JsonObject } from "../lib/json.ts";

const MAX_PROBLEMS = 5;
const MAX_DEPTH = 16;
const MAX_VALUES = 20_000;

type ReadArguments = { ok: true; args: JsonObject } | { ok: false; problem: string };

interface Check {
  problems: string[];
  values: number;
}

/** @param text - as the model wrote it; "" is an empty object */
export function readArguments(text: string, schema: JsonObject): ReadArguments {
  const parsed = parseArguments(text);
  if (!parsed.ok) return parsed;
  const args = withoutNulls(parsed.args, schema);
  const check: Check = { problems: [], values: 0 };
  checkValue(check, args, schema, "", 0);
  const { problems } = check;
  return problems.length === 0 ? { ok: true, args } : { ok: false, problem: problems.join("; ") };
}

export function parseArguments(text: string): ReadArguments {
  if (text.trim() === "") return { ok: true, args: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return {
      ok: false,
      problem: `they are no valid JSON (${error instanceof Error ? error.message : "not readable"})`,
    };
  }
  if (isObject(value)) return { ok: true, args: value };
  return { ok: false, problem: `they must be a JSON object, not ${typeOf(value)}` };
}

/** Models that have to name every argument write null for those they leave out. */
function withoutNulls(args: JsonObject, { properties, required }: JsonObject): JsonObject {
  const known = isObject(properties) ? properties : {};
  const needed = new Set(Array.isArray(required) ? required : []);
  const isLeftOut = (name: string, value: unknown) =>
    value === null && Object.hasOwn(known, name) && !needed.has(name) && !takesNull(known[name]);
  const entries = Object.entries(args).filter(([name, value]) => !isLeftOut(name, value));
  return Object.fromEntries(entries);
}

function takesNull(schema: unknown): boolean {
  if (!isObject(schema)) return true;
  const types = typesOf(schema);
  return types === undefined || types.includes("null");
}

function checkValue(check: Check, value: unknown, schema: unknown, path: string, depth: number): void {
  if (!isObject(schema) || depth > MAX_DEPTH || check.problems.length >= MAX_PROBLEMS) return;
  if (++check.values > MAX_VALUES) return;
  const types = typesOf(schema);
  if (types !== undefined && !types.some((type) => isOfType(value, type))) {
    check.problems.push(`${path === "" ? "the arguments" : path} must be ${types.join(" or ")}, not ${typeOf(value)}`);
    return;
  }
  const { enum: choices } = schema;
  if (Array.isArray(choices) && !choices.some((choice) => Bun.deepEquals(choice, value))) {
    check.problems.push(
      `${path} must be one of ${choices
        .slice(0, 20)
        .map((choice) => JSON.stringify(choice))
        .join(", ")}`,
    );
    return;
  }
  if (isObject(value)) checkMembers(check, value, schema, path, depth);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (check.values > MAX_VALUES || check.problems.length >= MAX_PROBLEMS) return;
      checkValue(check, item, schema.items, `${path}[${index}]`, depth + 1);
    }
  }
}

function checkMembers(check: Check, value: JsonObject, schema: JsonObject, path: string, depth: number): void {
  const { required, additionalProperties } = schema;
  const properties = isObject(schema.properties) ? schema.properties : {};
  const inside = (name: string) => (path === "" ? name : `${path}.${name}`);
  for (const name of Array.isArray(required) ? required : []) {
    if (typeof name !== "string" || Object.hasOwn(value, name)) continue;
    if (check.problems.length < MAX_PROBLEMS) check.problems.push(`${inside(name)} is missing`);
  }
  for (const [name, member] of Object.entries(value)) {
    if (check.problems.length >= MAX_PROBLEMS) return;
    if (Object.hasOwn(properties, name)) checkValue(check, member, properties[name], inside(name), depth + 1);
    else if (additionalProperties === false) {
      const known = Object.keys(properties).slice(0, 20).join(", ");
      check.problems.push(`${inside(name).slice(0, 80)} is not known; known are: ${known === "" ? "none" : known}`);
    }
  }
}

function typesOf({ type }: JsonObject): readonly string[] | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((each) => typeof each === "string");
  return types.length === 0 ? undefined : types;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type;
    case "number":
      return typeof value === "number";
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    default:
      return true; // a word that is not known here is no reason to refuse
  }
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
