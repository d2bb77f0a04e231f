// The work of a batch that several gateways share. A gateway claims a segment, asks its lines, and keeps each result in Redis; the
// results of a whole segment go into one object of the bucket. What a claim that is over still brings is dropped: another gateway has
// the lines.

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LineReader } from "../../lib/line-reader.ts";
import { BadAnswer } from "../../redis/fault.ts";
import { type BatchLine, type LineResult, type LineSums, NO_SUMS } from "../batch-store.ts";
import { batchTrouble } from "../batch-trouble.ts";
import type { BatchWork } from "../batch-work.ts";
import { BufferedFile } from "../buffered-file.ts";
import type { Patience } from "../patience.ts";
import { type LogRecord, readRecord, resultRecord } from "../records.ts";
import { type BatchObjects, dataOf, resultsName, resultsOf } from "./objects.ts";
import { BEGIN, CLAIM, COMPLETE, RELEASE, RENEW, SETTLE } from "./scripts.ts";
import { type LineSegment, readSegment } from "./segments.ts";
import type { BatchServer } from "./server.ts";
import { type BatchCounts, LEASE_MS, toCounts } from "./shared-rows.ts";

/** Answers of backends are bounded far below. */
const MAX_RECORD_BYTES = 1024 ** 3;
/** Results that are read from Redis at once. */
const READ_AT_ONCE = 8;

const encoder = new TextEncoder();

interface SharedWorkParts {
  id: string;
  /** The folder of the segments in the bucket. */
  segments: { folder: string; count: number };
  /** For segments while their lines are asked. */
  folder: string;
  counts: BatchCounts;
  server: BatchServer;
  objects: BatchObjects;
  patience: Patience;
  closed(): void;
}

/** A segment that this gateway has claimed. */
interface SegmentClaim extends LineSegment {
  number: number;
  token: string;
  path: string;
  /** Positions that were begun before, and those that have a result. */
  begun: Set<number>;
  done: Set<number>;
  /** Every line may have been begun: the server has lost what it knew. */
  isLost: boolean;
  /** Index of the next line to be handed out. */
  next: number;
}

export class SharedWork implements BatchWork {
  readonly done: BatchCounts;
  readonly #parts: SharedWorkParts;
  readonly #claims = new Map<number, SegmentClaim>();
  /** Of the bodies of lines that were handed out. A gateway may lose a claim and have another one of the same segment later. */
  readonly #claimsOfBodies = new WeakMap<Blob, SegmentClaim>();
  #claiming: Promise<"claimed" | "none" | "done"> | undefined;

  constructor(parts: SharedWorkParts) {
    this.#parts = parts;
    this.done = parts.counts;
  }

