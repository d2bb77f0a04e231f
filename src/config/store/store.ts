// The one place where the configuration changes: every change is checked whole, kept, and only then seen by anyone.

import type { Clock } from "../../lib/clock.ts";
import { createSerial, type Serial } from "../../lib/serial.ts";
import { fenceProblems } from "../change/api-fence.ts";
import { changesReloadClass, estimateImpact } from "../change/capability.ts";
import {
  type Change,
  type ChangeAuthor,
  type ChangeError,
  describeChangeError,
  ok,
  type Result,
  refused,
  type SectionChange,
} from "../change/change.ts";
import { diffDocuments, type FieldChange } from "../change/diff.ts";
import {
  type DraftBase,
  draftChange,
  withFileOnlyFields,
  withoutFileOnlyFields,
  withoutSentSecrets,
} from "../change/draft.ts";
import { maskSecrets } from "../change/mask.ts";
import { type Prepared, prepareDocument } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { effectWarnings, logEffectWarnings } from "../compile/without-effect.ts";
import { MAXIMUM_FILE_BYTES } from "../files/read-text.ts";
import { withDefaults } from "../schema/defaults.ts";
import { documentJsonSchema, type JsonSchema } from "../schema/schema-export.ts";
import { specOf } from "../schema/section-patterns.ts";
import { SECTIONS, type Settings } from "../sections/registry.ts";
import type { Environment } from "../values/expand.ts";
import { resolvePath } from "../values/paths.ts";
import { describeProblem, type Problem, type SettingsCheck, type Source } from "../values/problems.ts";
import { isNestedTooDeeply, type Mapping, type Path, valueAt } from "../values/values.ts";
import { type ConfigDatabase, storageMessage } from "./database.ts";
import {
  appendVersions,
  type HistoryPage,
  newestFromFile,
  readPage,
  readVersion,
  type VersionRecord,
  writeFileHash,
} from "./history.ts";
import { randomKeySalt, readKeySalt } from "./key-salt.ts";
import { type ConfigListener, type ConfigLog, createListeners, type Listeners } from "./listeners.ts";
import { freezeDeep, keepRestartFields, pendingRestartFields, replacedFields, warningsOf } from "./publish.ts";
import { readStaged, removeStaged, type StagedSection, writeStaged } from "./staged.ts";
import { isContested, overlayStaged, type StagedView, toStaged, viewStaged } from "./staging.ts";

export interface ConfigStoreOptions {
  snapshot: ConfigSnapshot;
  database: ConfigDatabase;
  env: Environment;
  home: string | undefined;
  checks: readonly SettingsCheck<Settings>[];
  clock: Clock;
  log: ConfigLog;
  /** Of the file that was read last; anything that never is one, without a file. */
  fileHash: string;
  /** Versions that could not be kept yet. */
  unsaved: readonly VersionRecord[];
}

export interface Validation {
  valid: boolean;
  problems: readonly Problem[];
  warnings: string[];
  changes: FieldChange[];
  capability: Change["capability"];
  impact: string;
}

export interface StagedChange {
  staged: StagedView[];
  warnings: string[];
  changes: FieldChange[];
}

export const MAXIMUM_HISTORY_PAGE = 100;
/** Each waiting change holds a document. */
const MAXIMUM_WAITING = 1_000;
const MAXIMUM_UNSAVED = 100;

/** Where a document comes from: the file may hold anything, a change through the API stays inside the fence. */
interface Origin extends Pick<ChangeAuthor, "elevated"> {
  /** A change that cannot be kept is applied nevertheless: the file itself keeps it. */
  fromFile?: { hash: string | undefined };
  /** Where a secret stayed that the caller did not give. */
  kept?: readonly Path[];
  /** Documents beside the current one whose content may stand in the new one. */
  known?: readonly Mapping[];
  writtenPath?: (path: Path) => Path;
  lineOf?: Source["lineOf"];
}

interface CommitOptions extends ChangeAuthor, Origin, Pick<SectionChange, "checked"> {
  /** Named sections, for `previous` and `current` of the result. */
  sections: readonly string[];
  dryRun?: boolean | undefined;
  /** A version is made even if nothing differs. */
  always?: boolean;
  /** Staged sections that are done with. */
  unstage?: readonly string[];
}

