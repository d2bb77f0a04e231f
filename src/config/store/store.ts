// The one place where the configuration changes: every change is checked whole, kept, and only then seen by anyone.

import type { Clock } from "../../lib/clock.ts";
import { lazily } from "../../lib/lazily.ts";
import { createSerial, type Serial } from "../../lib/serial.ts";
import { estimateImpact } from "../change/capability.ts";
import {
  type Change,
  conflict,
  describeChangeError,
  ok,
  type Result,
  refused,
  type SectionChange,
} from "../change/change.ts";
import type { FieldChange } from "../change/diff.ts";
import { type Draft, draftChange, withoutSentSecrets } from "../change/draft.ts";
import { maskSecrets } from "../change/mask.ts";
import { type Attachments, attachmentsInForce, joinAttachments } from "../compile/attachments.ts";
import { withCanonicalKeys } from "../compile/compile.ts";
import type { DocumentSurroundings } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import { logEffectWarnings } from "../compile/without-effect.ts";
import { MAXIMUM_FILE_BYTES } from "../files/read-text.ts";
import { withDefaults } from "../schema/defaults.ts";
import { SECTION_NAMES } from "../sections/registry.ts";
import type { Problem, Source } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import { assess, type ProposedDocument, type RunningConfiguration, warningsOf } from "./assess.ts";
import type { ConfigDatabase } from "./database.ts";
import { editOf } from "./file-edit.ts";
import { History, type StartOfHistory } from "./history.ts";
import type { Inside, Proposal } from "./inside.ts";
import { announce, type ConfigListener, type ConfigLog, describeLeftOut, tellEdit } from "./listeners.ts";
import { freezeDeep, keepRestartFields, pendingRestartFields } from "./publish.ts";
import type { RevokedSecrets } from "./revoked-secrets.ts";
import { leftOutOfRevoked, revokedBy } from "./screen.ts";
import { Staging } from "./staging.ts";
import { NO_FILE, type Standing } from "./standing.ts";
import type { VersionRecord } from "./versions.ts";

interface ConfigStoreParts extends DocumentSurroundings {
  snapshot: ConfigSnapshot;
  database: ConfigDatabase;
  clock: Clock;
  log: ConfigLog;
  start: StartOfHistory;
  salt: () => string;
}

export interface Validation {
  valid: boolean;
  problems: readonly Problem[];
  warnings: string[];
  changes: FieldChange[];
  impact: string;
}

type SectionsAsked = Pick<
  SectionChange,
  "sections" | "mode" | "elevated" | "baseVersion" | "isImport" | "confirmedVariables"
>;

/** Each waiting change holds a document. */
const MAXIMUM_WAITING = 1_000;

export class ConfigStore {
  readonly staging: Staging;
  readonly history: History;
  readonly #options: ConfigStoreParts;
  readonly #serial: Serial = createSerial(MAXIMUM_WAITING);
  readonly #listeners = new Set<ConfigListener>();
  #running: RunningConfiguration;

  constructor(options: ConfigStoreParts) {
    this.#options = options;
    this.#running = toRunning(options.snapshot);
    const inside: Inside = {
      running: () => this.#running,
      database: options.database,
      clock: options.clock,
      exclusive: (task) => this.#exclusive(task),
      change: (propose) => this.#change(propose),
      assess: (candidate) => this.#assess(candidate),
    };
    this.staging = new Staging(inside);
    this.history = new History(inside, options.start);
  }

  get current(): ConfigSnapshot {
    return this.#running.snapshot;
  }

  /** Why changes through the API are refused; undefined when they can be kept. */
  get storageProblem(): string | undefined {
    return this.#options.database.problem;
  }

