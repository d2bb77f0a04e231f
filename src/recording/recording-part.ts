// Recording as the configuration asks for it: in every process the requests that it answers, in one of them the recordings.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { inTime } from "../lib/abortable-delay.ts";
import type { Clock } from "../lib/clock.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Logger } from "../logging/logger.ts";
import type { RecordingResult } from "../metrics/gateway-events.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { createRecorder, type FinishedRecording, type Recorder } from "./recorder.ts";
import type { RecordingSink } from "./recording.ts";
import { createRecordingQueue } from "./recording-queue.ts";
import type { Recordings } from "./recordings.ts";
import type { AskAgain } from "./replay-one.ts";

interface RecordingPartParts {
  /** Where a path of the settings leads. */
  dataPath(path: string): string;
  clock: Clock;
  log: Pick<Logger, "info" | "warn" | "error">;
  recorded(result: RecordingResult, times?: number): void;
  /** Asks the gateway itself, where this process has the recordings. */
  ask?: AskAgain | undefined;
  /** Scores of targets of routes that are kept from earlier. */
  ratedBefore?: ((counts: ReturnType<Recordings["feedback"]["counts"]>) => void) | undefined;
  /** Another process has the recordings; undefined: this one has. */
  elsewhere?: RecordingSink | undefined;
}

/**
 * Opened when they are first asked for; undefined where nothing is recorded and nothing was, and in a process that does not have
 * them. @param isWanted - they are made where there are none
 */
export type RecordingsInUse = (isWanted?: boolean) => Promise<Recordings> | undefined;

export interface RecordingPart extends Part, RecordingSink {
  /** Undefined while nothing is recorded. @param costOf - by the prices of the configuration in force */
  recorderFor(settings: ConfigSnapshot["settings"], costOf: (record: RequestRecord) => number): Recorder | undefined;
  inUse: RecordingsInUse;
  /** Opens recordings that are there, and goes on with their replays: from now on this process can be asked. */
  start(): void;
  stop(withinMs: number): Promise<void>;
}

/** Of one process, for what is not kept yet. */
const MOST_HELD_BYTES = 64 * 1024 ** 2;
/** Who reads the recordings waits so long at most for those that are not kept yet. */
const SETTLE_MS = 1_000;
const KEY_FILE = "recording.key";

export function createRecordingPart({ settings }: ConfigSnapshot, parts: RecordingPartParts): RecordingPart {
  const { clock, log, elsewhere, recorded, ask } = parts;
  let current = settings.recording;
  const folder = parts.dataPath(current.path);
  let opening: ReturnType<typeof openVault> | undefined;
  let opened: Recordings | undefined;
  let isStarted = false;
  let heldBytes = 0;
  const allowance = {
    take(bytes: number): boolean {
      if (heldBytes + bytes > MOST_HELD_BYTES) return false;
      heldBytes += bytes;
      return true;
    },
    giveBack(bytes: number): void {
      heldBytes -= bytes;
    },
  };

  const queue = createRecordingQueue({ keep, giveBack: allowance.giveBack });

  /** Loaded late: few gateways record. */
  async function openVault() {
    try {
      const { createVault, readVaultKey } = await import("./vault.ts");
      const { sealRecordings } = await import("./seal-recording.ts");
      const vault = createVault(readVaultKey(join(folder, KEY_FILE)));
      if (elsewhere !== undefined || ask === undefined) return { vault, sealRecordings, recordings: undefined };
      const { openRecordings } = await import("./recordings.ts");
      opened = openRecordings({ folder, settings: () => current, vault, clock, ask, log });
      parts.ratedBefore?.(opened.feedback.counts());
      void opened.tend();
      opened.replays.resume();
      return { vault, sealRecordings, recordings: opened };
    } catch (error) {
      opening = undefined; // the next request tries again
      const reason = error instanceof Error && !("code" in error) ? error.message : storageMessage(error);
      log.error({ folder, reason }, "recordings cannot be kept or read");
      throw error;
    }
  }

  function open() {
    opening ??= openVault();
    return opening;
  }

  function inUse(isWanted = current.enabled): Promise<Recordings> | undefined {
    if (elsewhere !== undefined || (!isWanted && !existsSync(join(folder, KEY_FILE)))) return undefined;
    // Who reads, or deletes, means what was answered until now.
    return inTime(queue.settle(), SETTLE_MS).then(async () => (await open()).recordings as Recordings);
  }

  async function keep(finished: readonly FinishedRecording[]): Promise<void> {
    let kept = 0;
    try {
      const { vault, sealRecordings, recordings } = await open();
      const sealed = await sealRecordings(finished, vault);
      kept = await (elsewhere ?? (recordings as Recordings)).keep(sealed);
    } catch {
      // The log says it.
    }
    if (kept > 0) recorded("kept", kept);
    if (kept < finished.length) recorded("failed", finished.length - kept);
  }

  function openIfThere(): void {
    if (isStarted) void inUse()?.catch(() => {}); // the log says it
  }

  return {
    recorderFor({ recording }, costOf) {
      if (!recording.enabled || recording.share === 0) return undefined;
      return createRecorder({
        ...{ settings: recording, allowance, finished: queue.add, costOf },
        random: Math.random,
        wallTime: clock.wallTime,
        now: clock.now,
        dropped: () => recorded("dropped"),
      });
    },
    inUse,
    async keep(sealed) {
      const { recordings } = await open();
      if (recordings === undefined) throw new Error("the recordings are in another process");
      return await recordings.keep(sealed);
    },
    follow({ settings: next }) {
      if (Bun.deepEquals(next.recording, current, true)) return;
      current = next.recording;
      opened?.follow();
      openIfThere();
    },
    start() {
      isStarted = true;
      openIfThere();
    },
    async stop(withinMs) {
      await inTime(queue.settle(), withinMs);
      await opened?.close(withinMs);
    },
  };
}
