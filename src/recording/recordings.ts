// The recordings of this data folder, for the process that owns them: kept, looked for, read and removed.

import { join } from "node:path";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { otherWork } from "../lib/other-work.ts";
import { openSoleLock } from "../lib/sole-lock.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Logger } from "../logging/logger.ts";
import { createSmallObjects } from "../object-storage/small-objects.ts";
import { importedRecording, readLine } from "./data-set.ts";
import { createFeedback } from "./feedback.ts";
import type { RecordingFilter } from "./filter.ts";
import type { Bodies, SealedRecording } from "./recording.ts";
import type { AskAgain } from "./replay-one.ts";
import { createReplays } from "./replays.ts";
import { openRecording, sealRecording } from "./seal-recording.ts";
import { type RecordingPage, RecordingStore, type StoredRecording } from "./store.ts";
import type { Vault } from "./vault.ts";

type RecordingSettings = Settings["recording"];

const LOCK_NAME = "replays.lock";
const TEND_EVERY_MS = 60_000;
const OBJECT_MS = 30_000;
const PUT_AT_ONCE = 8;
/** Objects that one round removes. */
const ROUND = 256;
/** Beyond the bodies: heads, and what compression adds to what cannot be compressed. */
const OVERHEAD_BYTES = 1024 ** 2;

/** Recordings that one step of a deletion removes. */
const REMOVED = 64;

export type Recordings = ReturnType<typeof openRecordings>;

interface RecordingsParts {
  /** Absolute. */
  folder: string;
  settings(): RecordingSettings;
  vault: Vault;
  clock: Pick<Clock, "wallTime">;
  /** Asks the gateway itself. */
  ask: AskAgain;
  log: Pick<Logger, "info" | "warn">;
}

