// Opens the configuration store at start: the file runs, merged with what was changed through the API since.

import type { Clock } from "../../lib/clock.ts";
import { lazily } from "../../lib/lazily.ts";
import { compareDocuments, diffDocuments, type FieldChange } from "../change/diff.ts";
import { type DocumentSurroundings, prepareDocument } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { logEffectWarnings } from "../compile/without-effect.ts";
import { withDefaults } from "../schema/defaults.ts";
import { resolvePath } from "../values/paths.ts";
import type { Problem } from "../values/problems.ts";
import type { Mapping, Path } from "../values/values.ts";
import { withReplaced } from "./assess.ts";
import { ConfigDatabase } from "./database.ts";
import { editOf, type FileEdit } from "./file-edit.ts";
import { keySalt } from "./key-salt.ts";
import { type ConfigLog, describeLeftOut, tellEdit } from "./listeners.ts";
import { type Saved, savedIn } from "./read-saved.ts";
import { RevokedSecrets } from "./revoked-secrets.ts";
import { revokedBy } from "./screen.ts";
import { type AppliedFile, isFileKept, NO_FILE, writeStanding } from "./standing.ts";
import { ConfigStore } from "./store.ts";
import { appendVersions, type VersionRecord } from "./versions.ts";

export interface OpenStoreParts extends DocumentSurroundings {
  /** The content of the file, or the configuration found without one. */
  snapshot: ConfigSnapshot;
  /** Hash of the file; undefined without one. */
  fileHash: string | undefined;
  clock: Clock;
  log: ConfigLog;
  /** --ignore-saved: start from the file alone. */
  ignoreSaved?: boolean;
}

export type OpenStoreResult =
  /** resumed: something runs that was changed through the API. */
  | { ok: true; store: ConfigStore; resumed: boolean }
  /** Changes made through the API cannot run with the file; `version` is the newest one that was kept. */
  | { ok: false; version: number; problems: Problem[] };

export async function openConfigStore(options: OpenStoreParts): Promise<OpenStoreResult> {
  const { snapshot, home, env, clock, log, ignoreSaved } = options;
  const folder = resolvePath(snapshot.settings.server.data_dir, snapshot.baseDir, home);
  const database = new ConfigDatabase(folder, log);
  const salt = lazily(() => keySalt(database, log));
  const saved = savedIn(database.sqlite, salt);
  const began = beginning(saved, options, salt);
  const compiled = await compiledBeginning(began, options);
  if (!compiled.ok) {
    database.sqlite.close();
    return compiled;
  }

  const { document, replaced, leftOut, resumed } = began;
  const changes = saved === undefined ? [] : changesBetween(saved.newest.document, document, replaced);
  const record: VersionRecord = {
    version: (saved?.newest.version ?? 0) + 1,
    appliedAtMs: clock.wallTime(),
    source: saved === undefined ? "startup" : "file_reload",
    user: undefined,
    description: ignoreSaved ? "--ignore-saved" : describeLeftOut(leftOut),
    sectionsChanged: saved === undefined ? Object.keys(document) : [...new Set(changes.map(({ section }) => section))],
    changes,
    document,
  };
  const isNew = saved === undefined || changes.length > 0;
  const { file, revoked } = began.standing;
  const gone =
    saved === undefined
      ? []
      : revokedBy({ before: saved.newest.document, after: document, env }, clock.wallTime(), ignoreSaved === true);
  const standing = { file, revoked: revoked.withRevoked(gone, record.version, file.document, env) };
  const isKept =
    (!isNew && standing.revoked === saved.standing.revoked && isFileKept(database.sqlite, file)) ||
    keep(database, log, () => {
      if (isNew) appendVersions(database.sqlite, [record], compiled.snapshot.settings.admin.max_history_entries);
      writeStanding(database.sqlite, standing);
    });
  const { version, appliedAtMs } = isNew ? record : saved.newest;
  tellEdit(log, { changes, leftOut, version });
  if (resumed) log.info({ version }, `configuration: version ${version} holds changes made through the admin API`);
  logEffectWarnings(log, compiled.snapshot.settings);
  const start = { unsaved: isNew && !isKept ? [record] : [], standing, isStandingKept: isKept };
  const running = { ...compiled.snapshot, version, appliedAtMs };
  return { ok: true, resumed, store: new ConfigStore({ ...options, snapshot: running, database, start, salt }) };
}