  /** server.data_dir; undefined while nothing can be kept there, and in a guest. */
  get dataFolder(): string | undefined {
    return this.#options.database.folder;
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: ConfigListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The document for a reader: defaults filled in and secrets masked, unless asked otherwise. */
  view(options: { sections?: readonly string[]; includeSensitive?: boolean; includeDefaults?: boolean } = {}): Mapping {
    const { document, effective } = this.#running;
    const shown = pick(options.includeDefaults === false ? document : effective, options.sections ?? SECTION_NAMES);
    return options.includeSensitive ? structuredClone(shown) : (maskSecrets(shown) as Mapping);
  }

  apply(change: SectionChange): Promise<Result<Change>> {
    return this.#change((running) => proposalOf(change, running));
  }

  /**
   * As apply(), for a change that depends on the document as it is when its turn comes. Secrets that are sent somewhere
   * are masked in it, and stay where they are left so.
   */
  edit(make: (document: Mapping) => SectionChange): Promise<Result<Change>> {
    return this.#change((running) => proposalOf(make(withoutSentSecrets(running.document)), running));
  }

  /** As a dry run of apply(), with every problem in the answer. */
  async validate(change: SectionsAsked): Promise<Result<Validation>> {
    const running = this.#running;
    const proposal = proposalOf(change, running);
    if (!proposal.ok) {
      if (proposal.error.kind !== "validation") return proposal;
      const { problems } = proposal.error;
      return ok({ valid: false, problems, warnings: [], changes: [], impact: estimateImpact([]) });
    }
    const assessed = await this.#assess(proposal.value, running);
    const { problems, changes } = assessed;
    const warnings = warningsOf(changes, assessed, proposal.value.sections);
    return ok({ valid: problems.length === 0, problems, warnings, changes, impact: estimateImpact(changes) });
  }

  /** Brings in what the file says now and did not say when it was applied last; what else runs stays. */
  applyFile(written: Mapping, { hash, lineOf }: { hash: string; lineOf?: Source["lineOf"] }): Promise<Result<Change>> {
    return this.#exclusive(async () => {
      const { standing } = this.history;
      if (hash === standing.file.hash) return ok(unchanged(this.current));
      const { document } = this.#running;
      const { env, clock, log } = this.#options;
      const source = "file_reload";
      const alone = { source, document: written, sections: SECTION_NAMES, fromFile: {}, lineOf };
      const isMerged = !Bun.deepEquals(standing.file.document, document, true);
      if (isMerged) {
        // It must also run without what was changed through the API.
        const { problems } = await this.#assess(alone);
        if (problems.length > 0) return refused({ kind: "validation", problems });
      }
      const file = { hash, document: withCanonicalKeys(written).document };
      const edit = editOf(standing, file, document, { env, nowMs: clock.wallTime() });
      const fromFile = { standing: edit.standing };
      const description = describeLeftOut(edit.leftOut);
      const leftOut = edit.leftOut.map(leftOutOfRevoked);
      const merged = { source, description, sections: SECTION_NAMES, ...edit, leftOut, fromFile };
      const result = await this.#commit(isMerged ? merged : { ...alone, fromFile });
      if (!result.ok) return result;
      tellEdit(log, { ...result.value, leftOut: edit.leftOut });
      if (!result.value.applied) return result;
      logEffectWarnings(this.#options.log, this.current.settings);
      return result;
    });
  }