export function openRecordings({ folder, settings, vault, clock, ask, log }: RecordingsParts) {
  const store = new RecordingStore({ path: join(folder, "recordings.db"), log, maxBytes: settings().max_bytes });
  /** Objects that are being written: they are not to be removed yet. */
  const uploading = new Set<string>();
  const tending = setInterval(() => void tend(), TEND_EVERY_MS);
  tending.unref();
  let isClosed = false;
  let isInTrouble = false;

  function objects() {
    const { s3 } = settings();
    const bucket = createSmallObjects(s3);
    const nameOf = (id: string) => `${s3.key_prefix}${id}`;
    return {
      put: (id: string, sealed: Uint8Array) => bucket.put(nameOf(id), sealed, AbortSignal.timeout(OBJECT_MS)),
      remove: (id: string) => bucket.remove(nameOf(id), AbortSignal.timeout(OBJECT_MS)),
      async get(id: string): Promise<Uint8Array | undefined> {
        const maxBytes = 2 * settings().max_body_bytes + OVERHEAD_BYTES;
        const found = await bucket.get(nameOf(id), { maxBytes, signal: AbortSignal.timeout(OBJECT_MS) });
        return found === "too-large" ? undefined : found;
      },
    };
  }

  /** What is older is gone, whether it was removed already or not. */
  const oldestMs = () => clock.wallTime() - settings().retention;
  const isGone = ({ dataset, atMs }: StoredRecording) => dataset === null && atMs < oldestMs();

  async function keep(recordings: readonly SealedRecording[]): Promise<number> {
    if (isClosed) return 0; // what comes late must not open the file again
    const failures: unknown[] = [];
    if (settings().storage === "local") addTogether(recordings, false, failures);
    else await keepElsewhere(recordings, failures);
    const [failure] = failures;
    if (failure !== undefined) {
      const reason = storageMessage(failure instanceof Error ? (failure.cause ?? failure) : failure);
      // Once per trouble: attempts go on.
      if (!isInTrouble) log.warn({ path: store.path, reason }, "a recording could not be kept; requests go on");
    } else if (isInTrouble) log.info({}, "recordings are kept again");
    isInTrouble = failure !== undefined;
    return recordings.length - failures.length;
  }

  /** @param failures - one more for each that could not be added */
  function addTogether(recordings: readonly SealedRecording[], isElsewhere: boolean, failures: unknown[]): void {
    if (recordings.length === 0) return;
    try {
      store.add(recordings, isElsewhere);
    } catch (error) {
      // What is wrong with one of them must not take the others with it.
      if (recordings.length > 1) for (const each of recordings) addTogether([each], isElsewhere, failures);
      else failures.push(error);
    }
  }

  /** @param failures - one more for each that could not be kept */
  async function keepElsewhere(recordings: readonly SealedRecording[], failures: unknown[]): Promise<void> {
    const ids = recordings.map(({ facts }) => facts.id);
    const left = [...recordings];
    const stored: SealedRecording[] = [];
    async function putNext(): Promise<void> {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        try {
          await objects().put(next.facts.id, next.sealed);
          stored.push(next);
        } catch (error) {
          failures.push(error);
        }
      }
    }
    try {
      // From now on a crash leaves nothing that is not removed at the next start.
      store.doom(ids);
    } catch (error) {
      failures.push(...ids.map(() => error));
      return;
    }
    for (const id of ids) uploading.add(id);
    await Promise.all(Array.from({ length: PUT_AT_ONCE }, putNext));
    addTogether(stored, true, failures);
    for (const id of ids) uploading.delete(id);
  }

  async function stepByStep(step: () => boolean): Promise<void> {
    while (!isClosed && step()) await otherWork();
  }

  /** Removes what is too old, and the objects of what was removed. */
  async function tend(): Promise<void> {
    try {
      await stepByStep(() => store.forgetStep(oldestMs()));
      await removeObjects();
      await stepByStep(() => store.shrinkStep());
    } catch (error) {
      const reason = storageMessage(error instanceof Error ? (error.cause ?? error) : error);
      log.warn({ path: store.path, reason }, "old recordings could not be removed; it is tried again");
    }
  }

  async function removeObjects(): Promise<void> {
    const doomed = store.doomed(ROUND).filter((id) => !uploading.has(id));
    if (doomed.length === 0 || settings().s3.bucket === undefined) return;
    const { remove } = objects();
    for (const id of doomed) {
      if (isClosed) return;
      await remove(id);
      if (!isClosed) store.removed(id);
    }
  }

  function find(id: string): StoredRecording | undefined {
    const found = store.find(id);
    return found === undefined || isGone(found) ? undefined : found;
  }

  /** Undefined where the bodies are gone, or cannot be opened with the key of this folder. */
  async function read(recording: StoredRecording): Promise<Bodies | undefined> {
    const { number, id, isElsewhere } = recording;
    const sealed = isElsewhere ? await objects().get(id) : store.sealed(number);
    return sealed && (await openRecording(recording, sealed, vault));
  }

  /** The newest first; requests have their turn while it is looked for words. */
  async function list(filter: RecordingFilter, { limit, behind }: RecordingPage): Promise<StoredRecording[]> {
    const all: StoredRecording[] = [];
    let from = behind;
    for (;;) {
      const page = { limit: limit - all.length, behind: from, oldestMs: oldestMs() };
      const { found, next } = store.listStep(filter, vault.wordDigests, page);
      all.push(...found);
      if (next === undefined || all.length === limit || isClosed) return all;
      from = next;
      await otherWork();
    }
  }

  const { wallTime } = clock;
  const lock = openSoleLock(join(folder, LOCK_NAME));
  const replays = createReplays({ rows: store.replays, vault, lock, find, read, ask, wallTime, log });

  return {
    keep,
    tend,
    find,
    read,
    replays,
    feedback: createFeedback(store.feedback, vault),
    list,
    /** Reads a line of a data set, and keeps it; a text says what is wrong with it. */
    async take(dataset: string, line: string): Promise<string | undefined> {
      const read = readLine(line);
      if (typeof read === "string") return read;
      const imported = importedRecording(dataset, read, clock.wallTime());
      const kept = await keep([await sealRecording({ ...imported, redacts: settings().redact }, vault)]);
      if (kept === 0) throw new Error("the line could not be kept; the log says why");
      return undefined;
    },
    dataSets: () => store.dataSets(),
    /** Returns how many there were. Their objects in a bucket are removed behind it. */
    async remove(filter: RecordingFilter): Promise<number> {
      let count = 0;
      for (;;) {
        const found = await list(filter, { limit: REMOVED });
        if (found.length === 0) break;
        store.removeIds(found.map(({ id }) => id));
        count += found.length;
        await otherWork();
      }
      // Whose recordings are deleted as a whole, of that one nothing is left.
      const { key, user, ...further } = filter;
      const isWhole = Object.values(further).every((value) => value === undefined);
      if (isWhole && (key !== undefined || user !== undefined)) store.feedback.remove({ key, user });
      void tend();
      return count;
    },
    bytes: () => store.bytes,
    /** Retention and size; what else is different holds from the next recording on. */
    follow(): void {
      store.maxBytes = settings().max_bytes;
      void tend();
    },
    async close(withinMs: number): Promise<void> {
      await replays.stop(withinMs);
      isClosed = true;
      clearInterval(tending);
      store.close();
    },
  };
}
