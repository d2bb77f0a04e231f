// The work of a batch in a folder of this machine: the bodies of its lines, an index of them, and the log of what was done.

import { join } from "node:path";
import { LineReader } from "../lib/line-reader.ts";
import { type BatchLine, type LineResult, type LineSums, NO_SUMS } from "./batch-store.ts";
import type { BatchWork } from "./batch-work.ts";
import type { Patience } from "./patience.ts";
import { begunRecord, resultRecord } from "./records.ts";
import { ResultLog, readLog } from "./result-log.ts";

export const BODIES_NAME = "bodies";
export const INDEX_NAME = "index";
export const LOG_NAME = "log";

/** A custom_id of the largest length, however it is escaped, and two numbers. */
const MAX_ENTRY_BYTES = 16 * 1024;

const BEGUN = 1;
const DONE = 2;

/** Where the body of a line lies. */
export type IndexEntry = readonly [offset: number, length: number, customId: string];

/** @param lines - at least as many as there are in the index */
export async function openLocalWork(folder: string, lines: number, patience: Patience): Promise<BatchWork> {
  const logPath = join(folder, LOG_NAME);
  const states = new Uint8Array(lines);
  const done = { completed: 0, failed: 0, sums: { ...NO_SUMS } };
  let size = 0;

  function count({ isError }: LineResult, sums: LineSums): void {
    if (isError) done.failed++;
    else done.completed++;
    addSums(done.sums, sums);
  }

  for await (const { record, end } of readLog(logPath)) {
    size = end;
    if (record.kind === "begun") states[record.position] = BEGUN;
    else count(record.result, record.kind === "result" ? record.sums : NO_SUMS);
    if (record.kind === "result") states[record.position] = DONE;
  }
  const log = await ResultLog.open(logPath, size, patience);
  const index = readIndex(folder);

  async function next(): Promise<BatchLine | undefined> {
    for (;;) {
      const { value } = await index.next();
      if (value === undefined) return undefined;
      const { position, entry } = value;
      const state = states[position];
      if (state === DONE) continue;
      if (state !== BEGUN) await log.add(begunRecord(position));
      const [offset, length, customId] = entry;
      const body = Bun.file(join(folder, BODIES_NAME)).slice(offset, offset + length, "application/json");
      return { position, customId, body, isAskedAgain: state === BEGUN };
    }
  }

  return {
    next,
    async settle({ position }, result, sums) {
      await log.add(resultRecord(position, result, sums));
      states[position] = DONE;
      count(result, sums);
    },
    done,
    async *results() {
      for await (const { record } of readLog(logPath)) if (record.kind !== "begun") yield record.result;
    },
    async *unsettled() {
      for await (const { position, entry } of readIndex(folder)) if (states[position] !== DONE) yield entry[2];
    },
    close: () => log.close(),
  };
}

async function* readIndex(folder: string): AsyncGenerator<{ position: number; entry: IndexEntry }, undefined> {
  const lines = new LineReader(MAX_ENTRY_BYTES);
  let position = 0;
  for await (const bytes of Bun.file(join(folder, INDEX_NAME)).stream()) {
    for (const line of lines.read(bytes)) {
      if (line === "too-long") throw new Error("the index of the batch is damaged");
      yield { position: position++, entry: JSON.parse(Buffer.from(line).toString()) as IndexEntry };
    }
  }
  return undefined;
}

function addSums(to: LineSums, from: LineSums): void {
  to.input += from.input;
  to.cachedInput += from.cachedInput;
  to.output += from.output;
  to.reasoning += from.reasoning;
  to.cost += from.cost;
}