  /** Takes the document that another process with the same data folder has put in force. */
  follow(document: Mapping, revoked?: RevokedSecrets): Promise<Result<Change>> {
    const edit = { source: "file_reload", sections: SECTION_NAMES, revokesNothing: true };
    return this.#change(() => {
      const { standing } = this.history;
      return ok({ ...edit, document, fromFile: { standing: { ...standing, revoked: revoked ?? standing.revoked } } });
    });
  }

  /** Reads included files again; what they hold is part of the settings, but not of the document. */
  refresh(description: string): Promise<Result<Change>> {
    const edit = { source: "file_reload", description, sections: [], fromFile: {} };
    return this.#change(({ document }) => ok({ ...edit, document }));
  }

  /** In place of what was read before; the settings stay, and with them the version. */
  async attach(part: Partial<Attachments>): Promise<void> {
    // In turn: a change that is on its way has read the files already.
    await this.#serial.run(async () => this.#attach({ ...this.current.attachments, ...part }));
  }

  /** Reads the files that the settings name again; returns why what was read before stays in force. */
  async reattach(): Promise<string | undefined> {
    return await this.#serial.run(async () => {
      const { settings, baseDir } = this.current;
      const { readers, home } = this.#options;
      const read = joinAttachments(await Promise.all(readers.map((reader) => reader(settings, { baseDir, home }))));
      if (read.problem === undefined) this.#attach(read);
      return read.problem;
    });
  }

  /** For names that are made of secrets: the same for every process of the data folder, as long as that can be written. */
  keySalt(): string {
    return this.#options.salt();
  }

  /** The configuration file as it was applied last; undefined without one. May hold secrets. */
  get file(): Mapping | undefined {
    const { hash, document } = this.history.standing.file;
    return hash === NO_FILE ? undefined : document;
  }

  /** Of a key of clients that was in the configuration once, and may not come back. */
  isRevokedKey(secret: string): boolean {
    return this.history.standing.revoked.has({ section: "api_keys", secret });
  }

  close(): void {
    this.#listeners.clear();
    this.#options.database.sqlite.close();
  }

  #attach(attachments: Attachments): void {
    const previous = this.current;
    const snapshot = freezeDeep({ ...previous, attachments });
    this.#running = { ...this.#running, snapshot };
    announce(this.#listeners, [snapshot, previous, []], this.#options.log);
  }

  async #exclusive<Value>(task: () => Promise<Result<Value>>): Promise<Result<Value>> {
    return (await this.#serial.run(task)) ?? refused({ kind: "busy" });
  }

  #change(propose: (running: RunningConfiguration) => Result<Proposal>): Promise<Result<Change>> {
    return this.#exclusive(async () => {
      const proposal = propose(this.#running);
      return proposal.ok ? await this.#commit(proposal.value) : proposal;
    });
  }

  #assess(candidate: ProposedDocument, running: RunningConfiguration = this.#running): ReturnType<typeof assess> {
    const { revoked } = this.history.standing;
    return assess(candidate, running, { ...this.#options, revoked, nowMs: this.#options.clock.wallTime() });
  }

  /** Secrets that the version takes away are revoked. */
  #standingAt(version: number, proposal: Proposal, step?: { before: Mapping; after: Mapping }): Standing {
    const { env, clock } = this.#options;
    const { standing = this.history.standing } = proposal.fromFile ?? {};
    if (step === undefined) return standing;
    const gone = revokedBy({ ...step, env }, clock.wallTime(), proposal.revokesNothing === true);
    const { file, revoked } = standing;
    return { file, revoked: revoked.withRevoked(gone, version, file.document, env) };
  }

  /** Checks, keeps, publishes and announces a document, in this order. */
  async #commit(proposal: Proposal): Promise<Result<Change>> {
    const running = this.#running;
    const previous = running.snapshot;
    const assessed = await this.#assess(proposal);
    const { problems, effective, changes } = assessed;
    const { compiled } = assessed.prepared;
    if (compiled === undefined || problems.length > 0) return refused({ kind: "validation", problems });

    const settings = keepRestartFields(compiled.settings, previous.settings);
    const result: Change = {
      ...unchanged(previous),
      changes,
      sections: [...new Set(changes.map(({ section }) => section))],
      warnings: warningsOf(changes, assessed, proposal.sections),
      impact: estimateImpact(changes),
      previous: maskSecrets(pick(running.effective, proposal.sections)) as Mapping,
      current: maskSecrets(pick(effective, proposal.sections)) as Mapping,
    };
    proposal.checked?.(previous.settings, settings);
    if (proposal.dryRun === true) return ok(result);
    // Included files change settings without changing the document.
    const isSame = changes.length === 0 && Bun.deepEquals(settings, previous.settings, true);
    if (isSame && proposal.always !== true) {
      return this.history.keepNoVersion(proposal, this.#standingAt(previous.version, proposal)) ?? ok(result);
    }

    const { document } = compiled;
    if (Buffer.byteLength(JSON.stringify(document)) > MAXIMUM_FILE_BYTES) {
      return refused({ kind: "too_large", limitBytes: MAXIMUM_FILE_BYTES });
    }
    const version = previous.version + 1;
    const appliedAtMs = this.#options.clock.wallTime();
    const { source, user, description } = proposal;
    const sectionsChanged = changes.length === 0 && !proposal.always ? ["api_keys"] : result.sections;
    const record = { version, appliedAtMs, source, user, description, sectionsChanged, changes, document };
    const standing = this.#standingAt(version, proposal, { before: running.document, after: document });
    const unkept = this.history.keep(record, settings.admin.max_history_entries, proposal, standing);
    if (unkept) {
      if (proposal.fromFile === undefined) return unkept;
      result.warnings.push(`the version could not be kept: ${describeChangeError(unkept.error)}`);
    }

    const attachments = attachmentsInForce(compiled.attachments, previous.attachments);
    const pendingRestart = pendingRestartFields(settings, compiled.settings);
    const next = { ...compiled, version, settings, attachments, appliedAtMs, pendingRestart };
    result.warnings.push(...this.#publish({ ...previous, ...next }, effective, record));
    return ok({ ...result, version, applied: true, appliedAtMs });
  }

  #publish(snapshot: ConfigSnapshot, effective: Mapping, record: VersionRecord): string[] {
    const { log } = this.#options;
    const previous = this.current;
    this.#running = { snapshot: freezeDeep(snapshot), document: snapshot.document, effective };
    const { version, pendingRestart = [] } = snapshot;
    for (const field of pendingRestart) {
      if (previous.pendingRestart?.includes(field)) continue;
      log.warn({ field, version }, `${field} was changed; it takes effect after a restart`);
    }
    const { sectionsChanged: sections, source, user, changes } = record;
    const warnings = announce(this.#listeners, [snapshot, previous, changes], log);
    log.info({ version, source, sections, ...(user !== undefined && { user }) }, "configuration changed");
    return warnings;
  }
}

function toRunning(snapshot: ConfigSnapshot): RunningConfiguration {
  const { document } = snapshot;
  const effective = lazily(() => withDefaults(document));
  return {
    snapshot: freezeDeep({ ...snapshot }),
    document,
    // It may never be asked for, and it takes the JSON Schema of the whole configuration.
    get effective() {
      return effective();
    },
  };
}

function proposalOf<Asked extends SectionsAsked>(
  change: Asked,
  running: RunningConfiguration,
): Result<Omit<Asked, keyof Draft> & Draft> {
  const draft = conflict(change.baseVersion, running.snapshot.version) ?? draftChange(running, change);
  return draft.ok ? ok({ ...change, ...draft.value }) : draft;
}

/** The answer to a change that makes no version. */
function unchanged({ version, appliedAtMs }: ConfigSnapshot): Change {
  const none = { changes: [], sections: [], warnings: [], previous: {}, current: {} };
  return { ...none, version, previousVersion: version, applied: false, appliedAtMs, impact: estimateImpact([]) };
}

function pick(document: Mapping, names: readonly string[]): Mapping {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(document, name) ? [[name, document[name]]] : [])));
}