export class ConfigStore {
  readonly #options: ConfigStoreOptions;
  readonly #serial: Serial = createSerial(MAXIMUM_WAITING);
  readonly #listeners: Listeners;
  readonly #schema: JsonSchema = documentJsonSchema();
  #current: ConfigSnapshot;
  #effective: Mapping;
  /** Versions from the file that could not be kept yet. */
  #unsaved: VersionRecord[];
  /** Of the file as it was when it was applied last. */
  #fileHash: string;

  constructor(options: ConfigStoreOptions) {
    this.#options = options;
    this.#listeners = createListeners(options.log);
    this.#unsaved = [...options.unsaved];
    this.#fileHash = options.fileHash;
    this.#current = freezeDeep({ ...options.snapshot });
    this.#effective = withDefaults(this.#current.document, this.#schema);
  }

  get current(): ConfigSnapshot {
    return this.#current;
  }

  /** Why changes through the API are refused; undefined when they can be kept. */
  get storageProblem(): string | undefined {
    const { problem, path } = this.#options.database;
    return problem === undefined ? undefined : `${path} cannot be used: ${problem}`;
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: ConfigListener, sections?: readonly string[]): () => void {
    return this.#listeners.add(listener, sections);
  }

  /** The document for a reader: defaults filled in and secrets masked, unless asked otherwise. */
  view(options: { sections?: readonly string[]; includeSensitive?: boolean; includeDefaults?: boolean } = {}): Mapping {
    const document = options.includeDefaults === false ? this.#current.document : this.#effective;
    const shown = pick(document, options.sections ?? SECTIONS.map(({ name }) => name));
    return options.includeSensitive ? structuredClone(shown) : (maskSecrets(shown) as Mapping);
  }

  apply(change: SectionChange): Promise<Result<Change>> {
    return this.#exclusive(() => this.#apply(change));
  }

  /**
   * As apply(), for a change that depends on the document as it is when its turn comes. Secrets that are sent somewhere
   * are masked in it, and stay where they are left so.
   */
  edit(make: (document: Mapping) => SectionChange): Promise<Result<Change>> {
    return this.#exclusive(() => this.#apply(make(withoutSentSecrets(this.#current.document))));
  }

