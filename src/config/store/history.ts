// The versions of the configuration: kept in the database, or in memory until that can be written; and the way back.

import {
  type Change,
  type ChangeAuthor,
  conflict,
  ok,
  type Refused,
  type Result,
  refused,
  type SectionChange,
  unknownSection,
} from "../change/change.ts";
import { withFileOnlyFields, withoutFileOnlyFields } from "../change/draft.ts";
import { maskSecrets } from "../change/mask.ts";
import { SECTION_NAMES } from "../sections/registry.ts";
import { type Mapping, valueAt, withEntries } from "../values/values.ts";
import type { Inside, Proposal } from "./inside.ts";
import { removeStaged } from "./staged-sections.ts";
import { type Standing, writeStanding } from "./standing.ts";
import { appendVersions, type HistoryPage, readPage, readVersion, type VersionRecord } from "./versions.ts";

export const MAXIMUM_HISTORY_PAGE = 100;
const MAXIMUM_UNSAVED = 100;

export interface StartOfHistory {
  /** Versions that could not be kept yet. */
  unsaved: readonly VersionRecord[];
  standing: Standing;
  isStandingKept: boolean;
}

export class History {
  readonly #inside: Inside;
  /** Versions from the file that could not be kept yet. */
  #unsaved: readonly VersionRecord[];
  #standing: Standing;
  #keptStanding: Standing | undefined;

  constructor(inside: Inside, { unsaved, standing, isStandingKept }: StartOfHistory) {
    this.#inside = inside;
    this.#unsaved = unsaved;
    this.#standing = standing;
    if (isStandingKept) this.#keptStanding = standing;
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Newest first. */
  page({ limit = 20, offset = 0, section }: { limit?: number; offset?: number; section?: string } = {}): HistoryPage {
    const size = Math.min(Math.max(limit, 1), MAXIMUM_HISTORY_PAGE);
    return readPage(this.#inside.database.sqlite, { limit: size, offset: Math.max(offset, 0), section });
  }

  /** A version that is still kept, masked. */
  version(version: number): VersionRecord | undefined {
    const record = this.#read(version);
    return record && { ...record, document: maskSecrets(record.document) as Mapping };
  }

  /** A new version with the content of an old one, or with the named sections of it. */
  rollback(
    version: number,
    options: Partial<ChangeAuthor> &
      Pick<SectionChange, "baseVersion" | "dryRun"> & { sections?: readonly string[] | undefined } = {},
  ): Promise<Result<Change>> {
    return this.#inside.change(({ snapshot, ...base }) => {
      const { baseVersion, sections = SECTION_NAMES, ...given } = options;
      const wrong = conflict(baseVersion, snapshot.version) ?? unknownSection(sections);
      if (wrong) return wrong;
      const target = this.#read(version);
      if (target === undefined) return refused({ kind: "unknown_version", version });
      const restored = sections.map((name) => {
        const old = withoutFileOnlyFields(valueAt(target.document, [name]), name);
        return [name, withFileOnlyFields(old, name, base).value ?? undefined] as const;
      });
      return ok({
        source: "rollback",
        description: `rollback to version ${version}`,
        ...given,
        document: withEntries(base.document, restored),
        sections,
        // A version that has been in force brings nothing new in.
        known: [target.document],
        restoredVersion: version,
        // It can be undone by another one.
        revokesNothing: true,
        // Every rollback makes a version, even if it changes nothing.
        always: true,
      });
    });
  }

  /** All or nothing; what comes from the file and cannot be kept now is kept with the next version. */
  keep(record: VersionRecord, maximum: number, proposal: Proposal, standing: Standing): Refused | undefined {
    const { unstage, fromFile } = proposal;
    const { database } = this.#inside;
    if (fromFile === undefined && database.refusal) return database.refusal;
    const records = [...this.#unsaved, record];
    const failure = this.#write(standing, fromFile, () => {
      appendVersions(database.sqlite, records, maximum);
      if (unstage) removeStaged(database.sqlite, unstage);
    });
    if (failure === undefined) this.#unsaved = [];
    else if (fromFile) this.#unsaved = records.slice(-MAXIMUM_UNSAVED);
    return failure;
  }

  /** Without any difference there is no new version; only staged sections go, and the state of the file is noted. */
  keepNoVersion({ unstage, fromFile }: Proposal, standing: Standing): Refused | undefined {
    if (unstage === undefined && fromFile === undefined) return undefined;
    const failure = this.#write(standing, fromFile, () => {
      if (unstage) removeStaged(this.#inside.database.sqlite, unstage);
    });
    // Only the file itself is new: it is compared again at the next start.
    return fromFile === undefined ? failure : undefined;
  }

  #write(standing: Standing, fromFile: Proposal["fromFile"], task: () => void): Refused | undefined {
    const { database } = this.#inside;
    const failure = database.write(() => {
      task();
      writeStanding(database.sqlite, standing, this.#keptStanding);
    });
    if (failure === undefined) this.#keptStanding = standing;
    if (failure === undefined || fromFile !== undefined) this.#standing = standing;
    return failure;
  }

  #read(version: number): VersionRecord | undefined {
    const unsaved = this.#unsaved.find((record) => record.version === version);
    return unsaved ?? readVersion(this.#inside.database.sqlite, version);
  }
}