interface Beginning extends FileEdit {
  /** Something of the document was changed through the API. */
  resumed: boolean;
  newest: VersionRecord | undefined;
}

type BeginningParts = Pick<OpenStoreParts, "snapshot" | "fileHash" | "ignoreSaved" | "env" | "clock">;

/** The document that a start runs: the file counts as if it had been edited while the gateway ran. */
export function beginning(saved: Saved | undefined, parts: BeginningParts, salt: () => string): Beginning {
  const { document } = parts.snapshot;
  const file: AppliedFile = { hash: parts.fileHash ?? NO_FILE, document };
  const edit = saved === undefined ? fileAlone(file, new RevokedSecrets(salt)) : savedBeginning(saved, file, parts);
  return { ...edit, resumed: !Bun.deepEquals(edit.document, document, true), newest: saved?.newest };
}

function savedBeginning({ newest, standing }: Saved, file: AppliedFile, parts: BeginningParts): FileEdit {
  const { ignoreSaved, env, clock } = parts;
  const base = standing.file;
  if (ignoreSaved) {
    const made = compareDocuments(withDefaults(base.document), withDefaults(newest.document));
    const replaced = made.map(({ path }) => path);
    return { ...fileAlone(file, standing.revoked.withFileAlone(file.document, env)), replaced };
  }
  if (file.hash !== base.hash) return editOf(standing, file, newest.document, { env, nowMs: clock.wallTime() });
  if (file.hash !== NO_FILE) return { ...fileAlone(file, standing.revoked), document: newest.document };
  // A configuration that is found without a file differs at every start, and counts as long as nothing was changed.
  const isAsFound = Bun.deepEquals(newest.document, base.document, true);
  return isAsFound
    ? fileAlone(file, standing.revoked)
    : { ...fileAlone(base, standing.revoked), document: newest.document };
}

function fileAlone(file: AppliedFile, revoked: RevokedSecrets): FileEdit {
  return { document: file.document, replaced: [], leftOut: [], standing: { file, revoked } };
}

type CompiledBeginning = { ok: true; snapshot: ConfigSnapshot } | Extract<OpenStoreResult, { ok: false }>;

export async function compiledBeginning(
  { document, resumed, newest }: Beginning,
  options: DocumentSurroundings & Pick<OpenStoreParts, "snapshot">,
): Promise<CompiledBeginning> {
  const { snapshot } = options;
  if (!resumed || newest === undefined) return { ok: true, snapshot };
  const { compiled, problems, crossProblems } = await prepareDocument(document, {
    ...options,
    baseDir: snapshot.baseDir,
  });
  const found = [...problems, ...crossProblems];
  if (compiled === undefined || found.length > 0) return { ok: false, version: newest.version, problems: found };
  return { ok: true, snapshot: { ...snapshot, ...compiled } };
}

/** Most starts find the document of the last one and need no defaults, for which the JSON Schema would have to be made. */
function changesBetween(before: Mapping, after: Mapping, replaced: readonly Path[]): FieldChange[] {
  if (Bun.deepEquals(before, after, true)) return [];
  return withReplaced(diffDocuments(withDefaults(before), withDefaults(after)), replaced);
}

/** The gateway starts, whether its disk is full or not. */
function keep(database: ConfigDatabase, log: ConfigLog, task: () => void): boolean {
  try {
    database.sqlite.transaction(task).immediate();
    return true;
  } catch (error) {
    log.error({ err: error, path: database.path }, "the version of this start could not be kept yet");
    return false;
  }
}
