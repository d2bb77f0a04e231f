// Paths in the notation of SectionSpec: dots between keys, `*` for any list index or map key.

import { SECTIONS, type SectionSpec } from "../sections/registry.ts";
import type { FilePathUse } from "../sections/section.ts";
import type { Problem } from "../values/problems.ts";
import { isMapping, type Mapping, type Path, type PathSegment, valueAt, withValueAt } from "../values/values.ts";

/** True if a pattern, split at its dots, matches this path below the section; `*` stands for any segment. */
export function matches(pattern: readonly string[], path: Path): boolean {
  return pattern.length === path.length && pattern.every((part, index) => part === "*" || part === String(path[index]));
}

export function specOf(section: PathSegment | undefined): SectionSpec | undefined {
  return SECTIONS.find(({ name }) => name === section);
}

function secretPatterns(section: PathSegment | undefined): string[][] {
  return (specOf(section)?.secretPaths ?? []).map((pattern) => pattern.split("."));
}

export function isSecret(path: Path): boolean {
  return secretPatterns(path[0]).some((pattern) => matches(pattern, path.slice(1)));
}

/** Such a URL may hold a user and a password. */
export function isUrl(path: Path): boolean {
  const patterns = specOf(path[0])?.urlPaths ?? [];
  return patterns.some((pattern) => matches(pattern.split("."), path.slice(1)));
}

/** Undefined if the text at this path names no file, folder or socket. */
export function filePathUse(path: Path): FilePathUse | undefined {
  const uses = Object.entries(specOf(path[0])?.filePaths ?? {});
  return uses.find(([pattern]) => matches(pattern.split("."), path.slice(1)))?.[1];
}

/** Uses of files and folders that lie on one machine; prompts are named by their names in its folder. */
const LOCAL_USES: readonly FilePathUse["use"][] = ["folder", "data-folder", "socket", "file", "written"];

/** Fields of a section, with dots, that belong to one machine; those of entries of lists and mappings are not among them. */
export function serverFields(section: PathSegment): string[] {
  const { fileOnlyFields = [], serverFields: declared = [], filePaths = {} } = specOf(section) ?? {};
  const paths = Object.entries(filePaths).filter(([path, { use }]) => !path.includes("*") && LOCAL_USES.includes(use));
  return [...new Set([...fileOnlyFields, ...declared, ...paths.map(([path]) => path)])];
}

/** Looks at the direct values of the mapping only. */
export function holdsSecrets(path: Path): boolean {
  return secretPatterns(path[0]).some((pattern) => matches(pattern.slice(0, -1), path.slice(1)));
}

/** The canonical key for another accepted spelling in the mapping at a path; undefined for any other key. */
export function canonicalKey(parent: Path, key: string): string | undefined {
  for (const [pattern, canonical] of Object.entries(specOf(parent[0])?.aliases ?? {})) {
    if (matches(pattern.split("."), [...parent.slice(1), key])) return canonical;
  }
  return undefined;
}

/** Keys that are accepted in another place too. */
const OTHER_PLACES: readonly { accepted: readonly string[]; canonical: readonly string[] }[] = [
  { accepted: ["model_metadata_file"], canonical: ["model_metadata", "file"] },
  { accepted: ["admin", "auth", "max_history_entries"], canonical: ["admin", "max_history_entries"] },
  { accepted: ["admin", "auth", "max_backend_name_length"], canonical: ["admin", "max_backend_name_length"] },
];

export function isTopLevelKey(key: string): boolean {
  return specOf(key) !== undefined || OTHER_PLACES.some(({ accepted }) => accepted.length === 1 && accepted[0] === key);
}

/** Renames every key to its canonical spelling. */
export function resolveAliases(document: Mapping) {
  const written = new Map<string, string>();
  const problems: Problem[] = [];

  function rename(value: unknown, path: Path): unknown {
    if (Array.isArray(value)) return value.map((entry, index) => rename(entry, [...path, index]));
    if (!isMapping(value)) return value;
    const entries: [string, unknown][] = [];
    for (const [key, entry] of Object.entries(value)) {
      const canonical = canonicalKey(path, key);
      const name = canonical ?? key;
      const isGiven = canonical !== undefined && Object.hasOwn(value, canonical);
      if (isGiven || entries.some(([known]) => known === name)) {
        problems.push({ path: [...path, key], message: `is another spelling of ${name}, which is given too` });
        continue;
      }
      const renamedPath = [...path, name];
      if (name !== key) written.set(JSON.stringify(renamedPath), key);
      entries.push([name, rename(entry, renamedPath)]);
    }
    return Object.fromEntries(entries);
  }

  let renamed = rename(document, []) as Mapping;
  const moved: { accepted: Path; canonical: Path }[] = [];
  for (const place of OTHER_PLACES) {
    const { accepted, canonical } = place;
    const value = valueAt(renamed, accepted);
    if (value === undefined) continue;
    const known = valueAt(renamed, canonical);
    if (known !== undefined) {
      problems.push({ path: accepted, message: `is another spelling of ${canonical.join(".")}, which is given too` });
    }
    const placed = known === undefined ? withValueAt(renamed, canonical, value) : renamed;
    // Something other than a mapping stands in the way: validation says so.
    if (valueAt(placed, canonical) === undefined) continue;
    renamed = withValueAt(placed, accepted, undefined) as Mapping;
    moved.push(place);
  }

  return {
    document: renamed,
    /** The path with the keys as they were written. */
    writtenPath(path: Path): Path {
      const place = moved.find(({ canonical }) => canonical.every((segment, index) => segment === path[index]));
      if (place !== undefined) return [...place.accepted, ...path.slice(place.canonical.length)];
      return path.map((segment, index) => written.get(JSON.stringify(path.slice(0, index + 1))) ?? segment);
    },
    problems,
  };
}