  async next(): Promise<BatchLine | "later" | undefined> {
    for (;;) {
      const found = this.#take();
      if (found !== undefined) {
        const { claim, index } = found;
        const begun = await this.#begin(claim, index);
        if (begun === "lost") continue;
        // The claim stays: lines of it that are under way may still bring their results.
        if (begun === "closing") return "later";
        const line = lineOf(claim, index);
        this.#claimsOfBodies.set(line.body, claim);
        return line;
      }
      this.#claiming ??= this.#claim().finally(() => {
        this.#claiming = undefined;
      });
      const outcome = await this.#claiming;
      if (outcome === "none") return "later";
      if (outcome === "done") return undefined;
    }
  }

  holds(line: BatchLine): boolean {
    return this.#claimOf(line) !== undefined;
  }

  async settle(line: BatchLine, result: LineResult, sums: LineSums): Promise<void> {
    const claim = this.#claimOf(line);
    if (claim === undefined) return;
    if (!(await this.#keep(claim, line.position, result, sums))) return;
    if (claim.done.size === claim.entries.length) await this.#complete(claim);
  }

  async *results(): AsyncIterable<LineResult> {
    const { id, segments } = this.#parts;
    yield* resultsIn(await this.#object(`${dataOf(id)}faulty`));
    for (let number = 0; number < segments.count; number++) {
      const name = await this.#doneUnder(number);
      if (name === undefined) yield* this.#unfinished(number);
      else yield* resultsIn(await this.#object(resultsName(id, number, name)));
    }
  }

  async *unsettled(): AsyncIterable<string> {
    const { segments } = this.#parts;
    for (let number = 0; number < segments.count; number++) {
      if ((await this.#doneUnder(number)) !== undefined) continue;
      const path = await this.#fetch(number);
      const { first, entries } = await readSegment(path);
      await rm(path, { force: true });
      const { done } = await this.#known(number);
      for (const [index, [, , customId]] of entries.entries()) if (!done.has(first + index)) yield customId;
    }
  }

  /** Lengthens its claims; those that are over are dropped. Rejects while the server is away. */
  async renew(): Promise<void> {
    const claims = [...this.#claims.values()];
    if (claims.length === 0) return;
    const pairs = claims.flatMap(({ number, token }) => [number, token]);
    const lost = await this.#parts.server.run(RENEW, this.#parts.id, LEASE_MS, ...pairs);
    if (!Array.isArray(lost)) throw new BadAnswer();
    for (const claim of claims) if (lost.includes(String(claim.number))) this.#drop(claim);
  }

  /** Gives its claims back. */
  async release(): Promise<void> {
    const { server, id } = this.#parts;
    for (const claim of [...this.#claims.values()]) {
      this.#drop(claim);
      await server.run(RELEASE, id, claim.number, claim.token);
    }
  }

  async close(): Promise<void> {
    this.#parts.closed();
    await this.release();
  }

  /** The next line that has no result, of any segment. */
  #take(): { claim: SegmentClaim; index: number } | undefined {
    for (const claim of this.#claims.values()) {
      while (claim.next < claim.entries.length) {
        const index = claim.next++;
        if (!claim.done.has(claim.first + index)) return { claim, index };
      }
    }
    return undefined;
  }

  async #begin(claim: SegmentClaim, index: number): Promise<"begun" | "lost" | "closing"> {
    const { server, id, patience } = this.#parts;
    const position = claim.first + index;
    const answer = await patience.until(() => server.run(BEGIN, id, claim.number, claim.token, position));
    if (answer === 1) return "begun";
    if (answer === -1) return "closing";
    this.#drop(claim);
    return "lost";
  }

  async #claim(): Promise<"claimed" | "none" | "done"> {
    const { server, id, patience } = this.#parts;
    const token = crypto.randomUUID();
    const answer = await patience.until(() => server.run(CLAIM, id, token, LEASE_MS));
    if (!Array.isArray(answer)) throw new BadAnswer();
    const [outcome, text] = answer as [string, string];
    if (outcome !== "claimed") return outcome === "done" ? "done" : "none";
    const number = Number(text);
    const path = await patience.until(() => this.#fetch(number));
    const claim: SegmentClaim = {
      ...(await readSegment(path)),
      ...(await patience.until(() => this.#known(number))),
      ...{ number, token, path, next: 0 },
    };
    this.#claims.set(number, claim);
    await this.#adoptResults(claim);
    if (claim.done.size === claim.entries.length) await this.#complete(claim);
    return "claimed";
  }

  /** A gateway may have put the results into the bucket, and then been gone, or the server has lost what it said of them. */
  async #adoptResults(claim: SegmentClaim): Promise<void> {
    const { id, objects, patience } = this.#parts;
    const name = await patience.until(() => firstOf(objects.names(`${resultsOf(id)}${claim.number}-`)));
    if (name === undefined) return;
    await patience.until(async () => {
      for await (const record of recordsIn(await this.#object(resultsName(id, claim.number, name)))) {
        if (record.kind !== "result") continue;
        if (!(await this.#keep(claim, record.position, record.result, record.sums))) return;
      }
    });
  }

  /** False where the claim is over. */
  async #keep(claim: SegmentClaim, position: number, result: LineResult, sums: LineSums): Promise<boolean> {
    const { server, id, patience } = this.#parts;
    const outcome = result.isError ? "failed" : "completed";
    const numbers = [sums.input, sums.cachedInput, sums.output, sums.reasoning, sums.cost];
    const given = [claim.number, claim.token, position, resultRecord(position, result, sums), outcome, ...numbers];
    const answer = await patience.until(() => server.run(SETTLE, id, ...given));
    if (answer === null) {
      this.#drop(claim);
      return false;
    }
    claim.done.add(position);
    this.take(toCounts(answer));
    return true;
  }

  /** Counts as they are in Redis; answers may come in another order than they were made. */
  take(counts: BatchCounts): void {
    const { done } = this;
    if (counts.completed + counts.failed >= done.completed + done.failed) Object.assign(done, counts);
  }

  async #complete(claim: SegmentClaim): Promise<void> {
    const { server, objects, id, patience } = this.#parts;
    const path = `${claim.path}-results`;
    const isWhole = await patience.until(() => this.#collect(claim, path));
    if (isWhole) {
      await patience.until(() => objects.putFile(resultsName(id, claim.number, claim.token), path));
      await patience.until(() => server.run(COMPLETE, id, claim.number, claim.token, claim.token));
    }
    await rm(path, { force: true });
    this.#drop(claim);
  }

  /** False where the server no longer has the results. */
  async #collect({ number, first, entries }: SegmentClaim, path: string): Promise<boolean> {
    const file = await BufferedFile.create(path);
    try {
      for (let index = 0; index < entries.length; index += READ_AT_ONCE) {
        const positions = entries.slice(index, index + READ_AT_ONCE).map((_, offset) => first + index + offset);
        for (const record of await this.#recordsOf(number, positions)) {
          if (record === null) return false;
          await file.append(encoder.encode(record));
        }
      }
      await file.finish();
      return true;
    } finally {
      await file.close();
    }
  }

  #recordsOf(number: number, positions: readonly number[]): Promise<(string | null)[]> {
    const { server, id } = this.#parts;
    return server.fields(
      "segment",
      `${id}:${number}`,
      positions.map((position) => `r${position}`),
    );
  }

  /** What Redis knows of the lines of a segment. */
  async #known(number: number): Promise<Pick<SegmentClaim, "begun" | "done" | "isLost">> {
    const names = await this.#parts.server.fieldNames("segment", `${this.#parts.id}:${number}`);
    const positions = (kind: string) =>
      new Set(
        names
          .filter((name) => name.startsWith(kind) && /^\d+$/.test(name.slice(1)))
          .map((name) => Number(name.slice(1))),
      );
    return { begun: positions("b"), done: positions("r"), isLost: names.includes("lost") };
  }

  async *#unfinished(number: number): AsyncGenerator<LineResult, void> {
    const { done } = await this.#known(number);
    const positions = [...done].toSorted((one, other) => one - other);
    for (let index = 0; index < positions.length; index += READ_AT_ONCE) {
      for (const text of await this.#recordsOf(number, positions.slice(index, index + READ_AT_ONCE))) {
        const record = text === null ? undefined : readRecord(encoder.encode(text.trimEnd()));
        if (record?.kind === "result") yield record.result;
      }
    }
  }

  async #doneUnder(number: number): Promise<string | undefined> {
    const [name] = await this.#parts.server.fields("done", this.#parts.id, [String(number)]);
    return name ?? undefined;
  }

  /** The path of a copy of a segment. */
  async #fetch(number: number): Promise<string> {
    const { segments, folder } = this.#parts;
    const path = join(folder, `${number}-${crypto.randomUUID()}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const segment = await this.#object(`${segments.folder}${number}`);
    const length = Number(segment.headers.get("content-length") ?? Number.NaN);
    const written = await Bun.write(path, segment).catch((error) => {
      throw batchTrouble(error);
    });
    if (Number.isFinite(length) && written !== length) throw batchTrouble(new Error("a segment has come in part"));
    return path;
  }

  async #object(name: string): Promise<Response> {
    const found = await this.#parts.objects.get(name);
    if (found === undefined) throw new Error("an object of the batch is gone from the bucket");
    return found;
  }

  /** Undefined where it is over. */
  #claimOf({ body }: BatchLine): SegmentClaim | undefined {
    const claim = this.#claimsOfBodies.get(body);
    return claim !== undefined && this.#claims.get(claim.number) === claim ? claim : undefined;
  }

  #drop(claim: SegmentClaim): void {
    if (this.#claims.get(claim.number) === claim) this.#claims.delete(claim.number);
    void rm(claim.path, { force: true }).catch(() => {}); // the next start tries again
  }
}

function lineOf(claim: SegmentClaim, index: number): BatchLine {
  const { first, headBytes, path, begun, isLost } = claim;
  const [offset, length, customId] = claim.entries[index] as LineSegment["entries"][number];
  const start = headBytes + offset;
  const body = Bun.file(path).slice(start, start + length, "application/json");
  const position = first + index;
  return { position, customId, body, isAskedAgain: isLost || begun.has(position) };
}

async function firstOf(names: AsyncIterable<string>): Promise<string | undefined> {
  for await (const name of names) return name;
  return undefined;
}

/** The records of an object, each with its result. */
async function* recordsIn({ body }: Response): AsyncGenerator<Extract<LogRecord, { result: LineResult }>, void> {
  const lines = new LineReader(MAX_RECORD_BYTES);
  for await (const bytes of piecesOf(body)) {
    for (const line of lines.read(bytes)) {
      const record = line === "too-long" ? undefined : readRecord(line);
      if (record === undefined || !("result" in record)) throw new Error("results of the batch are damaged");
      yield record;
    }
  }
}

/** A stream that breaks off can be read again. */
async function* piecesOf(body: Response["body"]): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body ?? [];
  } catch (error) {
    throw batchTrouble(error);
  }
}

async function* resultsIn(response: Response): AsyncGenerator<LineResult, void> {
  for await (const { result } of recordsIn(response)) yield result;
}

/** What all results of an object have used, and how many there are. */
export async function countIn(response: Response): Promise<BatchCounts> {
  const counts: BatchCounts = { completed: 0, failed: 0, sums: { ...NO_SUMS } };
  for await (const record of recordsIn(response)) {
    if (record.result.isError) counts.failed++;
    else counts.completed++;
    if (record.kind !== "result") continue;
    for (const name of Object.keys(counts.sums) as (keyof LineSums)[]) counts.sums[name] += record.sums[name];
  }
  return counts;
}
