// The lines of one batch that its vendors answer by batches of theirs: collects them, follows the batches, and gives back what no
// vendor has answered, to be asked one by one.

import { reasonOf } from "../../files/storage-trouble.ts";
import { abortableDelay } from "../../lib/abortable-delay.ts";
import type { ByteAllowance } from "../../lib/byte-allowance.ts";
import { randomLetters } from "../../lib/random-letters.ts";
import type { BatchLine, StoredBatch } from "../batch-store.ts";
import type { HeldLines } from "../batch-work.ts";
import type { Patience } from "../patience.ts";
import {
  createGroupFiles,
  type GroupFiles,
  type LineFile,
  readSpooled,
  type StoredGroup,
  spooled,
} from "./group-files.ts";
import { type VendorBatchApi, VendorRefusal, VendorTrouble } from "./vendor-api.ts";
import type { KeptBudget, VendorAddress, VendorAnswer, VendorRequest, VendorTurn } from "./vendor-turn.ts";

/** Of a group, below the limits of all vendors. Its bytes are in memory while it is sent. */
const MAX_GROUP_LINES = 50_000;
const MAX_GROUP_BYTES = 16 * 1024 * 1024;
/** What vendors' formats add to a line at most: its id, and the names of members. */
const FRAME_BYTES = 160;
/** A longer line is asked by itself. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** A group is sent this long after its first line, while others of the batch are still to be asked. */
const COLLECTING_MS = 60_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
const PAUSE_GROWTH = 1.5;
const LONGEST_RETRY_AFTER_MS = 300_000;
/** Answers of a vendor that are read at the same time. */
const READ_AT_ONCE = 16;
/** What a line takes in memory whose budget is kept. */
export const KEPT_BYTES = 512;
const FAREWELL_TRIES = 3;
/** Batches of vendors that a batch names, the latest. */
const MAX_SHOWN = 100;
const NAME_LENGTH = 6;

interface VendorDeskParts {
  batch: StoredBatch;
  held: HeldLines;
  api: VendorBatchApi;
  /** batches.vendor: whether it has this backend. */
  mayUse(backend: string): boolean;
  /** For budgets that are kept, of all batches together. */
  memory: Pick<ByteAllowance, "take" | "giveBack">;
  wallTime(): number;
  patience: Patience;
  /** Takes the answer in as the line's; false: it could not be read now. */
  answered(line: BatchLine, turn: VendorTurn): Promise<boolean>;
  /** Default: a minute. */
  collectingMs?: number;
  /** Lines can be asked, or none is left here. */
  changed(): void;
  log: Record<"info" | "warn", (fields: object, message: string) => void>;
}

interface OpenGroup {
  number: number;
  facts: StoredGroup;
  spool: LineFile;
  /** Notes that lines were not sent, under way. */
  notes: Promise<void>[];
  timer: Timer;
}

export class VendorDesk {
  readonly #parts: VendorDeskParts;
  readonly #files: GroupFiles;
  readonly #ended = new AbortController();
  /** Ends also what is left to be said to vendors. */
  readonly #stopped = new AbortController();
  /** The number of the group that has a line; 0: none. */
  readonly #groupOf: Uint32Array;
  /** Lines that no vendor is to get again. */
  readonly #isDirect: Uint8Array;
  readonly #collecting = new Map<string, OpenGroup>();
  readonly #following = new Map<number, StoredGroup>();
  readonly #refusing = new Set<string>();
  readonly #kept = new Map<number, KeptBudget>();
  readonly #farewells = new Set<Promise<unknown>>();
  /** Lines to be asked one by one. */
  #released: number[] = [];
  #groups = 0;
  #held = 0;
  /** Lines are written one after the other. */
  #lastWrite: Promise<unknown> = Promise.resolve();

