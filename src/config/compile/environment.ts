// Overrides from the environment: SIGNALBOX_<SECTION>__<KEY>, a double underscore per level, list entries by number.

import { nearest } from "../../lib/nearest.ts";
import { documentJsonSchema, type JsonSchema } from "../schema/schema-export.ts";
import { acceptsType, alternatives, childSchema, knownKeys } from "../schema/schema-path.ts";
import { canonicalKey } from "../schema/section-patterns.ts";
import type { Environment } from "../values/expand.ts";
import type { Problem } from "../values/problems.ts";
import { commonLength, isMapping, type Mapping, type Path, type PathSegment } from "../values/values.ts";
import { coerceText } from "./coerce.ts";

const PREFIX = "SIGNALBOX_";

interface Override {
  variable: string;
  path: Path;
  value: unknown;
}

/** Names that are known without their section. */
const SHORT_NAMES: Readonly<Record<string, string>> = { SIGNALBOX_DATA_DIR: "SIGNALBOX_SERVER__DATA_DIR" };

/** Kubernetes sets SIGNALBOX_PORT and the like beside a service of that name, so names without `__` are not ours. */
function isOverrideName(name: string): boolean {
  if (Object.hasOwn(SHORT_NAMES, name)) return true;
  return name.startsWith(PREFIX) && name.indexOf("__", PREFIX.length) > PREFIX.length;
}

/** A copy of the document in which the overrides win. */
export function applyOverrides(document: Mapping, env: Environment) {
  const overrides: Override[] = [];
  const problems: Problem[] = [];
  let result: unknown = document;
  const names = Object.keys(env).filter(isOverrideName);
  if (names.length === 0) return { document, overrides, problems };
  const schema = documentJsonSchema();
  for (const variable of names) {
    const text = env[variable];
    const fullName = SHORT_NAMES[variable];
    // As in a shell, an empty variable is an unset one; the full name wins.
    if (text === undefined || (fullName !== undefined && (text === "" || env[fullName] !== undefined))) continue;
    const target = resolveTarget((fullName ?? variable).slice(PREFIX.length).split("__"), schema);
    if ("message" in target) problems.push({ ...target, variable, overridden: true });
    else overrides.push({ variable, path: target.path, value: coerceText(target.schema, text) });
  }
  overrides.sort((one, other) => comparePaths(one.path, other.path));
  for (const { variable, path, value } of overrides) {
    const written = write(result, path, value, schema);
    if (typeof written === "string") problems.push({ path, message: written, variable, overridden: true });
    else result = written.value;
  }
  return { document: result as Mapping, overrides, problems };
}

function resolveTarget(
  words: readonly string[],
  root: JsonSchema,
): { path: Path; schema: JsonSchema } | { path: Path; message: string } {
  const path: PathSegment[] = [];
  let schema = root;
  for (const word of words) {
    const segment = toSegment(word, path, schema);
    if (segment === undefined) return { path, message: unknownWord(word, schema, path.length === 0) };
    path.push(segment);
    schema = childSchema(schema, segment) as JsonSchema;
  }
  return { path, schema };
}

function toSegment(word: string, parent: Path, schema: JsonSchema): PathSegment | undefined {
  if (/^\d{1,6}$/.test(word) && childSchema(schema, Number(word)) !== undefined) return Number(word);
  const key = word.toLowerCase();
  const name = canonicalKey(parent, key) ?? key;
  if (knownKeys(schema).includes(name)) return name;
  // Where any key is allowed, such as a model id, its letter case means something.
  return word !== "" && childSchema(schema, word) !== undefined ? word : undefined;
}

function unknownWord(word: string, schema: JsonSchema, isSection: boolean): string {
  if (alternatives(schema).every((branch) => branch.type === "array")) {
    return `expected the number of a list entry in place of ${word}, such as 0 for the first`;
  }
  const known = knownKeys(schema);
  if (known.length === 0) return `has no keys, so that ${word} means nothing`;
  const suggestion = nearest(word.toLowerCase(), known);
  const unknown = `unknown ${isSection ? "section" : "key"} ${word}`;
  if (suggestion !== undefined) return `${unknown}; did you mean ${suggestion.toUpperCase()}?`;
  return `${unknown}; known are ${known.map((key) => key.toUpperCase()).join(", ")}`;
}

/** Sorts whole values before their parts, and list entries by index, so that an entry can be appended. */
function comparePaths(one: Path, other: Path): number {
  const index = commonLength(one, other);
  const left = one[index];
  const right = other[index];
  if (left === undefined || right === undefined) return one.length - other.length;
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left) < String(right) ? -1 : 1;
}

/** The changed copy, or what stands in the way. */
function write(current: unknown, path: Path, value: unknown, schema: JsonSchema): { value: unknown } | string {
  const [segment, ...rest] = path;
  if (segment === undefined) return { value };
  const child = childSchema(schema, segment) ?? {};
  // A value of a wrong kind in the file stays, so that validation finds it; only a choice of kinds may change its kind.
  const isReplaceable = current === undefined || current === null || acceptsType(schema, typeof current);
  if (typeof segment === "number" && acceptsType(schema, "array")) {
    if (!Array.isArray(current) && !isReplaceable) return { value: current };
    const list = Array.isArray(current) ? [...current] : [];
    if (segment > list.length) {
      return `leaves a gap: the list has ${list.length} ${list.length === 1 ? "entry" : "entries"}, the next is number ${list.length}`;
    }
    const inner = write(list[segment], rest, value, child);
    if (typeof inner === "string") return inner;
    list[segment] = inner.value;
    return { value: list };
  }
  if (!isMapping(current) && !isReplaceable) return { value: current };
  const mapping = isMapping(current) ? current : {};
  const inner = write(Object.hasOwn(mapping, segment) ? mapping[segment] : undefined, rest, value, child);
  if (typeof inner === "string") return inner;
  return { value: Object.fromEntries([...Object.entries(mapping), [String(segment), inner.value]]) };
}
