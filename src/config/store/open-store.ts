// Opens the configuration store at start: decides whether the file or the newest kept version runs.

import type { Clock } from "../../lib/clock.ts";
import { diffDocuments, type FieldChange } from "../change/diff.ts";
import { prepareDocument, type Surroundings } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { logEffectWarnings } from "../compile/without-effect.ts";
import { withDefaults } from "../schema/defaults.ts";
import { resolvePath } from "../values/paths.ts";
import type { Problem } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import { ConfigDatabase } from "./database.ts";
import type { ConfigLog } from "./listeners.ts";
import { replacedFields } from "./publish.ts";
import type { Saved } from "./read-saved.ts";
import { ConfigStore } from "./store.ts";
import {
  appendVersions,
  isFileSource,
  newestFromFile,
  newestVersion,
  readFileHash,
  type VersionRecord,
  writeFileHash,
} from "./versions.ts";

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
  | { ok: true; store: ConfigStore; resumed: boolean }
  /** The newest version cannot run any more; `version` is its number. */
  | { ok: false; version: number; problems: Problem[] };

/** In place of the hash of a file. */
export const NO_FILE = "none";

export async function openConfigStore(options: OpenStoreParts): Promise<OpenStoreResult> {
  const { snapshot, home, clock, log } = options;
  const folder = resolvePath(snapshot.settings.server.data_dir, snapshot.baseDir, home);
  const database = new ConfigDatabase(folder, log);
  const hash = options.fileHash ?? NO_FILE;
  const open = (running: ConfigSnapshot, resumed: boolean, unsaved: VersionRecord[] = []): OpenStoreResult => {
    logEffectWarnings(log, running.settings);
    return {
      ok: true,
      resumed,
      store: new ConfigStore({ ...options, snapshot: running, database, fileHash: hash, unsaved }),
    };
  };

  const newest = newestVersion(database.sqlite);
  if (newest !== undefined && isResumed({ newest, fileHash: readFileHash(database.sqlite) }, options)) {
    const resumed = await resumedSnapshot(newest, options);
    if (resumed.ok) return open(resumed.snapshot, true);
    database.sqlite.close();
    return resumed;
  }

  const document: Mapping = snapshot.document;
  const changes = newest === undefined ? [] : changesBetween(newest.document, document);
  if (newest !== undefined && changes.length === 0) {
    keep(database, log, () => writeFileHash(database.sqlite, hash));
    return open({ ...snapshot, version: newest.version, appliedAtMs: newest.appliedAtMs }, false);
  }
  const version = (newest?.version ?? 0) + 1;
  const record: VersionRecord = {
    version,
    appliedAtMs: clock.wallTime(),
    source: newest === undefined ? "startup" : "file_reload",
    user: undefined,
    description: options.ignoreSaved ? "--ignore-saved" : undefined,
    sectionsChanged: newest === undefined ? Object.keys(document) : [...new Set(changes.map(({ section }) => section))],
    changes,
    document,
  };
  const fileBefore = newest === undefined ? undefined : newestFromFile(database.sqlite);
  const isKept = keep(database, log, () => {
    appendVersions(database.sqlite, [record], snapshot.settings.admin.max_history_entries);
    writeFileHash(database.sqlite, hash);
  });
  if (newest !== undefined && !isFileSource(newest.source)) {
    // Versions that came from the file may all be too old to be kept; then everything that differs is told.
    const replaced =
      fileBefore === undefined
        ? changes.map(({ path }) => path.join("."))
        : replacedFields(withDefaults(fileBefore.document), withDefaults(newest.document), withDefaults(document));
    const reason = options.ignoreSaved ? "--ignore-saved" : "the configuration file was edited";
    log.warn({ fields: replaced, version }, `${reason}: changes that were made through the admin API are replaced`);
  }
  return open({ ...snapshot, version, appliedAtMs: record.appliedAtMs }, false, isKept ? [] : [record]);
}

/** Whether a start goes on with what was changed through the API. */
export function isResumed({ newest, fileHash }: Saved, options: Pick<OpenStoreParts, "fileHash" | "ignoreSaved">) {
  const isUnchanged = fileHash === (options.fileHash ?? NO_FILE);
  return isUnchanged && !options.ignoreSaved && !isFileSource(newest.source);
}

type Resumed = { ok: true; snapshot: ConfigSnapshot } | Extract<OpenStoreResult, { ok: false }>;

export async function resumedSnapshot(newest: VersionRecord, options: OpenStoreParts): Promise<Resumed> {
  const { snapshot, log } = options;
  const prepared = await prepareDocument(newest.document, { ...options, baseDir: snapshot.baseDir });
  const problems = [...prepared.problems, ...prepared.crossProblems];
  const { version, appliedAtMs } = newest;
  if (prepared.compiled === undefined || problems.length > 0) return { ok: false, version, problems };
  log.info({ version }, `configuration: version ${version} is resumed, the file has not changed since`);
  return { ok: true, snapshot: { ...snapshot, ...prepared.compiled, version, appliedAtMs } };
}

/** Most starts find the document of the last one: then nobody needs the defaults, which the JSON Schema has to be made for. */
function changesBetween(before: Mapping, after: Mapping): FieldChange[] {
  return Bun.deepEquals(before, after, true) ? [] : diffDocuments(withDefaults(before), withDefaults(after));
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
