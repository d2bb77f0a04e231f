// What reads a backend's stream for a client: whole events in, whole events out, and at the end whether the answer was
// complete. Pure: no connection, no clock.

import type { Failure } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";

/**
 * What the end of a stream means: `done` = complete with its end marker, `finished` = complete but for the marker, which
 * the reader has added, `reported` = the backend itself has told the client of an error.
 */
export type Verdict = "done" | "finished" | "reported" | "incomplete";

/** One instance per stream. */
export interface AnswerReader {
  /** Whole events of the backend -> whole events for the client; undefined when there is nothing to send. Throws DecodeError. */
  push(events: Uint8Array): Uint8Array | undefined;
  /** Whether the answer's own end has come: the client need not wait for the connection to end. */
  readonly isOver: boolean;
  /** The error that the backend reported and the client has not got; nothing is read behind it. */
  readonly failure: Failure | undefined;
  /**
   * The stream is over: what is left for the client. Throws DecodeError.
   * @param rest - what came behind the last whole event: it may lack only its empty line
   */
  end(rest?: Uint8Array): Uint8Array | undefined;
  /** To be asked after end(). */
  readonly verdict: Verdict;
  /** What the backend has told the client of, where the verdict is `reported`. */
  readonly reported?: Failure | undefined;
  /** From now on an error event that would pass is held back, because another backend may take over. */
  holdErrors?(): void;
  /** The event that was held back: it is sent when no other backend takes over. */
  readonly heldError?: Uint8Array | undefined;
  /** The client's event for an answer that cannot go on; undefined where the front door has to write it. */
  fail(failure: Failure): Uint8Array | undefined;
  /** Token counts of an answer that passes untouched. */
  readonly usage?: Usage | undefined;
  /** Ids of the items of a Responses answer; undefined where the answer is translated. */
  readonly itemIds?: readonly string[] | undefined;
}
