// How the work of a batch is handed out and its results are taken in: the runner asks for lines and gives results back, and does
// not know where either lies.

import type { BatchFormat } from "./batch-format.ts";
import type { BatchFault, BatchLine, LineResult, LineSums, StoredBatch } from "./batch-store.ts";

export interface BatchWork {
  /**
   * The next line without a result, noted as begun so that a crash does not hide it. Undefined: there are no more. "later": other
   * gateways have the lines that are left, and may be gone before they are done.
   */
  next(): Promise<BatchLine | "later" | undefined>;
  /** False for a line that another gateway has taken over. */
  holds?(line: BatchLine): boolean;
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

/** What has become of an input. */
export interface TakenIn {
  /** Lines, without blank ones. */
  total: number;
  /** Those that cannot be asked. */
  faulty: number;
  faults: readonly BatchFault[];
  model: string | undefined;
}

/** A part of a batch's life that one process at a time goes through. */
export type BatchStep = "intake" | "finish";

/** Where the work of batches lies. */
export interface WorkPlace {
  /** Keeps the lines of an input. Rejects as takeIn() does. */
  takeIn(
    batch: StoredBatch,
    input: AsyncIterable<Uint8Array>,
    given: { format: BatchFormat; maxLines: number; signal?: AbortSignal },
  ): Promise<TakenIn>;
  /** The work of a batch whose lines were taken in. */
  open(batch: StoredBatch): Promise<BatchWork>;
  remove(batch: StoredBatch): Promise<void>;
  /**
   * Runs the task while no other process goes through the step. Where another one has gone through it, the task does not run, and
   * the batch is what that one has made of it. The signal ends the wait.
   */
  alone(batch: StoredBatch, step: BatchStep, task: () => Promise<void>, signal?: AbortSignal): Promise<void>;
}
