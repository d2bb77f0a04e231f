// Why a backup cannot be made or restored.

/** The message says what to do. */
export class BackupProblem extends Error {
  override readonly name = "BackupProblem";
}

/** Of file system and SQLite: their codes, which hold nothing of a file. */
export function reasonOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error instanceof Error ? error.message : "unknown error";
}
