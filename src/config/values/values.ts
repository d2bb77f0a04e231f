// Plain values as YAML, TOML and JSON give them: paths into them and walks over them.

export type PathSegment = string | number;
export type Path = readonly PathSegment[];
export type Mapping = Record<string, unknown>;

/** Deeper nesting has no use in a configuration, and every walk over a document may recurse. */
const MAXIMUM_NESTING = 100;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a path; undefined where the path leads nowhere. Inherited properties do not count. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const segment of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, segment)) return undefined;
    current = (current as Mapping)[segment];
  }
  return current;
}

/** A copy with another value at a path, or without one for undefined; the same where something else stands in the way. */
export function withValueAt(value: unknown, [key, ...rest]: Path, next: unknown): unknown {
  if (key === undefined) return next;
  if (!isMapping(value)) return value;
  const inner = valueAt(value, [key]);
  const isMissing = inner === undefined && rest.length > 0;
  return withEntries(value, [[String(key), withValueAt(isMissing ? {} : inner, rest, next)]]);
}

/** A copy in which these entries stand in the place of those of their keys; undefined removes one. */
export function withEntries(mapping: Mapping, entries: Iterable<readonly [string, unknown]>): Mapping {
  const result = new Map(Object.entries(mapping));
  for (const [key, value] of entries) {
    if (value === undefined) result.delete(key);
    else result.set(key, value);
  }
  // fromEntries defines properties instead of assigning them, so that a key "__proto__" stays an ordinary key.
  return Object.fromEntries(result);
}

/** True if one path is the beginning of the other, or both are the same. */
export function isSameOrAround(one: Path, other: Path): boolean {
  return commonLength(one, other) === Math.min(one.length, other.length);
}

/** How many segments two paths have in common at their beginning. */
export function commonLength(one: Path, other: Path): number {
  const different = one.findIndex((segment, index) => segment !== other[index]);
  return different === -1 ? one.length : different;
}

/** A copy in which every string is replaced; keys stay. */
export function mapStrings(value: unknown, replace: (text: string, path: Path) => unknown, path: Path = []): unknown {
  if (typeof value === "string") return replace(value, path);
  if (Array.isArray(value)) return value.map((entry, index) => mapStrings(entry, replace, [...path, index]));
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, mapStrings(entry, replace, [...path, key])]),
  );
}

/** Every string, with the path to it. */
export function textsOf(value: unknown, path: Path = []): { text: string; path: Path }[] {
  const texts: { text: string; path: Path }[] = [];
  mapStrings(value, (text, place) => texts.push({ text, path: place }), path);
  return texts;
}

/** True if lists and mappings nest deeper than the limit; does not recurse itself, and ends on circular values too. */
export function isNestedTooDeeply(value: unknown, limit: number = MAXIMUM_NESTING): boolean {
  const open: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next.value !== "object" || next.value === null) continue;
    if (next.depth >= limit) return true;
    for (const entry of Object.values(next.value)) open.push({ value: entry, depth: next.depth + 1 });
  }
  return false;
}

/** A path as people read it: backends[0].headers["X Team"]. */
export function formatPath(path: Path): string {
  let text = "";
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`;
    else if (!/^[\w-]+$/.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === "" ? segment : `.${segment}`;
  }
  return text;
}
