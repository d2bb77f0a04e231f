// What the parts of the configuration store share: what runs, one change after the other, and how a change is made.

import type { Clock } from "../../lib/clock.ts";
import type { Change, ChangeAuthor, Result, SectionChange } from "../change/change.ts";
import type { FieldChange } from "../change/diff.ts";
import type { Draft, DraftBase } from "../change/draft.ts";
import type { Prepared } from "../compile/prepare.ts";
import type { ConfigSnapshot } from "../compile/snapshot.ts";
import type { Problem, Source } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import type { ConfigDatabase } from "./database.ts";

/** What runs, and its document. */
export interface Running extends DraftBase {
  snapshot: ConfigSnapshot;
}

/** A document, and where it comes from: the file may hold anything, a change through the API stays inside the fence. */
export interface Candidate extends Pick<ChangeAuthor, "elevated">, Partial<Pick<Draft, "kept" | "writtenPath">> {
  document: Mapping;
  /** The sections that were named. */
  sections: readonly string[];
  /** A change that cannot be kept is applied nevertheless: the file itself keeps it. */
  fromFile?: { hash: string | undefined };
  lineOf?: Source["lineOf"];
  /** What the fence compares with, defaults filled in; without it, what runs. */
  base?: Mapping;
  /** Further documents whose content may stand in the new one. */
  known?: readonly Mapping[];
}

/** A change of the whole configuration, ready to be checked. */
export interface Proposal extends Candidate, ChangeAuthor, Pick<SectionChange, "checked" | "dryRun"> {
  /** A version is made even if nothing differs. */
  always?: boolean;
  /** Staged sections that are done with. */
  unstage?: readonly string[];
}

/** What a candidate would be as the next version. */
export interface Assessment {
  prepared: Prepared;
  /** Those across sections included. */
  problems: readonly Problem[];
  /** Defaults filled in. */
  effective: Mapping;
  /** Against what runs. */
  changes: FieldChange[];
}

export interface Inside {
  running(): Running;
  database: ConfigDatabase;
  clock: Clock;
  exclusive<Value>(task: () => Promise<Result<Value>>): Promise<Result<Value>>;
  /** The proposal is made when its turn comes. */
  change(propose: (running: Running) => Result<Proposal>): Promise<Result<Change>>;
  assess(candidate: Candidate): Promise<Assessment>;
}
