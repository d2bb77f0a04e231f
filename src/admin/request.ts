// What admin requests bring along: JSON bodies read strictly, query parameters, and the version a change was made for.

import type { z } from "zod";
import { describeIssues } from "../config/compile/describe-issues.ts";
import { parseJson } from "../config/files/json-document.ts";
import { toJsonSchema } from "../config/schema/schema-export.ts";
import { unsafeValue } from "../config/values/unsafe-value.ts";
import { formatPath, isMapping, isNestedTooDeeply } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";
import type { Call } from "../server/endpoint.ts";
import { invalidFields } from "./refusals.ts";

/** decisions.md, section 3. */
const MAXIMUM_BODY_BYTES = 8 * 1024 * 1024;

const MAXIMUM_SHOWN_LENGTH = 64;

const strictDecoder = new TextDecoder("utf-8", { fatal: true });

/** Undefined for no body at all. Nothing of a body is ever repeated in an error: it may be a secret. */
export async function readBody(call: Call, maxBytes = MAXIMUM_BODY_BYTES): Promise<unknown> {
  const bytes = await call.readBody(maxBytes);
  if (bytes.length === 0) return undefined;
  let text: string;
  try {
    text = strictDecoder.decode(bytes);
  } catch (cause) {
    const encoding = call.request.headers.get("content-encoding");
    const reason =
      encoding === null ? "it is not valid UTF-8" : "its Content-Encoding is not supported, send it uncompressed";
    throw new GatewayError(ERRORS.invalidJson, `The request body cannot be read: ${reason}.`, { cause });
  }
  const { value, problems } = parseJson(text);
  const [problem] = problems;
  if (problem !== undefined) {
    const place = problem.line === undefined ? "" : `line ${problem.line}: `;
    throw new GatewayError(ERRORS.invalidJson, `The request body cannot be read: ${place}${problem.message}.`);
  }
  const unsafe = isNestedTooDeeply(value) ? undefined : unsafeValue(value);
  if (unsafe !== undefined) throw invalidFields([{ field: formatPath(unsafe.path), message: unsafe.message }]);
  return value;
}

/** The fields of a body, checked by a schema; null stands for a field that is left out. */
export async function readFields<Schema extends z.ZodType>(
  schema: Schema,
  call: Call,
  maxBytes?: number,
): Promise<z.output<Schema>> {
  const sent = await readBody(call, maxBytes);
  const body = sent === undefined ? {} : sent;
  if (!isMapping(body)) throw notAnObject();
  const given = Object.fromEntries(Object.entries(body).map(([key, value]) => [key, value ?? undefined]));
  const result = schema.safeParse(given, { reportInput: false });
  if (result.success) return result.data;
  const problems = describeIssues(result.error.issues, given, () => toJsonSchema(schema));
  throw invalidFields(problems.map(({ path, message }) => ({ field: formatPath(path), message })));
}

export function notAnObject(): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, "The request body must be a JSON object.");
}

export function bodyIsMissing(): GatewayError {
  return new GatewayError(ERRORS.invalidJson, "The request body is empty; JSON is expected.");
}

export function queryOf({ request }: Call): URLSearchParams {
  return new URL(request.url).searchParams;
}

/** Throws 400: what is misspelt here would else be a filter that does not filter, or a dry run that is none. */
export function refuseOtherParameters(call: Call, known: readonly string[]): void {
  for (const name of queryOf(call).keys()) {
    if (known.includes(name)) continue;
    const shown = name.slice(0, MAXIMUM_SHOWN_LENGTH);
    const meant = nearest(shown, known);
    const hint =
      meant !== undefined
        ? `did you mean '${meant}'?`
        : known.length > 0
          ? `known are ${known.join(", ")}.`
          : "this endpoint has none.";
    throw new GatewayError(ERRORS.invalidRequest, `There is no query parameter '${shown}' here: ${hint}`, {
      param: shown,
    });
  }
}

const FLAGS: Readonly<Record<string, boolean>> = { true: true, "1": true, "": true, false: false, "0": false };

/** `?force` alone means true. */
export function readFlag(query: URLSearchParams, name: string, ifAbsent: boolean): boolean {
  const text = query.get(name);
  if (text === null) return ifAbsent;
  const value = Object.hasOwn(FLAGS, text.toLowerCase()) ? FLAGS[text.toLowerCase()] : undefined;
  if (value === undefined) throw invalidFields([{ field: name, message: "expected true or false" }]);
  return value;
}

export function readWholeNumber(query: URLSearchParams, name: string, minimum: number, ifAbsent: number): number {
  const text = query.get(name);
  if (text === null) return ifAbsent;
  const value = toWholeNumber(text);
  if (value === undefined || value < minimum) {
    throw invalidFields([{ field: name, message: `expected a whole number, at least ${minimum}` }]);
  }
  return value;
}

export function toWholeNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Whether nothing is to be changed: ?dry_run=true. */
export function isDryRun(query: URLSearchParams): boolean {
  return readFlag(query, "dry_run", false);
}

const ONE_VERSION = '(W/)?("\\d{1,15}"|\\d{1,15})';
const VERSION = new RegExp(`^${ONE_VERSION}$`);

/**
 * The version that a change was made for, from `version` in the body or from If-Match; undefined when it does not
 * matter. Of several the one is taken that is not the current one.
 */
export function baseVersionOf({ request }: Call, inBody: number | undefined, current: number): number | undefined {
  const header = request.headers.get("if-match");
  const inHeader = header === null || header.trim() === "*" ? undefined : versionInHeader(header, current);
  return inHeader !== undefined && inHeader !== current ? inHeader : (inBody ?? inHeader);
}

/** One version, or several with commas between: as an ETag, weak or not, or a bare number (RFC 9110, section 13.1.1). */
export const IF_MATCH_PATTERN = `^(\\*|${ONE_VERSION}( *, *${ONE_VERSION})*)$`;

function versionInHeader(header: string, current: number): number | undefined {
  const versions = header.split(",").map((part) => {
    return VERSION.test(part.trim()) ? toWholeNumber(part.replaceAll(/\D/g, "")) : undefined;
  });
  if (versions.includes(undefined)) {
    throw invalidFields([{ field: "If-Match", message: 'expected the version of the configuration, such as "3"' }]);
  }
  return versions.includes(current) ? current : versions[0];
}

/** `version` of a body, where no schema has looked at it. */
export function readVersion(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalidFields([{ field: "version", message: "expected the version of the configuration, a whole number" }]);
}
