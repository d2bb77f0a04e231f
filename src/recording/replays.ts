// The replays of a data folder: each asks its requests a few at a time, and goes on where an earlier process has ended.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { inTime } from "../lib/abortable-delay.ts";
import { randomLetters } from "../lib/random-letters.ts";
import type { SoleLock } from "../lib/sole-lock.ts";
import { storageMessage } from "../lib/storage-message.ts";
import { createWorkLimit } from "../lib/work-limit.ts";
import type { Logger } from "../logging/logger.ts";
import type { Bodies } from "./recording.ts";
import type { ReplayItem, ReplayResult, ReplaySpec, StoredReplay } from "./replay.ts";
import { type AskAgain, notAsked, replayOne } from "./replay-one.ts";
import type { ItemPage, OpenItemRow, ReplayItemRow, ReplayRows } from "./replay-rows.ts";
import { NO_RESULTS } from "./replay-sums.ts";
import type { StoredRecording } from "./store.ts";
import type { Vault } from "./vault.ts";

interface ReplaysParts {
  rows: ReplayRows;
  vault: Vault;
  /** Of the process that runs the replays of the folder. */
  lock: SoleLock;
  find(id: string): StoredRecording | undefined;
  read(recording: StoredRecording): Promise<Bodies | undefined>;
  ask: AskAgain;
  wallTime(): number;
  log: Pick<Logger, "warn">;
}

/** One that is under way in this process. */
interface RunningReplay {
  leaving: AbortController;
  over: Promise<void>;
}

/** Replays that are under way; others wait for one of them to end. */
const MOST_RUNNING = 4;
/** Requests of each. */
const AT_ONCE = 4;
const LOCK_INTERVAL_MS = 500;
const UNREADABLE = "The recording could not be read: its storage was away, or has lost it.";
const ELSEWHERE =
  "Replays run in another process with this data folder, or their storage cannot be used at the moment.";

export type Replays = ReturnType<typeof createReplays>;

export function createReplays({ rows, vault, lock, find, read, ask, wallTime, log }: ReplaysParts) {
  /** Also those that wait. */
  const running = new Map<string, RunningReplay>();
  const limit = createWorkLimit(MOST_RUNNING);
  let isLocked = false;
  /** It has the lock, and goes on with what others have begun. */
  let isOwner = false;
  let isStopping = false;
  let isInTrouble = false;
  const waiting = setInterval(own, LOCK_INTERVAL_MS);
  waiting.unref();

  /** Of several processes with one data folder one runs the replays; another one goes on when that has ended. */
  function own(): void {
    if (isOwner || isStopping) return;
    try {
      isLocked ||= lock.take();
      if (!isLocked) return;
      const begun = rows.list().filter(({ status }) => status === "running");
      isOwner = true;
      clearInterval(waiting);
      for (const replay of begun) begin(replay);
    } catch (error) {
      if (!isInTrouble) log.warn({ reason: storageMessage(error) }, "replays cannot go on; it is tried again");
      isInTrouble = true;
    }
  }

  function begin(replay: Pick<StoredReplay, "id" | "spec">): void {
    const leaving = new AbortController();
    const over = limit
      .run(() => run(replay, leaving.signal))
      .catch(() => {
        leaving.abort();
        log.warn({ replay: replay.id }, "a replay cannot be kept, and was interrupted");
      })
      .finally(() => running.delete(replay.id));
    running.set(replay.id, { leaving, over });
  }

  /** Rejects where the storage is in trouble. */
  async function run({ id, spec }: Pick<StoredReplay, "id" | "spec">, signal: AbortSignal): Promise<void> {
    if (isStopping || signal.aborted) return; // while it waited
    try {
      // All of them take from one list.
      const open = rows.open(id).values();
      await Promise.all(Array.from({ length: AT_ONCE }, () => work(id, spec, open, signal)));
      if (!isStopping && !signal.aborted) rows.end(id, "completed");
    } catch (error) {
      if (!isStopping) rows.end(id, "interrupted");
      throw error;
    }
  }

  async function work(id: string, spec: ReplaySpec, open: Iterable<OpenItemRow>, signal: AbortSignal): Promise<void> {
    for (const row of open) {
      if (isStopping || signal.aborted) return;
      const result = await askRow(id, spec, row, signal);
      if (signal.aborted) return;
      if (result === undefined) continue;
      const content = Buffer.from(JSON.stringify(result));
      rows.settle(id, row, vault.seal(ownerOf(row.recording), contentId(id, row.position), content), result);
    }
  }

  /** Undefined where it was broken off, or the recording is gone. */
  async function askRow(
    id: string,
    spec: ReplaySpec,
    { position, recording }: OpenItemRow,
    signal: AbortSignal,
  ): Promise<ReplayResult | undefined> {
    const facts = find(recording);
    const bodies = facts && (await read(facts).catch(() => undefined));
    if (facts === undefined || signal.aborted) return undefined;
    if (bodies === undefined) return notAsked(facts, undefined, UNREADABLE);
    // From now on it is not known what a backend has done with it.
    if (!rows.begin(id, position)) return undefined;
    return await replayOne(ask, { spec, facts, bodies, position, signal }).catch(() =>
      signal.aborted ? undefined : notAsked(facts, bodies.answer, "It could not be asked."),
    );
  }

  const ownerOf = (recording: string) => find(recording)?.owner ?? "";
  const contentId = (id: string, position: number) => `${id}/${position}`;

  function toItem(id: string, { position, recording, begun, sealed }: ReplayItemRow): ReplayItem {
    const content = sealed && vault.open(ownerOf(recording), contentId(id, position), sealed);
    const result = content ? (JSON.parse(new TextDecoder().decode(content)) as ReplayResult) : null;
    return { position, recording, isAskedAgain: begun > 1, result };
  }

  function end(id: string): void {
    running.get(id)?.leaving.abort();
  }

  return {
    /** Goes on with those that an earlier process did not end. */
    resume: own,
    /** Returns at once; the requests are asked behind it. Throws 503 where another process runs them. */
    start(spec: ReplaySpec, recordings: readonly string[]): StoredReplay {
      own();
      if (!isOwner) throw new GatewayError(ERRORS.storageUnavailable, ELSEWHERE);
      const replay = { id: `replay_${randomLetters(24)}`, atMs: wallTime(), spec };
      for (const removed of rows.add(replay, recordings)) end(removed);
      begin(replay);
      return { ...replay, status: "running", total: recordings.length, sums: NO_RESULTS };
    },
    list: rows.list,
    find: rows.find,
    items(id: string, page: ItemPage): { items: ReplayItem[]; isLast: boolean } {
      const { rows: found, isLast } = rows.items(id, page);
      return { items: found.map((row) => toItem(id, row)), isLast };
    },
    /** False where there is none. */
    remove(id: string): boolean {
      end(id);
      return rows.remove(id);
    },
    /** Begins no further request; those that are under way are broken off when the time is over. The next process goes on. */
    async stop(withinMs: number): Promise<void> {
      isStopping = true;
      clearInterval(waiting);
      const ending = [...running.values()];
      await inTime(Promise.all(ending.map(({ over }) => over)), withinMs);
      for (const { leaving } of ending) leaving.abort();
      lock.release();
    },
  };
}
