// How the work of a batch is handed out and its results are taken in: the runner asks for lines and gives results back, and does
// not know where either lies.

import type { BatchLine, LineResult, LineSums } from "./batch-store.ts";

export interface BatchWork {
  /** The next line without a result, noted as begun so that a crash does not hide it; undefined: there are no more. */
  next(): Promise<BatchLine | undefined>;
  /** Resolves when a crash no longer loses the result. Rejects only where everything ends. */
  settle(line: BatchLine, result: LineResult, sums: LineSums): Promise<void>;
  /** Counts the results that there are, bad lines included; changes with settle(). */
  readonly done: { readonly completed: number; readonly failed: number; readonly sums: Readonly<LineSums> };
  /** In the order in which they came. */
  results(): AsyncIterable<LineResult>;
  /** The custom_id of each line without a result. */
  unsettled(): AsyncIterable<string>;
  /** Lines can be held back for a vendor; undefined: they cannot here. */
  readonly held?: HeldLines;
  close(): Promise<void>;
}

/** Lines that next() passes over, because a vendor's batch has them. */
export interface HeldLines {
  /** For what is kept of them. */
  readonly folder: string;
  /** False for a line that has its result. */
  hold(position: number): boolean;
  isDone(position: number): boolean;
  /** One that was handed out by next(): when it resolves, a crash does not make it one that is asked again. */
  notSent(line: BatchLine): Promise<void>;
  /** One that is held. */
  line(position: number): Promise<BatchLine>;
  /** The same, noted as begun. */
  begin(position: number): Promise<BatchLine>;
}
