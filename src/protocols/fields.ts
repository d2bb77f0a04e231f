// Checks of request fields: each throws a 400 that names the field, says what was expected and what came instead.
// Hand-written because they run on every request; a null counts as left out, as the OpenAI API treats it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

export function invalidField(param: string, message: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param}: ${message}`, { param });
}

export function missingField(param: string, hint: string): GatewayError {
  return new GatewayError(ERRORS.missingParameter, `${param} is required: ${hint}`, { param });
}

/** What a value is, in the words of JSON. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return { string: "a string", number: "a number", boolean: "a boolean" }[typeof value as string] ?? "an object";
}

export function requireModel(body: JsonObject): string {
  const { model } = body;
  if (model === undefined || model === null) throw missingField("model", "the id of a model, see GET /v1/models.");
  if (typeof model !== "string") throw invalidField("model", `expected a string, got ${describe(model)}.`);
  if (model === "") throw invalidField("model", "must not be empty; GET /v1/models lists the models.");
  return model;
}

/** A number within inclusive bounds. */
export interface NumberRule {
  field: string;
  minimum: number;
  maximum: number;
  integer?: boolean;
}

export const NO_MAXIMUM = Number.POSITIVE_INFINITY;

/** Fields that chat and text completions share. */
export const SAMPLING_NUMBERS: readonly NumberRule[] = [
  { field: "temperature", minimum: 0, maximum: 2 },
  { field: "top_p", minimum: 0, maximum: 1 },
  { field: "frequency_penalty", minimum: -2, maximum: 2 },
  { field: "presence_penalty", minimum: -2, maximum: 2 },
  { field: "n", minimum: 1, maximum: 128, integer: true },
];

export function checkNumbers(body: JsonObject, rules: readonly NumberRule[]): void {
  for (const { field, minimum, maximum, integer } of rules) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    const kind = integer ? "an integer" : "a number";
    if (typeof value !== "number") throw invalidField(field, `expected ${kind}, got ${describe(value)}.`);
    if ((integer && !Number.isInteger(value)) || value < minimum || value > maximum) {
      const range = maximum === NO_MAXIMUM ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`;
      throw invalidField(field, `expected ${kind} ${range}, got ${value}.`);
    }
  }
}

export function checkBoolean(body: JsonObject, field: string): boolean {
  const value = body[field];
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw invalidField(field, `expected true or false, got ${describe(value)}.`);
  return value;
}

export function checkString(body: JsonObject, field: string): void {
  const value = body[field];
  if (value !== undefined && value !== null && typeof value !== "string") {
    throw invalidField(field, `expected a string, got ${describe(value)}.`);
  }
}

export function checkObject(body: JsonObject, field: string): void {
  const value = body[field];
  if (value !== undefined && value !== null && !isObject(value)) {
    throw invalidField(field, `expected an object, got ${describe(value)}.`);
  }
}

export function checkArray(body: JsonObject, field: string): void {
  const value = body[field];
  if (value !== undefined && value !== null && !Array.isArray(value)) {
    throw invalidField(field, `expected an array, got ${describe(value)}.`);
  }
}

/** Deeper than any real schema or tool argument. */
const MAX_DEPTH = 200;

/**
 * Refuses a body that is nested so deeply that writing it again would take seconds. To be asked before a body, or a part
 * of it, is serialised.
 */
export function checkDepth(body: JsonObject): void {
  for (const [field, value] of Object.entries(body)) {
    if (isDeeperThan(value, MAX_DEPTH)) throw invalidField(field, `is nested deeper than ${MAX_DEPTH} levels.`);
  }
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const key in value) {
    if (isDeeperThan((value as JsonObject)[key], levels - 1)) return true;
  }
  return false;
}

/** The field stop: one string or a list of strings. */
export function checkStop(body: JsonObject): void {
  const { stop } = body;
  if (stop === undefined || stop === null || typeof stop === "string") return;
  if (!Array.isArray(stop))
    throw invalidField("stop", `expected a string or an array of strings, got ${describe(stop)}.`);
  const index = stop.findIndex((entry) => typeof entry !== "string");
  if (index >= 0) throw invalidField(`stop[${index}]`, `expected a string, got ${describe(stop[index])}.`);
}
