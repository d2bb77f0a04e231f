// What differs between the APIs that batches are created by: how a line of the input is read, and how its result is written.

import type { JsonObject } from "../lib/json.ts";
import type { BatchFault, LineAnswer, LineResult } from "./batch-store.ts";

/** Why a line has no answer. */
export type Unanswered = "expired" | "cancelled";

interface ReadLine {
  customId: string;
  /** The name of the member that is the body of the request. */
  bodyMember: string;
  model: string | undefined;
}

export interface BatchFormat {
  /** Of the ids of its batches. */
  idPrefix: string;
  /** Whose the files of results are; under a name of its own, they stand in no list of the owner's. */
  resultsOwner(owner: string): string;
  /** Errors stand in a file of their own. */
  hasErrorFile: boolean;
  /** @param endpoint - of the batch */
  readLine(line: JsonObject, endpoint: string): ReadLine | BatchFault;
  answered(customId: string, answer: LineAnswer, isAskedAgain: boolean): LineResult;
  unanswered(customId: string, why: Unanswered): LineResult;
  /** A line that cannot be asked; without it, such a line refuses the whole batch. */
  faulty?(fault: BatchFault): LineResult;
}