  /** With the groups of an earlier process. */
  static async open(parts: VendorDeskParts): Promise<VendorDesk> {
    const desk = new VendorDesk(parts);
    for (const group of await desk.#files.stored()) await desk.#takeOver(group);
    return desk;
  }

  private constructor(parts: VendorDeskParts) {
    this.#parts = parts;
    this.#files = createGroupFiles(parts.held.folder);
    this.#groupOf = new Uint32Array(parts.batch.total);
    this.#isDirect = new Uint8Array(parts.batch.total);
  }

  /** Goes on with these groups. */
  start(): void {
    for (const [number, group] of this.#following) void this.#follow(number, group, Promise.resolve());
  }

  /** Vendors have lines, or lines wait to be asked one by one. */
  get isBusy(): boolean {
    return this.#held > 0 || this.#following.size > 0 || this.#released.length > 0;
  }

  get hasReleased(): boolean {
    return this.#released.length > 0;
  }

  /** The way of a line; undefined: no vendor's batch can have it. */
  turnOf(line: BatchLine): VendorTurn | undefined {
    if (this.#isDirect[line.position] === 1 || this.#ended.signal.aborted) return undefined;
    const turn: VendorTurn = {
      answer: undefined,
      isHandedOver: false,
      isUsed: false,
      offer: async (request) => {
        turn.isHandedOver = !turn.isHandedOver && (await this.#take(line, request));
        return turn.isHandedOver;
      },
    };
    return turn;
  }

  /** No vendor gets the line again. */
  askDirectly({ position }: BatchLine): void {
    this.#isDirect[position] = 1;
  }

  /** A line that a vendor has not answered. */
  async nextReleased(): Promise<BatchLine | undefined> {
    const position = this.#released.pop();
    return position === undefined ? undefined : await this.#parts.held.begin(position);
  }

  /** No further line comes for now. */
  flush(): void {
    for (const group of this.#collecting.values()) this.#seal(group);
  }

  /** What was cancelled or has expired is cancelled at the vendors; what stops goes on in the next process. */
  end(reason: "expired" | "cancelled" | "stopped"): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(reason);
    for (const { timer, spool } of this.#collecting.values()) {
      clearTimeout(timer);
      void this.#lastWrite.then(() => spool.close()).catch(() => {}); // collected again by the next process, or not needed
    }
    this.#collecting.clear();
    for (const position of this.#kept.keys()) this.#takeKept(position)?.release();
    if (reason === "stopped") return;
    for (const group of this.#following.values()) if (group.id !== undefined) this.#cancel(group, group.id);
  }

  /** Resolves when vendors were told everything. */
  async close(): Promise<void> {
    await Promise.all(this.#farewells);
  }

  /** Nothing more is said to vendors. */
  stop(): void {
    this.end("stopped");
    this.#stopped.abort();
  }

  async #take(line: BatchLine, request: VendorRequest): Promise<boolean> {
    const { mayUse, memory, patience } = this.#parts;
    const { backend, body, kept } = request;
    if (!mayUse(backend) || this.#refusing.has(backend) || body.length > MAX_BODY_BYTES) return false;
    if (kept !== undefined && !memory.take(KEPT_BYTES)) return false;
    try {
      const write = this.#lastWrite.then(() => patience.until(() => this.#collect(line, request)));
      this.#lastWrite = write.catch(() => {});
      await (await write).noted;
      this.#ended.signal.throwIfAborted();
    } catch (error) {
      if (kept !== undefined) memory.giveBack(KEPT_BYTES);
      throw error;
    }
    if (kept !== undefined) this.#kept.set(line.position, kept);
    return true;
  }

  /** Resolves when the line is written; the note that it was not sent may take longer. */
  async #collect(line: BatchLine, request: VendorRequest): Promise<{ noted: Promise<void> }> {
    this.#ended.signal.throwIfAborted();
    const bytes = spooled(line.position, request.body);
    const group = await this.#groupFor(request, bytes.length);
    await group.spool.append(bytes);
    group.facts.lines++;
    this.#groupOf[line.position] = group.number;
    // Shown when a crash no longer makes it a line that may have been sent.
    const noted = this.#parts.held.notSent(line).then(() => this.#showHeld(1));
    group.notes.push(noted.catch(() => {})); // only at the end of everything
    return { noted };
  }

  async #groupFor(request: VendorRequest, bytes: number): Promise<OpenGroup> {
    const { backend, model, path, headers, arms } = request;
    const address: VendorAddress = { backend, model, path, headers, arms };
    const key = JSON.stringify(address);
    const known = this.#collecting.get(key);
    const isFull =
      known !== undefined &&
      (known.facts.lines >= MAX_GROUP_LINES ||
        known.spool.size + bytes + (known.facts.lines + 1) * FRAME_BYTES > MAX_GROUP_BYTES);
    if (known !== undefined && !isFull) return known;
    if (known !== undefined) this.#seal(known);
    const name = `${this.#parts.batch.id}-${randomLetters(NAME_LENGTH)}`;
    const facts: StoredGroup = { ...address, name, lines: 0, state: "collected", sinceMs: 0 };
    const spool = await this.#files.create(name);
    const timer = setTimeout(() => this.#seal(group), this.#parts.collectingMs ?? COLLECTING_MS);
    timer.unref();
    const group: OpenGroup = { number: ++this.#groups, facts, spool, notes: [], timer };
    this.#collecting.set(key, group);
    return group;
  }

  /** Sends what was collected. */
  #seal(group: OpenGroup): void {
    for (const [key, other] of this.#collecting) if (other === group) this.#collecting.delete(key);
    clearTimeout(group.timer);
    const { facts, spool, notes, number } = group;
    const { patience } = this.#parts;
    this.#following.set(number, facts);
    const sealed = this.#lastWrite.then(async () => {
      await Promise.all(notes);
      await patience.until(() => spool.sync());
      await spool.close();
      await patience.until(() => this.#files.save(facts));
    });
    void this.#follow(number, facts, sealed);
  }

  async #takeOver(group: StoredGroup): Promise<void> {
    const number = ++this.#groups;
    this.#following.set(number, group);
    for (const line of await this.#files.lines(group.name)) {
      const { position } = readSpooled(line);
      if (!this.#parts.held.hold(position)) continue;
      this.#groupOf[position] = number;
      this.#showHeld(1);
    }
  }

  /** From the end of the collecting to the last answer. Rejects never. */
  async #follow(number: number, group: StoredGroup, sealed: Promise<void>): Promise<void> {
    const { signal } = this.#ended;
    const { log, batch, patience } = this.#parts;
    const { backend, name } = group;
    try {
      this.#show();
      await sealed;
      const id = group.id ?? (await this.#create(group));
      group.id = id;
      this.#show();
      await this.#untilOver(group, id);
      await this.#persistently(() => this.#readResults(number, group, id), true);
    } catch (error) {
      if (signal.aborted) return;
      this.#refusing.add(backend);
      log.warn(
        { batch: batch.id, backend, reason: reasonOf(error) },
        "a vendor has not taken a batch: its lines are asked one by one",
      );
    }
    this.#release(number);
    this.#following.delete(number);
    await patience.until(() => this.#files.remove(name)).catch(() => {}); // the next process looks at it again
    this.#tell(group, (told) => this.#parts.api.forget(group, group, told));
    this.#parts.changed();
  }

  /** Where an earlier attempt may have created the batch, it is looked for first. */
  async #create(group: StoredGroup): Promise<string> {
    const { api, wallTime, patience, log, batch } = this.#parts;
    const { signal } = this.#ended;
    const lines = () => this.#files.lines(group.name);
    // What was begun is heard to its end, so that it can be cancelled.
    const id = await this.#persistently(async () => {
      if (group.state === "creating") {
        const found = await api.find(group, group.sinceMs, signal);
        if (found !== undefined) return found;
      }
      group.uploaded ??= await api.upload(group, lines, signal);
      Object.assign(group, { state: "creating", sinceMs: wallTime() });
      await patience.until(() => this.#files.save(group));
      return await api.create(group, group.uploaded, lines, this.#stopped.signal);
    });
    if (signal.aborted && signal.reason !== "stopped") this.#cancel(group, id);
    Object.assign(group, { state: "created", id });
    await patience.until(() => this.#files.save(group));
    log.info(
      { batch: batch.id, backend: group.backend, vendor_batch: id, lines: group.lines },
      `${group.lines} lines of ${batch.id} are at ${group.backend} as ${id}`,
    );
    return id;
  }

  async #untilOver(group: StoredGroup, id: string): Promise<void> {
    const { signal } = this.#ended;
    let pauseMs = FIRST_PAUSE_MS;
    while (!(await this.#persistently(() => this.#parts.api.isOver(group, id, signal), true))) {
      await abortableDelay(pauseMs, signal);
      signal.throwIfAborted();
      pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS);
    }
  }

  async #readResults(number: number, group: StoredGroup, id: string): Promise<void> {
    const { signal } = this.#ended;
    const reading = new Set<Promise<void>>();
    let failed: unknown;
    for await (const { position, answer } of this.#parts.api.results(group, id, signal)) {
      if (this.#groupOf[position] !== number || answer === undefined || !isResult(answer.status)) continue;
      this.#groupOf[position] = 0;
      const work = this.#settle(position, { ...group, batch: id, ...answer, kept: this.#takeKept(position) })
        .catch((error) => {
          failed ??= error;
        })
        .finally(() => this.#showHeld(-1));
      reading.add(work);
      void work.then(() => reading.delete(work));
      if (reading.size >= READ_AT_ONCE) await Promise.race(reading);
      signal.throwIfAborted();
    }
    await Promise.all(reading);
    if (failed !== undefined) throw failed;
  }

  async #settle(position: number, answer: VendorAnswer): Promise<void> {
    const { held, answered } = this.#parts;
    const { signal } = this.#ended;
    if (held.isDone(position)) return answer.kept?.release();
    const line = await held.line(position);
    const turn: VendorTurn = { answer, isHandedOver: false, isUsed: false, offer: async () => false };
    for (let pauseMs = FIRST_PAUSE_MS; !(await answered(line, turn)); pauseMs *= PAUSE_GROWTH) {
      await abortableDelay(Math.min(pauseMs, LONGEST_PAUSE_MS), signal);
      if (signal.aborted) break;
    }
    if (!turn.isUsed) answer.kept?.release();
  }

  /** Lines that have no answer are asked one by one. */
  #release(number: number): void {
    for (const [position, group] of this.#groupOf.entries()) {
      if (group !== number) continue;
      this.#groupOf[position] = 0;
      this.#showHeld(-1);
      this.#takeKept(position)?.release();
      if (this.#parts.held.isDone(position)) continue;
      this.#isDirect[position] = 1;
      this.#released.push(position);
    }
  }

  #showHeld(change: 1 | -1): void {
    this.#held += change;
    this.#parts.batch.atVendors = this.#held;
  }

  #takeKept(position: number): KeptBudget | undefined {
    const kept = this.#kept.get(position);
    if (this.#kept.delete(position)) this.#parts.memory.giveBack(KEPT_BYTES);
    return kept;
  }

  /**
   * Asks until the vendor answers, or refuses.
   * @param hasBegun - a vendor that works for us is asked again once its operator has mended the credential
   */
  async #persistently<Result>(task: () => Promise<Result>, hasBegun = false): Promise<Result> {
    const { signal } = this.#ended;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, LONGEST_PAUSE_MS)) {
      signal.throwIfAborted();
      try {
        return await task();
      } catch (error) {
        signal.throwIfAborted();
        const mayChange = hasBegun && error instanceof VendorRefusal && error.isOfCredential;
        if (!(error instanceof VendorTrouble) && !mayChange) throw error;
        const { retryAfterMs = pauseMs } = error as Partial<VendorTrouble>;
        await abortableDelay(Math.min(Math.max(retryAfterMs, pauseMs), LONGEST_RETRY_AFTER_MS), signal);
      }
    }
  }

  /** A batch whose answers are not needed any more. */
  #cancel(group: StoredGroup, id: string): void {
    this.#tell(group, (signal) => this.#parts.api.cancel(group, id, signal));
  }

  /** The last that a vendor hears of a batch; a few tries are enough, as it forgets by itself. */
  #tell(group: StoredGroup, message: (signal: AbortSignal) => Promise<void>): void {
    const told = this.#tryToTell(group, message);
    this.#farewells.add(told);
    void told.then(() => this.#farewells.delete(told));
  }

  async #tryToTell({ backend, id }: StoredGroup, message: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stopped;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await message(signal);
      } catch (error) {
        if (error instanceof VendorRefusal || signal.aborted) return; // it is over, or gone
        if (tries === FAREWELL_TRIES) {
          const facts = { batch: this.#parts.batch.id, backend, vendor_batch: id, reason: reasonOf(error) };
          this.#parts.log.warn(facts, "a vendor could not be told that its batch is no longer needed");
          return;
        }
        await abortableDelay(FIRST_PAUSE_MS * tries, signal);
      }
    }
  }

  /** What operators see of its batches. */
  #show(): void {
    const { batch } = this.#parts;
    const shown = new Map((batch.vendorBatches ?? []).map((vendorBatch) => [vendorBatch.id, vendorBatch]));
    for (const { id, backend, lines } of this.#following.values())
      if (id !== undefined) shown.set(id, { id, backend, lines });
    batch.vendorBatches = [...shown.values()].slice(-MAX_SHOWN);
  }
}

/** Statuses of a moment, or of the account: the line is asked by itself. */
const NO_RESULTS: ReadonlySet<number> = new Set([401, 402, 403, 408, 409, 425, 429]);

function isResult(status: number): boolean {
  return status < 500 && !NO_RESULTS.has(status);
}
