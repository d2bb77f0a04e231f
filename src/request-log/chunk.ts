// Requests as they lie on disk: some hundred of them as one chunk, column by column. Columns compress to a fraction of what
// rows need, are written in one go, and are searched without an object per request. Of most requests the columns say all: one
// attempt that answered. The steps of the others are apart, because a search needs none.

import type { AttemptStep, ToldRecord } from "../stats/request-record.ts";
import { COMMON_FACTS, type ColumnName, type Common, NUMBERS, readNumber, type Value } from "./columns.ts";

/** Stands before the numbers. */
interface ChunkHeader {
  ids: readonly string[];
  requestIds: readonly string[];
  /** Facts that many requests share. */
  commons: readonly Common[];
  /** When the first of them came, in microseconds since 1970. */
  openedUs: number;
}

/** The place of what a request has in common with others, when it came behind the first, and NUMBERS. */
export const COMMON = 0;
export const CAME = 1;
export const FIRST_NUMBER = 2;
export const COLUMN_COUNT = FIRST_NUMBER + NUMBERS.length;

/** Of the requests whose columns do not say all, by their index. */
export type FurtherSteps = Record<number, Pick<ToldRecord, "steps" | "droppedSteps">>;

/** The steps of one request of a chunk. */
export function decodeSteps(body: Uint8Array, chunk: Chunk, index: number): FurtherSteps[number] {
  const number = (name: ColumnName) => chunk.value(name, index) as number | undefined;
  const text = (name: ColumnName) => chunk.value(name, index) as string | undefined;
  const atMs = milliseconds(number("stepAtUs"));
  if (atMs === undefined) {
    const further = body.length === 0 ? {} : (JSON.parse(decompress(body).toString()) as FurtherSteps);
    return further[index] ?? { steps: [], droppedSteps: 0 };
  }
  const step: AttemptStep = {
    kind: "attempt",
    atMs,
    backend: text("backend") as string,
    model: text("answeredBy") ?? (text("model") as string),
    strategy: text("strategy"),
    scoreMeans: text("scoreMeans"),
    candidates: undefined,
    firstByteMs: milliseconds(number("stepFirstByteUs")),
    durationMs: milliseconds(number("stepDurationUs")),
    status: number("stepStatus"),
    failure: undefined,
  };
  return { steps: [step], droppedSteps: 0 };
}

/** Makes objects only from the rows that are asked for. */
export class Chunk {
  readonly #header: ChunkHeader;
  readonly #columns: readonly (readonly number[])[];

  constructor(body: Uint8Array) {
    const { header, columns } = unpack(body);
    this.#header = header;
    this.#columns = columns;
  }

  get count(): number {
    return this.#header.ids.length;
  }

  cameUs(index: number): number {
    return this.#header.openedUs + (this.#columns[CAME]?.[index] as number);
  }

