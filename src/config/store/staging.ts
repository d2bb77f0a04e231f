// Sections that were changed but not applied yet: what they would change, and whether they still may.

import {
  type Change,
  type ChangeAuthor,
  conflict,
  ok,
  type Result,
  refused,
  type SectionChange,
  unknownSection,
} from "../change/change.ts";
import { diffDocuments, type FieldChange } from "../change/diff.ts";
import { draftChange } from "../change/draft.ts";
import { withDefaults } from "../schema/defaults.ts";
import { describeProblem } from "../values/problems.ts";
import { type Mapping, valueAt, withEntries } from "../values/values.ts";
import { warningsOf } from "./assess.ts";
import type { Inside } from "./inside.ts";
import { readStaged, removeStaged, type StagedSection, writeStaged } from "./staged-sections.ts";

interface StagedView extends Omit<StagedSection, "value" | "base"> {
  /** Against the current configuration; masked. */
  changes: FieldChange[];
  /** The section was changed by someone else since. */
  conflict: boolean;
}

export class Staging {
  readonly #inside: Inside;

  constructor(inside: Inside) {
    this.#inside = inside;
  }

  list(): StagedView[] {
    return this.#read().map((entry) => this.#view(entry));
  }

  /** Keeps sections for a later apply(); rules across sections are only warnings until then. */
  stage(change: SectionChange): Promise<Result<{ staged: StagedView[]; warnings: string[]; changes: FieldChange[] }>> {
    const { database, running, assess } = this.#inside;
    return this.#inside.exclusive(async () => {
      const { snapshot, document, effective } = running();
      const wrong = conflict(change.baseVersion, snapshot.version) ?? database.refusal;
      if (wrong) return wrong;
      const earlier = this.#read();
      const overlay = overlayStaged(document, earlier);
      const base = withDefaults(overlay);
      const draft = draftChange({ document: overlay, effective: base }, change);
      if (!draft.ok) return draft;
      const { sections } = draft.value;
      const { elevated, isImport } = change;
      const assessed = await assess({ ...draft.value, elevated, isImport, base, known: [effective] });
      const { prepared } = assessed;
      if (prepared.problems.length > 0) return refused({ kind: "validation", problems: prepared.problems });

      const stagedAtMs = this.#inside.clock.wallTime();
      const entries = sections.map((section): StagedSection => {
        // A patch of what is staged knows no more of the current section than that did.
        const patched = change.mode === "merge" ? earlier.find((entry) => entry.section === section) : undefined;
        return {
          section,
          value: valueAt(prepared.document, [section]),
          base: patched === undefined ? valueAt(document, [section]) : patched.base,
          baseVersion: patched?.baseVersion ?? snapshot.version,
          stagedAtMs,
          source: change.source,
          user: change.user,
          description: change.description,
        };
      });
      const changes = assessed.changes.filter(({ section }) => sections.includes(section));
      const warnings = [...prepared.crossProblems.map(describeProblem), ...warningsOf(changes, assessed, sections)];
      if (change.dryRun !== true) {
        const failure = database.write(() => writeStaged(database.sqlite, entries));
        if (failure) return failure;
      }
      return ok({ staged: entries.map((entry) => this.#view(entry)), warnings, changes });
    });
  }

  /** One version of all staged sections, or of the named ones. */
  apply(
    options: ChangeAuthor &
      Pick<SectionChange, "baseVersion" | "dryRun"> & {
        sections?: readonly string[] | undefined;
        force?: boolean | undefined;
      },
  ): Promise<Result<Change>> {
    return this.#inside.change(({ snapshot, document }) => {
      const unknown = unknownSection(options.sections ?? []);
      if (unknown) return unknown;
      const all = this.#read();
      const pending = all.map(({ section }) => section);
      const { baseVersion, force, sections = pending, ...given } = options;
      if (sections.length === 0 || sections.some((name) => !pending.includes(name))) {
        return refused({ kind: "nothing_staged", requested: [...sections], pending });
      }
      const wrong = conflict(baseVersion, snapshot.version);
      if (wrong) return wrong;
      const chosen = all.filter(({ section }) => sections.includes(section));
      const contested = chosen.filter((entry) => isContested(entry, document));
      if (contested.length > 0 && force !== true) {
        return refused({
          kind: "conflict",
          expectedVersion: Math.min(...contested.map((entry) => entry.baseVersion)),
          currentVersion: snapshot.version,
          sections: contested.map(({ section }) => section),
        });
      }
      // Values that the staged change was based on have passed the fence already.
      const known = [Object.fromEntries(chosen.map(({ section, base }) => [section, base]))];
      const restoredVersion = Math.min(...chosen.map((entry) => entry.baseVersion));
      return ok({
        ...given,
        document: overlayStaged(document, chosen),
        sections,
        unstage: sections,
        known,
        restoredVersion,
      });
    });
  }

  /** Forgets all staged sections, or the named ones; returns those that were staged. */
  discard(sections?: readonly string[]): Promise<Result<string[]>> {
    const { database } = this.#inside;
    return this.#inside.exclusive(async () => {
      const pending = this.#read().map(({ section }) => section);
      const gone = pending.filter((section) => sections === undefined || sections.includes(section));
      return database.write(() => removeStaged(database.sqlite, gone)) ?? ok(gone);
    });
  }

  #read(): StagedSection[] {
    return readStaged(this.#inside.database.sqlite);
  }

  #view(entry: StagedSection): StagedView {
    const { document, effective } = this.#inside.running();
    const { value: _value, base: _base, ...view } = entry;
    const changes = diffDocuments(effective, withDefaults(overlayStaged(document, [entry])));
    return { ...view, changes, conflict: isContested(entry, document) };
  }
}

/** True if another change to the section was made since. */
function isContested({ section, base }: StagedSection, document: Mapping): boolean {
  return !Bun.deepEquals(base, valueAt(document, [section]), true);
}

/** The document as it would be with these sections. */
function overlayStaged(document: Mapping, staged: readonly StagedSection[]): Mapping {
  return withEntries(
    document,
    staged.map(({ section, value }) => [section, value]),
  );
}
