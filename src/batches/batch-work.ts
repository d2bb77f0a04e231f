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
  close(): Promise<void>;
}
