// Cached answers in a bucket: looked up for a second at most, written in the background. Its trouble is a miss.

import { ByteAllowance } from "../lib/byte-allowance.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines, type Deadline } from "../lib/deadlines.ts";
import { Pause } from "../lib/pause.ts";
import type { Logger } from "../logging/logger.ts";
import { BucketTrouble } from "../object-storage/bucket.ts";
import type { SmallObjects } from "../object-storage/small-objects.ts";
import { reasonOf } from "./bucket-reason.ts";
import { type CachedAnswer, ClearedHereOnly, type RequestKey } from "./cache.ts";
import { createGenerations } from "./generations.ts";
import { beginsAsStored, decodeStored, digestOf, encodeStored, MAX_HEAD_BYTES } from "./stored-answer.ts";
import { createWriteQueue } from "./write-queue.ts";

export interface FarBounds {
  /** Larger answers are not kept. */
  maxAnswerBytes: number;
  /** Memory for all lookups under way together. */
  maxReadBytes: number;
}

interface FarTierParts {
  objects: Pick<SmallObjects, "get" | "put">;
  /** Begins the names of all objects. */
  prefix: string;
  bounds: FarBounds;
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  /** Another gateway has cleared the answers of this model, or all. */
  cleared(model: string | undefined): void;
}

interface FoundAnswer {
  answer: CachedAnswer;
  /** The form under which the answer is kept. */
  form: RequestKey["form"];
  leftMs: number;
}

/** How long a request may wait for the bucket. */
const READ_TIMEOUT_MS = 1_000;
/** More would only wait for each other. */
const READS_AT_A_TIME = 256;
const CLEAR_TIMEOUT_MS = 5_000;

/** The own memory ran out, which is not the bucket's fault. */
class NoRoom extends Error {}

/** The object that was read holds no answer. */
class Foreign extends Error {}

export function createFarTier(parts: FarTierParts) {
  const { objects, prefix, bounds, clock, log, cleared } = parts;
  let { maxAnswerBytes } = bounds;
  const { now, wallTime } = clock;
  const generations = createGenerations({
    objects,
    prefix,
    now,
    cleared(model) {
      forget(model);
      cleared(model);
    },
  });
  const deadlines = createDeadlines(now);
  const reading = new Pause((isUp, reason) => tell("read", isUp, reason));
  const writes = createWriteQueue({ now, changed: (isUp, reason) => tell("written", isUp, reason) });
  const room = new ByteAllowance(bounds.maxReadBytes);
  const counts = { hits: 0, misses: 0, unusable: 0 };
  let lookups = 0;
  let clears = 0;

  /** Drops answers that wait to be written: they were given before the clear. */
  function forget(model: string | undefined): void {
    clears++;
    writes.clear(model);
  }

  function tell(what: "read" | "written", isUp: boolean, reason: string): void {
    const subject = `the bucket of the response cache can${isUp ? "" : "not"} be ${what}`;
    if (isUp) log.info({}, `${subject} again`);
    else log.warn({ reason }, `${subject}; requests go on without it`);
  }

  async function find(key: RequestKey, model: string): Promise<FoundAnswer | undefined> {
    const abort = new AbortController();
    const deadline: Deadline = {
      deadlineMs: now() + READ_TIMEOUT_MS,
      expire: () => abort.abort(new BucketTrouble("no answer in time")),
    };
    deadlines.add(deadline);
    let held = 0;
    lookups++;
    try {
      const folder = await generations.folderOf(model, abort.signal);
      const digest = digestOf(key.question);
      const object = await objects.get(folder + digest, {
        maxBytes: maxAnswerBytes + MAX_HEAD_BYTES,
        signal: abort.signal,
        onChunk(bytes, chunk) {
          if (held === 0 && !beginsAsStored(chunk)) throw new Foreign();
          if (!room.take(bytes)) throw new NoRoom();
          held += bytes;
        },
      });
      reading.succeeded();
      const found = object === undefined ? undefined : usable(object, key, digest, model);
      if (object !== undefined && found === undefined) counts.unusable++;
      // It may have been cleared while it was read.
      return found !== undefined && folder === generations.knownFolderOf(model) ? found : undefined;
    } catch (error) {
      if (error instanceof Foreign) counts.unusable++;
      if (error instanceof Foreign || error instanceof NoRoom) reading.succeeded();
      else reading.failed(now(), reasonOf(error));
      return undefined;
    } finally {
      deadlines.remove(deadline);
      abort.abort();
      room.giveBack(held);
      lookups--;
    }
  }

  function usable(
    object: Uint8Array | "too-large",
    { form, otherForm }: RequestKey,
    digest: string,
    model: string,
  ): FoundAnswer | undefined {
    const stored = object === "too-large" ? undefined : decodeStored(object);
    if (stored === undefined || stored.questionDigest !== digest || stored.answer.model !== model) return undefined;
    if (stored.keyForm !== form && stored.keyForm !== otherForm) return undefined;
    const leftMs = stored.expiresAtMs - wallTime();
    return leftMs > 0 ? { answer: stored.answer, form: stored.keyForm, leftMs } : undefined;
  }

  async function lookUp(key: RequestKey, model: string): Promise<FoundAnswer | undefined> {
    const found = await find(key, model);
    if (found === undefined) counts.misses++;
    else counts.hits++;
    return found;
  }

  return {
    resize(next: FarBounds): void {
      ({ maxAnswerBytes } = next);
      room.resize(next.maxReadBytes);
    },
    /** Undefined at once while the bucket is paused. */
    get(key: RequestKey, model: string): Promise<FoundAnswer | undefined> | undefined {
      if (lookups >= READS_AT_A_TIME) return undefined;
      const leave = reading.leave(now());
      if (leave === "usual") return lookUp(key, model);
      // The trial runs beside this request, which does not wait for it.
      if (leave === "trial") void find(key, model);
      return undefined;
    },
    /** Called when an answer came from memory. */
    passedBy(model: string): void {
      if (reading.isUp) generations.keepFresh(model);
    },
    put(key: RequestKey, answer: CachedAnswer, ttlMs: number, bytes: number): void {
      const { model } = answer;
      const expiresAtMs = wallTime() + ttlMs;
      writes.push({
        model,
        bytes,
        async write(signal) {
          if (wallTime() >= expiresAtMs) return;
          const questionDigest = digestOf(key.question);
          const object = encodeStored({ questionDigest, keyForm: key.form, answer, expiresAtMs });
          if (object === undefined) return;
          const begunAt = clears;
          const folder = await generations.folderOf(model, signal);
          if (clears === begunAt) await objects.put(folder + questionDigest, object, signal);
        },
      });
    },
    /** Holds here at once. Throws ClearedHereOnly where the bucket cannot be reached. */
    async clear(model: string | undefined): Promise<void> {
      forget(model);
      try {
        await generations.begin(model, AbortSignal.timeout(CLEAR_TIMEOUT_MS));
      } catch (cause) {
        throw new ClearedHereOnly("the bucket could not be told", { cause });
      }
    },
    stats() {
      const { isUp, ...written } = writes.stats();
      return { connected: reading.isUp && isUp, ...counts, ...written };
    },
  };
}
