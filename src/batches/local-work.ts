// The work of a batch in a folder of this machine: the bodies of its lines, an index of them, and the log of what was done.

import { join } from "node:path";
import { lazily } from "../lib/lazily.ts";
import { LineReader } from "../lib/line-reader.ts";
import { type BatchLine, type LineResult, type LineSums, NO_SUMS } from "./batch-store.ts";
import type { BatchWork, HeldLines } from "./batch-work.ts";
import type { Patience } from "./patience.ts";
import { begunRecord, resultRecord, unsentRecord } from "./records.ts";
import { ResultLog, readLog } from "./result-log.ts";

export const BODIES_NAME = "bodies";
export const INDEX_NAME = "index";
export const LOG_NAME = "log";

/** A custom_id of the largest length, however it is escaped, and two numbers. */
const MAX_ENTRY_BYTES = 16 * 1024;
const LINE_FEED = 10;

/** What is known of a line, as bits. Begun: by an earlier process, so that it may have been asked already. */
const BEGUN = 1;
const DONE = 2;
const HELD = 4;

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
    else if (record.kind === "unsent") states[record.position] = 0;
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
      if (has(position, DONE | HELD)) continue;
      if (!has(position, BEGUN)) await log.add(begunRecord(position));
      return lineOf(position, entry);
    }
  }

  const has = (position: number, bits: number) => ((states[position] ?? 0) & bits) !== 0;

  function lineOf(position: number, [offset, length, customId]: IndexEntry): BatchLine {
    const body = Bun.file(join(folder, BODIES_NAME)).slice(offset, offset + length, "application/json");
    return { position, customId, body, isAskedAgain: has(position, BEGUN) };
  }

  const entryAt = entriesOf(folder, lines);
  const held: HeldLines = {
    folder,
    hold(position) {
      if (position >= lines || has(position, DONE)) return false;
      states[position] = (states[position] ?? 0) | HELD;
      return true;
    },
    isDone: (position) => has(position, DONE),
    async notSent({ position, isAskedAgain }) {
      if (!isAskedAgain) await log.add(unsentRecord(position));
    },
    line: async (position) => lineOf(position, await entryAt(position)),
    async begin(position) {
      if (!has(position, BEGUN)) await log.add(begunRecord(position));
      return await held.line(position);
    },
  };

  return {
    next,
    async settle({ position }, result, sums) {
      await log.add(resultRecord(position, result, sums));
      states[position] = (states[position] ?? 0) | DONE;
      count(result, sums);
    },
    done,
    async *results() {
      for await (const { record } of readLog(logPath)) if ("result" in record) yield record.result;
    },
    async *unsettled() {
      for await (const { position, entry } of readIndex(folder)) if (!has(position, DONE)) yield entry[2];
    },
    held,
    close: () => log.close(),
  };
}

/** Where the bodies of lines lie that were taken into a folder. */
export async function* readIndex(folder: string): AsyncGenerator<{ position: number; entry: IndexEntry }, undefined> {
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

/** Entries of the index in any order; where each begins is found once. */
function entriesOf(folder: string, lines: number): (position: number) => Promise<IndexEntry> {
  const index = Bun.file(join(folder, INDEX_NAME));
  const findStarts = lazily(async () => {
    const starts = new Float64Array(lines + 1);
    let [next, place] = [1, 0];
    for await (const bytes of index.stream()) {
      for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1))
        starts[next++] = place + at + 1;
      place += bytes.length;
    }
    return starts;
  });
  return async (position) => {
    const starts = await findStarts();
    return JSON.parse(await index.slice(starts[position], starts[position + 1]).text()) as IndexEntry;
  };
}

function addSums(to: LineSums, from: LineSums): void {
  to.input += from.input;
  to.cachedInput += from.cachedInput;
  to.output += from.output;
  to.reasoning += from.reasoning;
  to.cost += from.cost;
}
