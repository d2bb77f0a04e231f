// Opens the configuration store at start: the file runs, merged with what was changed through the API since.

import type { Clock } from "../../lib/clock.ts";
import { compareDocuments, diffDocuments, type FieldChange } from "../change/diff.ts";
import { prepareDocument, type Surroundings } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { logEffectWarnings } from "../compile/without-effect.ts";
import { withDefaults } from "../schema/defaults.ts";
import { resolvePath } from "../values/paths.ts";
import type { Problem } from "../values/problems.ts";
import type { Mapping, Path } from "../values/values.ts";
import { type AppliedFile, isFileKept, mergeEdit, NO_FILE, writeAppliedFile } from "./applied-file.ts";
import { withReplaced } from "./assess.ts";
import { ConfigDatabase } from "./database.ts";
import { type ConfigLog, tellReplaced } from "./listeners.ts";
import { type Saved, savedIn } from "./read-saved.ts";
import { ConfigStore } from "./store.ts";
import { appendVersions, type VersionRecord } from "./versions.ts";

export interface OpenStoreParts extends Surroundings {
  /** What the file says, or what was found without one. */
  snapshot: ConfigSnapshot;
  /** Of the file; undefined without one. */
  fileHash: string | undefined;
  clock: Clock;
  log: ConfigLog;
  /** --ignore-saved: start from the file alone. */
  ignoreSaved?: boolean;
}

export type OpenStoreResult =
  /** resumed: something runs that was changed through the API. */
  | { ok: true; store: ConfigStore; resumed: boolean }
  /** What was changed through the API cannot run with the file; `version` is the newest one that was kept. */
  | { ok: false; version: number; problems: Problem[] };

export async function openConfigStore(options: OpenStoreParts): Promise<OpenStoreResult> {
  const { snapshot, home, clock, log, ignoreSaved } = options;
  const folder = resolvePath(snapshot.settings.server.data_dir, snapshot.baseDir, home);
  const database = new ConfigDatabase(folder, log);
  const saved = savedIn(database.sqlite);
  const began = beginning(saved, options);
  const compiled = await compiledBeginning(began, options);
  if (!compiled.ok) {
    database.sqlite.close();
    return compiled;
  }

  const { document, file, replaced, resumed } = began;
  const changes = saved === undefined ? [] : changesBetween(saved.newest.document, document, replaced);
  const record: VersionRecord = {
    version: (saved?.newest.version ?? 0) + 1,
    appliedAtMs: clock.wallTime(),
    source: saved === undefined ? "startup" : "file_reload",
    user: undefined,
    description: ignoreSaved ? "--ignore-saved" : undefined,
    sectionsChanged: saved === undefined ? Object.keys(document) : [...new Set(changes.map(({ section }) => section))],
    changes,
    document,
  };
  const isNew = saved === undefined || changes.length > 0;
  const isKept =
    (!isNew && isFileKept(database.sqlite, file)) ||
    keep(database, log, () => {
      if (isNew) appendVersions(database.sqlite, [record], compiled.snapshot.settings.admin.max_history_entries);
      writeAppliedFile(database.sqlite, file);
    });
  const { version, appliedAtMs } = isNew ? record : saved.newest;
  tellReplaced(log, { changes, version });
  if (resumed) log.info({ version }, `configuration: version ${version} holds changes made through the admin API`);
  logEffectWarnings(log, compiled.snapshot.settings);
  const start = { unsaved: isNew && !isKept ? [record] : [], file, isFileKept: isKept };
  const running = { ...compiled.snapshot, version, appliedAtMs };
  return { ok: true, resumed, store: new ConfigStore({ ...options, snapshot: running, database, start }) };
}

interface Beginning {
  document: Mapping;
  /** What the next edit is compared with. */
  file: AppliedFile;
  /** Fields in which the file replaces what was changed through the API. */
  replaced: readonly Path[];
  /** Something of the document was changed through the API. */
  resumed: boolean;
  newest: VersionRecord | undefined;
}

/** What a start runs: as if the file had been edited while the gateway ran. */
export function beginning(
  saved: Saved | undefined,
  { snapshot, fileHash = NO_FILE, ignoreSaved }: Pick<OpenStoreParts, "snapshot" | "fileHash" | "ignoreSaved">,
): Beginning {
  const file: AppliedFile = { hash: fileHash, document: snapshot.document };
  const alone = { document: file.document, file, replaced: [], resumed: false, newest: saved?.newest };
  if (saved === undefined) return alone;
  const { newest, file: base } = saved;
  if (ignoreSaved) {
    const made = compareDocuments(withDefaults(base.document), withDefaults(newest.document));
    return { ...alone, replaced: made.map(({ path }) => path) };
  }
  if (file.hash === base.hash) {
    // What is found without a file is another thing at every start, and counts as long as nothing was changed.
    const isFound = file.hash === NO_FILE;
    if (isFound && Bun.deepEquals(newest.document, base.document, true)) return alone;
    return { ...resumedFrom(newest.document, file), file: isFound ? base : file, replaced: [], newest };
  }
  const { document, replaced } = mergeEdit(base.document, file.document, newest.document);
  return { ...resumedFrom(document, file), file, replaced, newest };
}

function resumedFrom(document: Mapping, file: AppliedFile): Pick<Beginning, "document" | "resumed"> {
  return { document, resumed: !Bun.deepEquals(document, file.document, true) };
}

type CompiledBeginning = { ok: true; snapshot: ConfigSnapshot } | Extract<OpenStoreResult, { ok: false }>;

export async function compiledBeginning(
  { document, resumed, newest }: Beginning,
  options: Surroundings & Pick<OpenStoreParts, "snapshot">,
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

/** Most starts find the document of the last one: then nobody needs the defaults, which the JSON Schema has to be made for. */
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
