// What is kept beside the versions: the configuration file as it was applied last, and the secrets that were revoked.

import type { Database } from "bun:sqlite";
import type { Mapping } from "../values/values.ts";
import { type RevokedSecrets, readRevoked } from "./revoked-secrets.ts";
import { readState, writeState } from "./state.ts";
import { newestFromFile, type VersionRecord } from "./versions.ts";

export interface AppliedFile {
  /** Hash of the file's bytes; NO_FILE without one. */
  hash: string;
  /** As written, with canonical keys: it may hold secrets. */
  document: Mapping;
}

export interface Standing {
  file: AppliedFile;
  revoked: RevokedSecrets;
}

/** Stands for the hash where there is no file. */
export const NO_FILE = "none";

const HASH = "file_hash";
const DOCUMENT = "file_document";

/** Earlier releases kept the hash only; a version that came from the file was then the file as a whole. */
export function readStanding(sqlite: Database, newest: VersionRecord, salt: () => string): Standing {
  const document = readState(sqlite, DOCUMENT);
  return {
    file: {
      hash: readState(sqlite, HASH) ?? "",
      document: document === undefined ? (newestFromFile(sqlite) ?? newest).document : JSON.parse(document),
    },
    revoked: readRevoked(sqlite, salt),
  };
}

/** Runs inside a transaction; `kept` was written last. */
export function writeStanding(sqlite: Database, { file, revoked }: Standing, kept?: Standing): void {
  if (file !== kept?.file) {
    writeState(sqlite, HASH, file.hash);
    writeState(sqlite, DOCUMENT, JSON.stringify(file.document));
  }
  if (revoked !== kept?.revoked) revoked.write(sqlite);
}

export function isFileKept(sqlite: Database, { hash, document }: AppliedFile): boolean {
  return readState(sqlite, HASH) === hash && readState(sqlite, DOCUMENT) === JSON.stringify(document);
}
