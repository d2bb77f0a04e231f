// What an edit of the configuration file makes of what runs: the same for a gateway that runs and at a start.

import { mergeDocuments } from "../change/merge-documents.ts";
import { withDefaults } from "../schema/defaults.ts";
import type { Environment } from "../values/expand.ts";
import type { Mapping, Path } from "../values/values.ts";
import { editWithoutRevoked } from "./screen.ts";
import type { AppliedFile, Standing } from "./standing.ts";

export interface FileEdit {
  document: Mapping;
  /** Fields in which the edit replaces what was changed through the API. */
  replaced: readonly Path[];
  /** Fields of secrets that were revoked. */
  leftOut: readonly string[];
  standing: Standing;
}

/** `running` and both documents of the file with canonical keys. */
export function editOf(
  { file: { document: base }, revoked: before }: Standing,
  file: AppliedFile,
  running: Mapping,
  { env, nowMs }: { env: Environment; nowMs: number },
): FileEdit {
  const revoked = before.withEdit({ before: base, after: file.document, env });
  const standing = { file, revoked };
  if (Bun.deepEquals(base, running, true)) return { document: file.document, replaced: [], leftOut: [], standing };
  const merged = mergeDocuments({ base, file: file.document, running }).document;
  const screen = { running, revoked, env, nowMs };
  const { document, fields } = editWithoutRevoked(merged, { base, file: file.document }, screen);
  // A default that was only written out is no change.
  const sides = { base: withDefaults(base), file: withDefaults(file.document), running: withDefaults(running) };
  return { document, replaced: mergeDocuments(sides).replaced, leftOut: fields, standing };
}
