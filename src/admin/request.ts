// What admin requests bring along: JSON bodies, read strictly, and the version that a change was made for.

import { z } from "zod";
import { describeIssues } from "../config/compile/describe-issues.ts";
import { parseJson } from "../config/files/json-document.ts";
import type { JsonSchema } from "../config/schema/schema-export.ts";
import { unsafeValue } from "../config/values/unsafe-value.ts";
import { formatPath, isMapping, isNestedTooDeeply } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { lazily } from "../lib/lazily.ts";
import { definitionOf, type Schema } from "../openapi/json-schema.ts";
import type { Call } from "../server/endpoint.ts";
import { decodeBody } from "../server/parse-body.ts";
import { toWholeNumber } from "./query.ts";
import { invalidFields } from "./refusals.ts";

const MAXIMUM_BODY_BYTES = 8 * 1024 * 1024;

/** Undefined for no body at all. Nothing of a body is ever repeated in an error: it may be a secret. */
export async function readBody(call: Call, maxBytes = MAXIMUM_BODY_BYTES): Promise<unknown> {
  const bytes = await call.readBody(maxBytes);
  if (bytes.length === 0) return undefined;
  const text = decodeBody(bytes, call.request.headers.get("content-encoding"));
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

/** The members of a body: null stands for one that is left out. Of a schema that says nothing, what was sent. */
export type Fields<Sent> = unknown extends Sent ? unknown : { [Key in keyof Sent]: Exclude<Sent[Key], null> };

/** Checks bodies by a schema, which is compiled at the first one. */
export function createFieldsReader<Sent>(schema: Schema<Sent>, maxBytes?: number) {
  const checked = lazily(() => {
    const { properties = {}, ...rest } = definitionOf(schema);
    return { ...rest, properties: Object.fromEntries(Object.entries(properties).map(([k, v]) => [k, withoutNull(v)])) };
  });
  const checker = lazily(() => z.fromJSONSchema(checked() as Parameters<typeof z.fromJSONSchema>[0]));
  return async (call: Call): Promise<Fields<Sent>> => {
    const body = await readBody(call, maxBytes);
    const sent = body === undefined ? {} : body;
    if (!isMapping(sent)) throw notAnObject();
    const given = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, value ?? undefined]));
    const result = checker().safeParse(given, { reportInput: false });
    if (result.success) return given as Fields<Sent>;
    const { issues } = result.error;
    // First the names that are not known: they explain the members that are missing.
    const isUnknown = ({ code }: (typeof issues)[number]) => code === "unrecognized_keys";
    const inOrder = [...issues.filter(isUnknown), ...issues.filter((issue) => !isUnknown(issue))];
    const problems = describeIssues(inOrder, given, checked);
    throw invalidFields(problems.map(({ path, message }) => ({ field: formatPath(path), message })));
  };
}

/** As openapi/json-schema.ts adds it to members that may be left out. Texts of a form are read by those that know the form. */
function withoutNull({ pattern: _, ...schema }: JsonSchema): JsonSchema {
  if (Array.isArray(schema.type) && schema.type.at(-1) === "null") return { ...schema, type: schema.type[0] as string };
  const [choice, ...others] = schema.anyOf ?? [];
  return choice !== undefined && others.at(0)?.type === "null" ? choice : schema;
}

export function notAnObject(): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, "The request body must be a JSON object.");
}

export function bodyIsMissing(): GatewayError {
  return new GatewayError(ERRORS.invalidJson, "The request body is empty; JSON is expected.");
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
