// Why the file system or SQLite did not do what it was asked to, in words.

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is no folder",
  EEXIST: "a part of its path is no folder",
  EISDIR: "a folder has its name",
  SQLITE_FULL: "the disk is full",
  SQLITE_BUSY: "the file is locked by another process",
  SQLITE_LOCKED: "the file is locked by another process",
  SQLITE_READONLY: "the file is read-only",
  SQLITE_CANTOPEN: "the file cannot be opened",
  SQLITE_CORRUPT: "the file is damaged",
  SQLITE_NOTADB: "the file is no database",
};

export function storageMessage(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  if (typeof code === "string") {
    const known = Object.keys(REASONS).find((name) => code === name || code.startsWith(`${name}_`));
    return known === undefined ? code : (REASONS[known] as string);
  }
  return error instanceof Error ? error.message : "unknown error";
}
