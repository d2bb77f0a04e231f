// One row of the matrix: what is asked, what the backend is scripted to answer, and what must be found where.

import type { ScriptEntry } from "../../support/strict/script.ts";
import type { Ask, ClientName, JsonObject, ReadError, Reading, WireClient } from "../ask.ts";
import type { MatrixBackend } from "../backends.ts";
import type { Received } from "../received/received.ts";

export interface Dropped {
  feature: string;
  reason?: string;
}

/** One conversation of one or more turns. */
export interface Exchange {
  readings: Reading[];
  /** What the backend accepted. */
  received: Received[];
  /** Why the backend refused. */
  refusals: string[];
  dropped: Dropped[];
  requestIds: string[];
}

export interface CellRun {
  client: WireClient;
  backend: MatrixBackend;
  plain: Exchange;
  streamed: Exchange;
}

export type Outcome = "kept" | "changed" | "dropped" | "refused" | "absent" | "failed";

export interface Verdict {
  outcome: Outcome;
  /** Changed how, refused with what, and so on. */
  note?: string;
}

export interface Context {
  client: WireClient;
  backend: MatrixBackend;
}

export interface Side extends Context {
  exchange: Exchange;
  streamed: boolean;
}

/**
 * true: as it was. A text: changed, how. A verdict: said outright. false: it is gone, which is right only where the
 * gateway said so.
 */
export type Finding = boolean | string | Verdict;

export interface Feature {
  id: string;
  group: string;
  title: string;
  /** Clients whose format has no words for it. */
  without?: readonly ClientName[];
  /** Which model of the backend is asked; the plain one by default. */
  model?: "thinking" | "effort";
  ask(client: WireClient, backend: MatrixBackend): Ask;
  script: readonly ScriptEntry[] | ((backend: MatrixBackend) => readonly ScriptEntry[]);
  /** The next turn; undefined ends the conversation. */
  follow?(reading: Reading, turn: number, context: Context & { body: JsonObject }): JsonObject | undefined;
  /** What the backend must have seen, in the last turn. */
  sees?(received: Received, side: Side): Finding;
  /** What the client must have read, in the last turn. */
  reads?(reading: Reading, side: Side): Finding;
  /** What a 400 of the gateway shows, where it is not the feature that is refused. */
  refusal?(error: ReadError, side: Side): Verdict | undefined;
  /** Names in the list of what was dropped. */
  drops?: RegExp;
  /** Errors are what is looked for: `reads` judges every status. */
  expectsErrors?: true;
  /** In its own format a request passes untouched, and this backend does not know the member. */
  backendMayRefuse?: true;
  /** Whole and streamed answers differ by intent. */
  differs?: true;
}
