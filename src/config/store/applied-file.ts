// The configuration file as it was applied last, kept beside the versions: an edit changes what differs from it, and the
// rest of what runs stays.

import type { Database } from "bun:sqlite";
import { mergeDocuments } from "../change/merge-documents.ts";
import { withDefaults } from "../schema/defaults.ts";
import type { Mapping, Path } from "../values/values.ts";
import { readState, writeState } from "./state.ts";
import { newestFromFile, type VersionRecord } from "./versions.ts";

export interface AppliedFile {
  /** Of its bytes; NO_FILE without one. */
  hash: string;
  /** As written, with canonical keys: it may hold secrets. */
  document: Mapping;
}

/** In place of the hash of a file. */
export const NO_FILE = "none";

const HASH = "file_hash";
const DOCUMENT = "file_document";

/** Earlier releases kept the hash only; a version that came from the file was then the file as a whole. */
export function readAppliedFile(sqlite: Database, newest: VersionRecord): AppliedFile {
  const document = readState(sqlite, DOCUMENT);
  return {
    hash: readState(sqlite, HASH) ?? "",
    document: document === undefined ? (newestFromFile(sqlite) ?? newest).document : JSON.parse(document),
  };
}

export function isFileKept(sqlite: Database, { hash, document }: AppliedFile): boolean {
  return readState(sqlite, HASH) === hash && readState(sqlite, DOCUMENT) === JSON.stringify(document);
}

export function writeAppliedFile(sqlite: Database, { hash, document }: AppliedFile): void {
  writeState(sqlite, HASH, hash);
  writeState(sqlite, DOCUMENT, JSON.stringify(document));
}

interface MergedEdit {
  document: Mapping;
  /** Fields in which the edit replaces what was changed through the API. */
  replaced: readonly Path[];
}

/** All three with canonical keys. */
export function mergeEdit(base: Mapping, file: Mapping, running: Mapping): MergedEdit {
  if (Bun.deepEquals(base, running, true)) return { document: file, replaced: [] };
  const { document } = mergeDocuments({ base, file, running });
  // A default that was only written out is no change.
  const sides = { base: withDefaults(base), file: withDefaults(file), running: withDefaults(running) };
  return { document, replaced: mergeDocuments(sides).replaced };
}
