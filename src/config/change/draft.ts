// The document that a change would make, before it is checked.

import { isSecret, resolveAliases, serverFields, specOf } from "../schema/section-patterns.ts";
import type { Problem } from "../values/problems.ts";
import {
  formatPath,
  isMapping,
  isNestedTooDeeply,
  type Mapping,
  type Path,
  valueAt,
  withEntries,
  withValueAt,
} from "../values/values.ts";
import { ok, type Result, refused, type SectionChange, unknownSection } from "./change.ts";
import { MASK, maskSecrets, unmask } from "./mask.ts";
import { mergePatch } from "./merge-patch.ts";

export interface Draft {
  document: Mapping;
  /** Sections that the caller named. */
  sections: string[];
  /** Where a secret stayed that the caller did not give. */
  kept: readonly Path[];
  /** Fields that an import leaves out, in words. */
  leftOut: readonly string[];
  /** A path with the keys as the caller wrote them. */
  writtenPath(path: Path): Path;
}

export interface DraftBase {
  /** As written. */
  document: Mapping;
  /** Defaults filled in. */
  effective: Mapping;
}

export function draftChange(
  base: DraftBase,
  { sections, mode, isImport = false }: Pick<SectionChange, "sections" | "mode" | "isImport">,
): Result<Draft> {
  const invalid = (problems: readonly Problem[]) => refused({ kind: "validation", problems });
  if (isNestedTooDeeply(sections)) return invalid([{ path: [], message: "is nested too deeply" }]);

  // Other spellings first: a patch of one spelling must reach the value that stands under another.
  const aliases = resolveAliases(sections);
  if (aliases.problems.length > 0) return invalid(aliases.problems);
  const requested = Object.keys(aliases.document);
  const unknown = unknownSection(requested);
  if (unknown) return unknown;

  const changed: [string, unknown][] = [];
  const problems: Problem[] = [];
  const leftOut: string[] = [];
  for (const [name, value] of Object.entries(aliases.document)) {
    const merged = mode === "merge" ? mergePatch(withoutSentSecrets(base.document)[name], value) : value;
    const kept = isImport
      ? withOwnFields(merged, name, base, serverFields(name))
      : withFileOnlyFields(merged, name, base);
    if ("problems" in kept) problems.push(...kept.problems);
    else leftOut.push(...kept.differing.map(leftOutOfImport));
    // Nothing means the defaults, as a section without lines does in a file.
    changed.push([name, kept.value ?? undefined]);
  }
  const unmasked = unmask(withEntries(base.document, changed), base.document);
  problems.push(...unmasked.problems);
  if (problems.length > 0) return invalid(problems.map((one) => ({ ...one, path: aliases.writtenPath(one.path) })));
  const { document, kept } = unmasked;
  return ok({ document, sections: requested, kept, leftOut, writtenPath: aliases.writtenPath });
}

/**
 * The secrets that are sent somewhere are masked: in what becomes of the document it shows which of them the caller has
 * given, and which only stayed.
 */
export function withoutSentSecrets(document: Mapping): Mapping {
  const sections = Object.entries(document).map(([name, section]): [string, unknown] => [
    name,
    specOf(name)?.sentTo === undefined ? section : maskSecrets(section, [name]),
  ]);
  return Object.fromEntries(sections);
}

/** A field that only the file may set keeps its value, and may be sent back as it is, with its secrets masked. */
export function withFileOnlyFields(
  value: unknown,
  section: string,
  base: DraftBase,
): { value: unknown; problems: Problem[] } {
  const { differing, ...kept } = withOwnFields(value, section, base, specOf(section)?.fileOnlyFields ?? []);
  const message = "can only be set in the configuration file or the environment";
  return { ...kept, problems: differing.map((path) => ({ path, message })) };
}

/** The section with its own values of these fields, and which of them were sent with another one. */
function withOwnFields(value: unknown, section: string, base: DraftBase, fields: readonly string[]) {
  const differing: Path[] = [];
  let result = value;
  // Anything but a mapping is refused by validation.
  if (value !== null && value !== undefined && !isMapping(value)) return { value, differing };
  for (const field of fields) {
    const inside = field.split(".");
    const path = [section, ...inside];
    const sent = valueAt(value, inside);
    const written = valueAt(base.document, path);
    const isAsBefore = () => [written, valueAt(base.effective, path)].some((old) => isSameOrMasked(sent, old, path));
    if (sent !== undefined && !isAsBefore()) differing.push(path);
    if (sent !== written) result = withValueAt(result ?? {}, inside, written);
  }
  return { value: result, differing };
}

function leftOutOfImport(path: Path): string {
  return `${formatPath(path)} belongs to one server: it is left out of the import, and stays as it is here`;
}

function isSameOrMasked(sent: unknown, old: unknown, path: Path): boolean {
  if (sent === MASK && isSecret(path)) return typeof old === "string";
  if (!isMapping(sent) || !isMapping(old)) return Bun.deepEquals(sent, old, true);
  const keys = new Set([...Object.keys(sent), ...Object.keys(old)]);
  return [...keys].every((key) => isSameOrMasked(valueAt(sent, [key]), valueAt(old, [key]), [...path, key]));
}

/** The section without those fields. */
export function withoutFileOnlyFields(value: unknown, section: string): unknown {
  const fields = (specOf(section)?.fileOnlyFields ?? []).map((field) => field.split("."));
  return fields.reduce(
    (rest, path) => (valueAt(rest, path) === undefined ? rest : withValueAt(rest, path, undefined)),
    value,
  );
}