  /** As a dry run of apply(), with every problem in the answer. */
  async validate(change: Pick<SectionChange, "sections" | "mode" | "elevated">): Promise<Result<Validation>> {
    const invalid = (problems: readonly Problem[]): Result<Validation> =>
      ok({ valid: false, problems, warnings: [], changes: [], capability: "immediate", impact: estimateImpact([]) });
    const draft = draftChange(this.#base, change.sections, change.mode);
    if (!draft.ok) return draft.error.kind === "validation" ? invalid(draft.error.problems) : draft;
    const before = this.#effective;
    const prepared = await this.#prepare(draft.document, { ...draft, elevated: change.elevated });
    const problems = [...prepared.problems, ...prepared.crossProblems];
    const changes = diffDocuments(before, withDefaults(prepared.document, this.#schema));
    const warnings = this.#warningsOf(changes, prepared, draft.sections);
    const capability = changesReloadClass(changes);
    return ok({
      valid: problems.length === 0,
      problems,
      warnings,
      changes,
      capability,
      impact: estimateImpact(changes),
    });
  }

  /** Keeps sections for a later applyStaged(); rules across sections are only warnings until then. */
  stage(change: SectionChange): Promise<Result<StagedChange>> {
    return this.#exclusive(async () => {
      const conflict = this.#conflict(change.baseVersion) ?? this.#storageError();
      if (conflict) return conflict;
      const staged = new Map(readStaged(this.#options.database.sqlite).map((entry) => [entry.section, entry]));
      const overlay = overlayStaged(this.#current.document, [...staged.values()]);
      const base = { document: overlay, effective: withDefaults(overlay, this.#schema) };
      const draft = draftChange(base, change.sections, change.mode);
      if (!draft.ok) return draft;
      const known = [this.#effective];
      const prepared = await this.#prepare(
        draft.document,
        { ...draft, elevated: change.elevated, known },
        base.effective,
      );
      if (prepared.problems.length > 0) return refused({ kind: "validation", problems: prepared.problems });

      const document: Mapping = prepared.document;
      const entries = draft.sections.map((section) => {
        const entry = { section, value: valueAt(document, [section]), earlier: staged.get(section) };
        return toStaged(entry, change, this.#current, this.#options.clock.wallTime());
      });
      const changes = diffDocuments(this.#effective, withDefaults(document, this.#schema)).filter(({ section }) =>
        draft.sections.includes(section),
      );
      const warnings = [
        ...prepared.crossProblems.map(describeProblem),
        ...this.#warningsOf(changes, prepared, draft.sections),
      ];
      if (change.dryRun !== true) {
        const failure = this.#write(() => writeStaged(this.#options.database.sqlite, entries));
        if (failure) return failure;
      }
      return ok({ staged: entries.map((entry) => this.#viewStaged(entry)), warnings, changes });
    });
  }

  staged(): StagedView[] {
    return readStaged(this.#options.database.sqlite).map((entry) => this.#viewStaged(entry));
  }

  /** One version of all staged sections, or of the named ones. */
  applyStaged(
    options: ChangeAuthor & {
      sections?: readonly string[] | undefined;
      force?: boolean | undefined;
      baseVersion?: number | undefined;
      dryRun?: boolean | undefined;
    },
  ): Promise<Result<Change>> {
    return this.#exclusive(async () => {
      const unknown = this.#unknownSection(options.sections ?? []);
      if (unknown) return unknown;
      const all = readStaged(this.#options.database.sqlite);
      const pending = all.map(({ section }) => section);
      const requested = options.sections ?? pending;
      if (requested.length === 0 || requested.some((name) => !pending.includes(name))) {
        return refused({ kind: "nothing_staged", requested: [...requested], pending });
      }
      const conflict = this.#conflict(options.baseVersion);
      if (conflict) return conflict;
      const chosen = all.filter(({ section }) => requested.includes(section));
      const contested = chosen.filter((entry) => isContested(entry, this.#current));
      if (contested.length > 0 && options.force !== true) {
        return refused({
          kind: "conflict",
          expectedVersion: Math.min(...contested.map(({ baseVersion }) => baseVersion)),
          currentVersion: this.#current.version,
          sections: contested.map(({ section }) => section),
        });
      }
      const document = overlayStaged(this.#current.document, chosen);
      // What stood there when the change was staged has passed the fence with it.
      const known = [Object.fromEntries(chosen.map(({ section, base }) => [section, base]))];
      return await this.#commit(document, { ...options, sections: requested, unstage: requested, known });
    });
  }

  /** Forgets all staged sections, or the named ones; returns those that were staged. */
  discard(sections?: readonly string[]): Promise<Result<string[]>> {
    return this.#exclusive(async () => {
      const { sqlite } = this.#options.database;
      const pending = readStaged(sqlite).map(({ section }) => section);
      const gone = pending.filter((section) => sections === undefined || sections.includes(section));
      return this.#write(() => removeStaged(sqlite, gone)) ?? ok(gone);
    });
  }

  /** A new version with the content of an old one, or with the named sections of it. */
  rollback(
    version: number,
    options: Partial<ChangeAuthor> & {
      sections?: readonly string[] | undefined;
      baseVersion?: number | undefined;
      dryRun?: boolean | undefined;
    } = {},
  ): Promise<Result<Change>> {
    return this.#exclusive(async () => {
      const conflict = this.#conflict(options.baseVersion) ?? this.#unknownSection(options.sections ?? []);
      if (conflict) return conflict;
      const target = this.#readVersion(version);
      if (target === undefined) return refused({ kind: "unknown_version", version });
      const names = options.sections ?? SECTIONS.map(({ name }) => name);
      const next = new Map<string, unknown>(Object.entries(this.#current.document));
      for (const name of names) {
        const old = valueAt(target.document, [name]);
        const { value } = withFileOnlyFields(withoutFileOnlyFields(old, name), name, this.#base);
        if (value === undefined || value === null) next.delete(name);
        else next.set(name, value);
      }
      return await this.#commit(Object.fromEntries(next), {
        source: "rollback",
        description: `rollback to version ${version}`,
        ...options,
        sections: names,
        // What has run brings in nothing new.
        known: [target.document],
        // The specification wants a version for every rollback, also for one that changes nothing.
        always: true,
      });
    });
  }

  /** The document of the file as it is now, in place of all that was changed since it was read last. */
  applyFile(document: Mapping, { hash, lineOf }: { hash: string; lineOf?: Source["lineOf"] }): Promise<Result<Change>> {
    return this.#exclusive(async () => {
      // What was broken is as it was before: as at a start, that is no reason to undo changes of the API.
      if (hash === this.#fileHash) return ok(this.#unchanged);
      const fileBefore = this.#newestFromFile();
      const before = this.#effective;
      const sections = SECTIONS.map(({ name }) => name);
      const options = { source: "file_reload", sections, fromFile: { hash }, lineOf };
      const result = await this.#commit(document, options);
      if (result.ok && result.value.applied && fileBefore !== undefined) {
        const replaced = replacedFields(withDefaults(fileBefore.document, this.#schema), before, this.#effective);
        if (replaced.length > 0) {
          const message = "the edited configuration file replaced changes that were made through the admin API";
          this.#options.log.warn({ fields: replaced, version: result.value.version }, message);
        }
      }
      if (result.ok && result.value.applied) logEffectWarnings(this.#options.log, this.#current.settings);
      return result;
    });
  }

  /** Reads included files again; what they hold is part of the settings, but not of the document. */
  refresh(description: string): Promise<Result<Change>> {
    return this.#exclusive(() =>
      this.#commit(this.#current.document, {
        source: "file_reload",
        description,
        sections: [],
        fromFile: { hash: undefined },
      }),
    );
  }

  /** Newest first. */
  history({
    limit = 20,
    offset = 0,
    section,
  }: {
    limit?: number;
    offset?: number;
    section?: string;
  } = {}): HistoryPage {
    const size = Math.min(Math.max(limit, 1), MAXIMUM_HISTORY_PAGE);
    return readPage(this.#options.database.sqlite, { limit: size, offset: Math.max(offset, 0), section });
  }

  /** A version that is still kept, masked. */
  version(version: number): VersionRecord | undefined {
    const record = this.#readVersion(version);
    return record && { ...record, document: maskSecrets(record.document) as Mapping };
  }

  /** For names that are made of secrets: the same for every process of the data folder, as long as that can be written. */
  keySalt(): string {
    const { sqlite, path } = this.#options.database;
    let problem = this.storageProblem;
    try {
      if (problem === undefined) return readKeySalt(sqlite);
    } catch (error) {
      problem = `${path} cannot be used: ${storageMessage(error)}`;
    }
    this.#options.log.warn({ path }, `${problem}; API keys without an id have other names after the next start`);
    return randomKeySalt();
  }

  close(): void {
    this.#listeners.clear();
    this.#options.database.sqlite.close();
  }

  async #apply(change: SectionChange): Promise<Result<Change>> {
    const conflict = this.#conflict(change.baseVersion);
    if (conflict) return conflict;
    const draft = draftChange(this.#base, change.sections, change.mode);
    return draft.ok ? await this.#commit(draft.document, { ...change, ...draft, sections: draft.sections }) : draft;
  }

  get #base(): DraftBase {
    return { document: this.#current.document, effective: this.#effective };
  }

  get #unchanged(): Change {
    const { version, appliedAtMs } = this.#current;
    const none = { changes: [], sections: [], warnings: [], previous: {}, current: {} };
    const capability = "immediate";
    return {
      ...none,
      version,
      previousVersion: version,
      applied: false,
      appliedAtMs,
      capability,
      impact: estimateImpact([]),
    };
  }

  async #exclusive<Value>(task: () => Promise<Result<Value>>): Promise<Result<Value>> {
    return (await this.#serial.run(task)) ?? refused({ kind: "busy" });
  }

  #conflict(baseVersion: number | undefined): { ok: false; error: ChangeError } | undefined {
    const { version } = this.#current;
    if (baseVersion === undefined || baseVersion === version) return undefined;
    return refused({ kind: "conflict", expectedVersion: baseVersion, currentVersion: version });
  }

  #unknownSection(names: readonly string[]): { ok: false; error: ChangeError } | undefined {
    const unknown = names.find((name) => specOf(name) === undefined);
    if (unknown === undefined) return undefined;
    return refused({ kind: "unknown_section", requested: unknown, available: SECTIONS.map(({ name }) => name) });
  }

  #storageError(): { ok: false; error: ChangeError } | undefined {
    const message = this.storageProblem;
    if (message === undefined) return undefined;
    return refused({ kind: "storage", message: `${message}; changes cannot be kept, see server.data_dir` });
  }

  /** Every document that did not come from the file passes the fence here. */
  async #prepare(document: Mapping, origin: Origin, base: Mapping = this.#effective): Promise<Prepared> {
    const { env, home, checks } = this.#options;
    const { baseDir } = this.#current;
    const { writtenPath, lineOf } = origin;
    return await prepareDocument(document, {
      env,
      home,
      checks,
      baseDir,
      problems: origin.fromFile === undefined ? await this.#fenceProblems(document, origin, base) : [],
      source: { lineOf },
      ...(writtenPath && { writtenPath }),
    });
  }

  /** What whoever makes these changes, or names these sections, should know. */
  #warningsOf(
    changes: readonly FieldChange[],
    { settings, overrides }: Pick<Prepared, "settings" | "overrides">,
    named: readonly string[],
  ): string[] {
    const touched = [...named, ...changes.map(({ section }) => section)];
    return [...warningsOf(changes, overrides), ...(settings === undefined ? [] : effectWarnings(settings, touched))];
  }

  async #fenceProblems(document: Mapping, origin: Origin, base: Mapping): Promise<Problem[]> {
    // Too deep for every walk over it; preparing it says so.
    if (isNestedTooDeeply(document)) return [];
    const { kept = [], known = [], elevated = false } = origin;
    const { baseDir, path, settings, overrides = [] } = this.#current;
    const { home } = this.#options;
    const dataDir = resolvePath(settings.server.data_dir, baseDir, home);
    const filled = (one: Mapping) => withDefaults(one, this.#schema);
    return await fenceProblems(
      { base, known: known.map(filled), next: filled(document), kept, elevated },
      { baseDir, hasFile: path !== undefined, dataDir, home, overrides },
    );
  }

  /** Checks, keeps, publishes and announces a document, in this order. */
  async #commit(written: Mapping, options: CommitOptions): Promise<Result<Change>> {
    const previous = this.#current;
    const previousEffective = this.#effective;
    const prepared = await this.#prepare(written, options);
    const problems = [...prepared.problems, ...prepared.crossProblems];
    if (prepared.settings === undefined || problems.length > 0) return refused({ kind: "validation", problems });

    const document: Mapping = prepared.document;
    const effective = withDefaults(document, this.#schema);
    const changes = diffDocuments(previousEffective, effective);
    const settings = keepRestartFields(prepared.settings, previous.settings);
    // Included files change settings without changing the document.
    const isSame = changes.length === 0 && Bun.deepEquals(settings, previous.settings, true);
    const isDry = options.dryRun === true;
    const result: Change = {
      version: previous.version,
      previousVersion: previous.version,
      applied: false,
      appliedAtMs: previous.appliedAtMs,
      changes,
      sections: [...new Set(changes.map(({ section }) => section))],
      warnings: this.#warningsOf(changes, prepared, options.sections),
      capability: changesReloadClass(changes),
      impact: estimateImpact(changes),
      previous: maskSecrets(pick(previousEffective, options.sections)) as Mapping,
      current: maskSecrets(pick(effective, options.sections)) as Mapping,
    };
    options.checked?.(previous.settings, settings);
    if (isDry) return ok(result);
    if (isSame && options.always !== true) return this.#finishWithoutVersion(options) ?? ok(result);

    if (Buffer.byteLength(JSON.stringify(document)) > MAXIMUM_FILE_BYTES) {
      return refused({ kind: "too_large", limitBytes: MAXIMUM_FILE_BYTES });
    }
    const version = previous.version + 1;
    const appliedAtMs = this.#options.clock.wallTime();
    const record: VersionRecord = {
      version,
      appliedAtMs,
      source: options.source,
      user: options.user,
      description: options.description,
      sectionsChanged: changes.length === 0 && !options.always ? ["api_keys"] : result.sections,
      changes,
      document,
    };
    const unkept = this.#keep(record, settings.admin.max_history_entries, options);
    if (unkept) {
      if (options.fromFile === undefined) return unkept;
      this.#unsaved = [...this.#unsaved, record].slice(-MAXIMUM_UNSAVED);
      result.warnings.push(`the version could not be kept: ${describeChangeError(unkept.error)}`);
    }

    const snapshot: ConfigSnapshot = {
      ...previous,
      version,
      document: prepared.document,
      settings,
      appliedAtMs,
      pendingRestart: pendingRestartFields(settings, prepared.settings),
      overrides: prepared.overrides,
      includedFiles: prepared.includedFiles,
    };
    this.#current = freezeDeep(snapshot);
    this.#effective = effective;
    for (const field of snapshot.pendingRestart ?? []) {
      if (!(previous.pendingRestart ?? []).includes(field)) {
        this.#options.log.warn({ field, version }, `${field} was changed; it takes effect after a restart`);
      }
    }
    result.warnings.push(...(await this.#listeners.announce(this.#current, previous, changes, record.sectionsChanged)));
    const { sectionsChanged: sections, source, user } = record;
    this.#options.log.info({ version, source, sections, ...(user !== undefined && { user }) }, "configuration changed");
    return ok({ ...result, version, applied: true, appliedAtMs });
  }

  #finishWithoutVersion({ unstage, fromFile }: CommitOptions): { ok: false; error: ChangeError } | undefined {
    const { sqlite } = this.#options.database;
    if (fromFile !== undefined) this.#fileHash = fromFile.hash ?? this.#fileHash;
    if (unstage === undefined && fromFile === undefined) return undefined;
    const failure = this.#write(() => {
      if (unstage) removeStaged(sqlite, unstage);
      writeFileHash(sqlite, this.#fileHash);
    });
    // Of the file only its hash is new: the worst that can follow is one more version at the next start.
    return fromFile === undefined ? failure : undefined;
  }

  #keep(
    record: VersionRecord,
    keep: number,
    { unstage, fromFile }: CommitOptions,
  ): { ok: false; error: ChangeError } | undefined {
    const { sqlite } = this.#options.database;
    const isInMemory = this.storageProblem !== undefined;
    if (isInMemory && fromFile === undefined) return this.#storageError();
    if (fromFile !== undefined) this.#fileHash = fromFile.hash ?? this.#fileHash;
    const failure = this.#write(() => {
      appendVersions(sqlite, [...this.#unsaved, record], keep);
      if (unstage) removeStaged(sqlite, unstage);
      writeFileHash(sqlite, this.#fileHash);
    });
    if (failure === undefined) this.#unsaved = [];
    return failure;
  }

  /** All or nothing. */
  #write(task: () => void): { ok: false; error: ChangeError } | undefined {
    const { sqlite } = this.#options.database;
    try {
      sqlite.transaction(task).immediate();
      return undefined;
    } catch (error) {
      const message = `the change could not be kept: ${storageMessage(error)}`;
      this.#options.log.error({ path: this.#options.database.path }, message);
      return refused({ kind: "storage", message });
    }
  }

  #viewStaged(entry: StagedSection): StagedView {
    const overlay = withDefaults(overlayStaged(this.#current.document, [entry]), this.#schema);
    const changes = diffDocuments(this.#effective, overlay);
    return viewStaged(entry, changes, this.#current);
  }

  #readVersion(version: number): VersionRecord | undefined {
    const unsaved = this.#unsaved.find((record) => record.version === version);
    return unsaved ?? readVersion(this.#options.database.sqlite, version);
  }

  #newestFromFile(): VersionRecord | undefined {
    return this.#unsaved.at(-1) ?? newestFromFile(this.#options.database.sqlite);
  }
}

function pick(document: Mapping, names: readonly string[]): Mapping {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(document, name) ? [[name, document[name]]] : [])));
}
