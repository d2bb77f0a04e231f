// Validation issues in an operator's words. Values are never printed: any of them may be a secret in the wrong place.

import type { z } from "zod";
import { nearest } from "../../lib/nearest.ts";
import type { JsonSchema } from "../schema/schema-export.ts";
import { knownKeys, schemaAt } from "../schema/schema-path.ts";
import { holdsSecrets } from "../schema/section-patterns.ts";
import type { Problem } from "../values/problems.ts";
import { type Path, type PathSegment, valueAt } from "../values/values.ts";

type Issue = z.core.$ZodIssue;

const NOUNS: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  record: "a mapping",
};

/** `prefix` is the place of the validated value in the whole document, e.g. `api_keys` for a file of keys. */
export function describeIssues(
  issues: readonly Issue[],
  input: unknown,
  schema: () => JsonSchema,
  prefix: Path = [],
): Problem[] {
  return issues.flatMap((issue) => {
    const path = issue.path as PathSegment[];
    if (issue.code === "unrecognized_keys") {
      const known = knownKeys(schemaAt(schema(), path));
      return issue.keys.map((key) => describeUnknownKey(path, key, known, holdsSecrets([...prefix, ...path])));
    }
    if (issue.code === "invalid_key" && holdsSecrets([...prefix, ...path.slice(0, -1)])) {
      // {Authorization:Bearer secret}, without a blank after the colon, is one long key.
      return [{ path: path.slice(0, -1), message: `has a key that is not allowed: ${issue.issues[0]?.message}` }];
    }
    const value = valueAt(input, path);
    if (issue.code === "custom" && typeof value === "string") {
      const suggestion = nearest(value.slice(0, 100), schemaAt(schema(), path)?.enum?.map(String) ?? []);
      if (suggestion !== undefined) return [{ path, message: `${issue.message}; did you mean ${suggestion}?` }];
    }
    return [{ path, message: describe(issue, value) }];
  });
}

function describeUnknownKey(
  parent: PathSegment[],
  key: string,
  known: readonly string[],
  isBesideSecrets: boolean,
): Problem {
  const suggestion = nearest(key.slice(0, 100), known);
  const hint = suggestion === undefined ? `known are ${known.join(", ")}` : `did you mean \`${suggestion}\`?`;
  // {key:secret}, without a blank after the colon, is one long key: only what looks like a key is repeated.
  const isShown = isBesideSecrets ? /^[A-Za-z_]{1,30}$/.test(key) : /^[\w.-]{1,60}$/.test(key);
  if (!isShown) return { path: parent, message: `has an unknown key (not shown, it may hold a secret); ${hint}` };
  return { path: [...parent, key], message: `unknown key \`${key}\`; ${hint}` };
}

function describe(issue: Issue, value: unknown): string {
  // A message that a schema wrote itself says more than anything made from the code.
  switch (issue.code) {
    case "invalid_type":
      if (value === undefined) return "is required";
      if (!issue.message.startsWith("Invalid input")) return issue.message;
      if (issue.expected === "int" && typeof value === "number") return "expected a whole number";
      return `expected ${nounOf(issue.expected)}, found ${kindOf(value)}`;
    case "invalid_value": {
      if (value === undefined) return "is required";
      if (!issue.message.startsWith("Invalid")) return issue.message;
      const allowed = issue.values.map(String);
      const suggestion = typeof value === "string" ? nearest(value.slice(0, 100), allowed) : undefined;
      const hint = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
      return `expected ${allowed.length === 1 ? "" : "one of "}${allowed.join(", ")}${hint}`;
    }
    case "too_small":
      if (!issue.message.startsWith("Too small")) return issue.message;
      return `must ${limit(issue.origin, issue.inclusive === false ? "be above" : "be at least", issue.minimum)}`;
    case "too_big":
      if (!issue.message.startsWith("Too big")) return issue.message;
      return `must ${limit(issue.origin, issue.inclusive === false ? "be below" : "be at most", issue.maximum)}`;
    case "invalid_key":
      return issue.issues[0]?.message ?? "this key is not allowed";
    case "invalid_union": {
      if (issue.message !== "Invalid input") return issue.message;
      const expected = issue.errors.flatMap(([first]) =>
        first?.code === "invalid_type" ? [nounOf(first.expected)] : [],
      );
      if (expected.length !== issue.errors.length) return "has a form that is not known here";
      return `expected ${[...new Set(expected)].join(" or ")}, found ${kindOf(value)}`;
    }
    default:
      return issue.message;
  }
}

function nounOf(type: string): string {
  return NOUNS[type] ?? type;
}

function limit(origin: string, relation: string, bound: number | bigint): string {
  if (origin === "array" || origin === "set")
    return `have ${relation.slice(3)} ${bound} ${bound === 1 ? "entry" : "entries"}`;
  if (origin === "string") return `have ${relation.slice(3)} ${bound} ${bound === 1 ? "character" : "characters"}`;
  return `${relation} ${bound}`;
}

function kindOf(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  if (typeof value === "boolean") return "true or false";
  return `a ${typeof value}`;
}
