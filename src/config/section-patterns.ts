// Paths in the notation of SectionSpec: dots between keys, `*` for any list index or map key.

import type { SectionSpec } from "./section.ts";
import { SECTIONS } from "./sections/registry.ts";
import { isMapping, type Mapping, type Path, type PathSegment } from "./values.ts";

const SPECS: readonly SectionSpec[] = SECTIONS;

function matches(pattern: readonly string[], path: Path): boolean {
  return pattern.length === path.length && pattern.every((part, index) => part === "*" || part === String(path[index]));
}

function secretPatterns(section: PathSegment | undefined): string[][] {
  const spec = SPECS.find(({ name }) => name === section);
  return (spec?.secretPaths ?? []).map((pattern) => pattern.split("."));
}

/** Whether a mapping has secrets among its direct values. */
export function holdsSecrets(path: Path): boolean {
  return secretPatterns(path[0]).some((pattern) => matches(pattern.slice(0, -1), path.slice(1)));
}

/** The canonical key for another accepted spelling in the mapping at a path; undefined for any other key. */
export function canonicalKey(parent: Path, key: string): string | undefined {
  const spec = SPECS.find(({ name }) => name === parent[0]);
  for (const [pattern, canonical] of Object.entries(spec?.aliases ?? {})) {
    if (matches(pattern.split("."), [...parent.slice(1), key])) return canonical;
  }
  return undefined;
}

/** Top-level keys that stand for a key of a section. */
const TOP_LEVEL_SPELLINGS: Readonly<Record<string, readonly [section: string, key: string]>> = {
  model_metadata_file: ["model_metadata", "file"],
};

export interface ResolvedAliases {
  document: Mapping;
  /** The same path with the keys as they were written. */
  writtenPath(path: Path): Path;
  problems: { path: Path; message: string }[];
}

/** Renames every key to its canonical spelling. */
export function resolveAliases(document: Mapping): ResolvedAliases {
  const written = new Map<string, string>();
  const problems: ResolvedAliases["problems"] = [];

  function rename(value: unknown, path: Path): unknown {
    if (Array.isArray(value)) return value.map((entry, index) => rename(entry, [...path, index]));
    if (!isMapping(value)) return value;
    const entries: [string, unknown][] = [];
    for (const [key, entry] of Object.entries(value)) {
      const canonical = canonicalKey(path, key);
      if (canonical !== undefined && Object.hasOwn(value, canonical)) {
        problems.push({ path: [...path, key], message: `is another spelling of ${canonical}, which is given too` });
        continue;
      }
      const name = canonical ?? key;
      if (entries.some(([known]) => known === name)) {
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
  /** Where a key of a section was written at the top level. */
  const moved = new Map<string, string>();
  for (const [spelling, [section, key]] of Object.entries(TOP_LEVEL_SPELLINGS)) {
    if (!Object.hasOwn(renamed, spelling)) continue;
    const inSection = Object.hasOwn(renamed, section) ? renamed[section] : {};
    if (!isMapping(inSection)) continue;
    if (Object.hasOwn(inSection, key)) {
      problems.push({ path: [spelling], message: `is another spelling of ${section}.${key}, which is given too` });
    }
    moved.set(JSON.stringify([section, key]), spelling);
    const others = Object.entries(renamed).filter(([name]) => name !== spelling && name !== section);
    renamed = Object.fromEntries([...others, [section, { [key]: renamed[spelling], ...inSection }]]);
  }

  return {
    document: renamed,
    writtenPath(path) {
      const spelling = moved.get(JSON.stringify(path.slice(0, 2)));
      if (spelling !== undefined) return [spelling, ...path.slice(2)];
      return path.map((segment, index) => written.get(JSON.stringify(path.slice(0, index + 1))) ?? segment);
    },
    problems,
  };
}
