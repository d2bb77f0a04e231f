// Checks of request fields: each throws a 400 that names the field, says what was expected and what came instead.
// Hand-written because they run on every request; a null counts as left out, as the OpenAI API treats it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isObject, isPresent, type JsonObject } from "../lib/json.ts";

export function invalidField(param: string, message: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param}: ${message}`, { param });
}

export function missingField(param: string, hint: string): GatewayError {
  return new GatewayError(ERRORS.missingParameter, `${param} is required: ${hint}`, { param });
}

/** @param expected - "a string", "an array of strings", ... */
export function wrongType(param: string, expected: string, value: unknown): GatewayError {
  return invalidField(param, `expected ${expected}, got ${describe(value)}.`);
}

/** The same for a text that has to be one of a few. */
export function wrongWord(param: string, words: readonly unknown[], value: unknown): GatewayError {
  const given = typeof value === "string" ? JSON.stringify(value) : describe(value);
  return invalidField(param, `expected one of ${words.join(", ")}, got ${given}.`);
}

/** What a value is, in the words of JSON. */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return { string: "a string", number: "a number", boolean: "a boolean" }[typeof value as string] ?? "an object";
}

export function requireModel(body: JsonObject): string {
  const { model } = body;
  if (!isPresent(model)) throw missingField("model", "the id of a model, see GET /v1/models.");
  if (typeof model !== "string") throw wrongType("model", "a string", model);
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
    if (!isPresent(value)) continue;
    const kind = integer ? "an integer" : "a number";
    if (typeof value !== "number") throw wrongType(field, kind, value);
    if ((integer && !Number.isInteger(value)) || value < minimum || value > maximum) {
      const range = maximum === NO_MAXIMUM ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`;
      throw invalidField(field, `expected ${kind} ${range}, got ${value}.`);
    }
  }
}

function checkOf(expected: string, isRight: (value: unknown) => boolean) {
  /** @param at - where the object stands in the request */
  return (body: JsonObject, field: string, at?: string): void => {
    const value = body[field];
    if (!isPresent(value) || isRight(value)) return;
    throw wrongType(at === undefined ? field : `${at}.${field}`, expected, value);
  };
}

export const checkString = checkOf("a string", (value) => typeof value === "string");
export const checkObject = checkOf("an object", isObject);
export const checkArray = checkOf("an array", Array.isArray);
const checkTrueOrFalse = checkOf("true or false", (value) => typeof value === "boolean");

export function checkBoolean(body: JsonObject, field: string, at?: string): boolean {
  checkTrueOrFalse(body, field, at);
  return body[field] === true;
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
export function checkStop({ stop }: JsonObject): void {
  if (!isPresent(stop) || typeof stop === "string") return;
  if (!Array.isArray(stop)) throw wrongType("stop", "a string or an array of strings", stop);
  const index = stop.findIndex((entry) => typeof entry !== "string");
  if (index >= 0) throw wrongType(`stop[${index}]`, "a string", stop[index]);
}