  value(name: ColumnName, index: number): Value {
    if (name === "id") return this.#header.ids[index];
    if (name === "requestId") return this.#header.requestIds[index];
    const place = PLACES.get(name);
    if (place !== undefined) return readNumber(this.#columns[FIRST_NUMBER + place]?.[index]);
    const common = this.#header.commons[this.#columns[COMMON]?.[index] as number];
    return common?.[name as keyof Common];
  }

  /** True if the column has the same value for every request. */
  isConstant(name: ColumnName): boolean {
    return name !== "id" && name !== "requestId" && !PLACES.has(name) && this.#header.commons.length === 1;
  }

  indexOf(id: string): number {
    return this.#header.ids.indexOf(id);
  }

  /** The record without its steps. */
  told(index: number): ToldRecord {
    const number = (name: ColumnName) => this.value(name, index) as number | undefined;
    const backend = this.value("backend", index) as string | undefined;
    const attempts = number("attempts") ?? 0;
    const only = backend === undefined || attempts === 0 ? [] : [backend];
    return {
      ...Object.fromEntries(COMMON_FACTS.map((name) => [name, this.value(name, index)])),
      id: this.value("id", index) as string,
      requestId: this.value("requestId", index) as string,
      userId: this.value("userId", index) as string | undefined,
      startedAtMs: this.cameUs(index) / 1000,
      durationMs: milliseconds(number("durationUs")) ?? 0,
      firstByteMs: milliseconds(number("firstByteUs")),
      backendMs: milliseconds(number("backendUs")),
      promptTokens: number("promptTokens"),
      completionTokens: number("completionTokens"),
      steps: [],
      droppedSteps: 0,
      outline: {
        attempts,
        wasSent: attempts > 0,
        backends: (this.value("backends", index) as readonly string[] | undefined) ?? only,
      },
    };
  }
}

function milliseconds(durationUs: number | undefined): number | undefined {
  return durationUs === undefined ? undefined : durationUs / 1000;
}

const PLACES: ReadonlyMap<string, number> = new Map(NUMBERS.map((name, place) => [name, place]));

/** Columns with numbers of more than 32 bits stand in the header, as lists. */
interface WrittenHeader extends ChunkHeader {
  large: Record<number, readonly number[]>;
}

/**
 * The length of the header, the header as JSON, the columns.
 * @param rows - of each request COLUMN_COUNT numbers
 */
export function pack(header: ChunkHeader, rows: Float64Array): Uint8Array {
  const count = header.ids.length;
  const large: WrittenHeader["large"] = {};
  const columns = new Uint8Array(COLUMN_COUNT * count * NUMBER_BYTES);
  for (let place = 0; place < COLUMN_COUNT; place++) {
    if (writeColumn(rows, place, count, columns)) continue;
    large[place] = Array.from({ length: count }, (_, index) => rows[index * COLUMN_COUNT + place] as number);
  }
  const text = Buffer.from(JSON.stringify({ ...header, large } satisfies WrittenHeader));
  const length = new Uint8Array(Uint32Array.of(text.length).buffer);
  return compress(Buffer.concat([length, text, columns]));
}

function unpack(body: Uint8Array): { header: ChunkHeader; columns: readonly (readonly number[])[] } {
  const bytes = decompress(body);
  const end = LENGTH_BYTES + bytes.readUInt32LE();
  const { large, ...header } = JSON.parse(bytes.toString("utf8", LENGTH_BYTES, end)) as WrittenHeader;
  const count = header.ids.length;
  const columns = Array.from({ length: COLUMN_COUNT }, (_, place) => {
    return large[place] ?? readColumn(bytes, end + place * count * NUMBER_BYTES, count);
  });
  return { header, columns };
}

const LENGTH_BYTES = 4;
const NUMBER_BYTES = 4;

/** The lowest bytes of all first, because higher ones are alike and compress well. False: a number has more than 32 bits. */
function writeColumn(rows: Float64Array, place: number, count: number, into: Uint8Array): boolean {
  let to = place * count * NUMBER_BYTES;
  for (let from = place; from < count * COLUMN_COUNT; from += COLUMN_COUNT) {
    const value = rows[from] as number;
    const bits = value | 0;
    if (bits !== value) return false;
    into[to] = bits;
    into[to + count] = bits >>> 8;
    into[to + 2 * count] = bits >>> 16;
    into[to + 3 * count] = bits >>> 24;
    to++;
  }
  return true;
}

function readColumn(bytes: Uint8Array, from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const byte = (nth: number) => (bytes[from + nth * count + index] as number) << (8 * nth);
    return byte(0) | byte(1) | byte(2) | byte(3);
  });
}

/** The least that zstd can do: more takes longer than it saves. */
const LEVEL = 1;

export function compress(bytes: Uint8Array): Uint8Array {
  return Bun.zstdCompressSync(bytes, { level: LEVEL });
}

function decompress(body: Uint8Array): Buffer {
  return Bun.zstdDecompressSync(body);
}
