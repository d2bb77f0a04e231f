// Takes the input of a batch into the batch's own folder, line by line: the bodies of lines that can be asked, an index of them,
// and the results of lines that cannot.

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isObject, type JsonObject } from "../lib/json.ts";
import { memberBytes } from "../lib/json-members.ts";
import { parseInPieces } from "../lib/json-pieces.ts";
import { type Line, LineReader } from "../lib/line-reader.ts";
import { otherWork } from "../lib/other-work.ts";
import { syncFolder } from "../lib/sync-folder.ts";
import type { BatchFormat } from "./batch-format.ts";
import { type BatchFault, FaultyInput } from "./batch-store.ts";
import type { TakenIn } from "./batch-work.ts";
import { BufferedFile } from "./buffered-file.ts";
import { BODIES_NAME, INDEX_NAME, type IndexEntry, LOG_NAME } from "./local-work.ts";
import { faultyRecord } from "./records.ts";

/** As the largest body that any of the endpoints takes, and the rest of its line. */
const MAX_LINE_BYTES = 65 * 1024 * 1024;
/** Faults that the batch names itself; its error file names all. */
const MAX_FAULTS = 100;
/** Longer lines are parsed in pieces, so that requests go on beside them. */
const MAX_AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const LINE_FEED = encoder.encode("\n");

interface IntakeParts {
  format: BatchFormat;
  endpoint: string;
  folder: string;
  maxLines: number;
  signal?: AbortSignal;
}

/** The input itself could not be read; nothing is wrong with the disk. */
export class UnreadableInput extends Error {}

/**
 * What an earlier attempt has left gives way. Where no line can be asked, the batch has failed. Throws UnreadableInput, the
 * reason of the signal, FaultyInput, and errors of the disk.
 */
export async function takeIn(input: AsyncIterable<Uint8Array>, parts: IntakeParts): Promise<TakenIn> {
  const { folder } = parts;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const files: BufferedFile[] = [];
  try {
    for (const name of [BODIES_NAME, INDEX_NAME, LOG_NAME]) files.push(await BufferedFile.create(join(folder, name)));
    const [bodies, index, log] = files as [BufferedFile, BufferedFile, BufferedFile];
    const intake = new LineIntake(parts, bodies, index, log);
    const lines = new LineReader(MAX_LINE_BYTES);
    for await (const bytes of readable(input)) {
      parts.signal?.throwIfAborted();
      for (const line of lines.read(bytes)) if (!(await intake.take(line, lines.number))) return intake.tooMany();
    }
    const last = lines.end();
    if (last !== undefined && !(await intake.take(last, lines.number))) return intake.tooMany();
    for (const file of files) await file.finish();
    await syncFolder(folder);
    return intake.taken();
  } finally {
    for (const file of files) await file.close();
  }
}

class LineIntake {
  readonly #parts: IntakeParts;
  readonly #bodies: BufferedFile;
  readonly #index: BufferedFile;
  readonly #log: BufferedFile;
  readonly #customIds = new Set<string>();
  readonly #faults: BatchFault[] = [];
  #faulty = 0;
  #model: string | undefined;

  constructor(parts: IntakeParts, bodies: BufferedFile, index: BufferedFile, log: BufferedFile) {
    this.#parts = parts;
    this.#bodies = bodies;
    this.#index = index;
    this.#log = log;
  }

  get #total(): number {
    return this.#customIds.size + this.#faulty;
  }

  /** False where there are more lines than there may be. */
  async take(line: Line, number: number): Promise<boolean> {
    if (this.#total >= this.#parts.maxLines) return false;
    const fault = await this.#add(line);
    if (fault === undefined) return true;
    const told = { ...fault, line: number };
    const { faulty } = this.#parts.format;
    if (faulty === undefined) throw new FaultyInput(told);
    this.#faulty++;
    if (this.#faults.length < MAX_FAULTS) this.#faults.push(told);
    await this.#log.append(encoder.encode(faultyRecord(faulty(told))));
    return true;
  }

  taken(): TakenIn {
    const faults = this.#total === 0 ? [{ code: "empty_file", message: "The input file is empty." }] : this.#faults;
    return { total: this.#total, faulty: this.#faulty, faults, model: this.#model };
  }

  tooMany(): TakenIn {
    const message = `There are more than ${this.#parts.maxLines} requests (batches.max_lines).`;
    return { total: 0, faulty: 0, faults: [{ code: "too_many_tasks", message }], model: undefined };
  }

  /** The fault of a line that cannot be asked. */
  async #add(line: Line): Promise<BatchFault | undefined> {
    if (line === "too-long") {
      return { code: "line_too_long", message: `This line has more than ${MAX_LINE_BYTES} bytes.` };
    }
    const value = await parseLine(line);
    if (value === undefined) {
      return { code: "invalid_json_line", message: "This line is not parseable as valid JSON." };
    }
    const { format, endpoint } = this.#parts;
    const read = format.readLine(value, endpoint);
    if ("code" in read) return read;
    const { customId, bodyMember, model } = read;
    if (this.#customIds.has(customId)) {
      const message = `custom_id ${JSON.stringify(customId)} stands in an earlier line already; it must be unique.`;
      return { code: "duplicate_custom_id", message, param: "custom_id" };
    }
    this.#customIds.add(customId);
    this.#model ??= model;
    const body = memberBytes(line, bodyMember) as Uint8Array;
    const entry: IndexEntry = [this.#bodies.size, body.byteLength, customId];
    await this.#index.append(encoder.encode(`${JSON.stringify(entry)}\n`));
    // A copy: the reader of lines uses its memory again.
    await this.#bodies.append(Buffer.concat([body, LINE_FEED]));
    return undefined;
  }
}

async function parseLine(line: Uint8Array): Promise<JsonObject | undefined> {
  try {
    const value: unknown =
      line.byteLength <= MAX_AT_ONCE_BYTES
        ? JSON.parse(strictDecoder.decode(line))
        : await parseInPieces(line, {
            pieceBytes: PIECE_BYTES,
            pause: otherWork,
          });
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // its fault is told by its number
  }
}

async function* readable(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const bytes of input) yield bytes;
  } catch (cause) {
    throw new UnreadableInput("the input cannot be read", { cause });
  }
}
