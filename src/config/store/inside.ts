// What the parts of the configuration store share: what runs, one change after the other, and how a change is made.

import type { Clock } from "../../lib/clock.ts";
import type { Change, ChangeAuthor, Result, SectionChange } from "../change/change.ts";
import type { Draft } from "../change/draft.ts";
import type { assess, ProposedDocument, RunningConfiguration } from "./assess.ts";
import type { ConfigDatabase } from "./database.ts";

/** A change of the whole configuration, ready to be checked. */
export interface Proposal
  extends ProposedDocument,
    ChangeAuthor,
    Pick<SectionChange, "checked" | "dryRun">,
    Partial<Pick<Draft, "leftOut">> {
  /** A version is made even if nothing differs. */
  always?: boolean;
  /** Staged sections that are done with. */
  unstage?: readonly string[];
  /** Secrets that it takes away, and that were still valid, may come back. */
  revokesNothing?: boolean;
}

export interface Inside {
  running(): RunningConfiguration;
  database: ConfigDatabase;
  clock: Clock;
  exclusive<Value>(task: () => Promise<Result<Value>>): Promise<Result<Value>>;
  /** The proposal is made when its turn comes. */
  change(propose: (running: RunningConfiguration) => Result<Proposal>): Promise<Result<Change>>;
  assess(candidate: ProposedDocument): ReturnType<typeof assess>;
}
