// The batches that the configuration asks for: opened when they are first used, or at the start where there were some before.

import { existsSync } from "node:fs";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { reasonOf } from "../files/storage-trouble.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { BatchesInUse } from "./batch-store.ts";
import { batchTrouble } from "./batch-trouble.ts";
import type { BatchStoreParts, OpenBatches } from "./store.ts";

interface BatchesParts extends Pick<BatchStoreParts, "files" | "ask" | "counted" | "vendors"> {
  /** Where a path of the settings leads. */
  dataPath(path: string): string;
  clock: Pick<Clock, "wallTime">;
  log: Pick<Logger, "info" | "warn" | "error">;
}

interface BatchesPart extends Part {
  readonly inUse: BatchesInUse;
  /** Goes on with the batches of an earlier run. */
  start(): void;
  /** Undefined where none are open, or they cannot be read. */
  openCount(): number | undefined;
  /** Begins no further line. */
  closing(): void;
  stop(withinMs: number): Promise<void>;
}

/** For lines under way when the folder is left because the configuration has another one, or none. */
const LEAVING_MS = 1_000;

export function createBatchesPart({ settings }: ConfigSnapshot, parts: BatchesParts): BatchesPart {
  const { dataPath, clock, log } = parts;
  let current = settings.batches;
  let opening: Promise<OpenBatches> | undefined;
  let opened: OpenBatches | undefined;

  function open(): Promise<OpenBatches> {
    const folder = dataPath(current.path);
    const mine = opening ?? openFolder(folder);
    opening = mine;
    mine.then(
      (batches) => {
        if (opening === mine) opened = batches;
      },
      () => {
        if (opening === mine) opening = undefined; // the next request tries again
      },
    );
    return mine;
  }

  async function openFolder(folder: string): Promise<OpenBatches> {
    try {
      const { openBatches } = await import("./store.ts");
      return openBatches({ ...parts, folder, settings: () => current, wallTime: clock.wallTime });
    } catch (error) {
      log.error({ folder, reason: reasonOf(error) }, "the storage for batches cannot be opened");
      throw batchTrouble(error);
    }
  }

  function openIfThere(): void {
    // A gateway that never had a batch pays nothing for them.
    if (current.enabled && existsSync(dataPath(current.path))) void open().catch(() => {}); // the log says it
  }

  async function close(withinMs: number): Promise<void> {
    const leaving = opening;
    opening = undefined;
    opened = undefined;
    const batches = await leaving?.catch(() => undefined);
    await batches?.close(withinMs);
  }

  return {
    inUse: () => (current.enabled ? open() : undefined),
    start: openIfThere,
    openCount() {
      try {
        return opened?.openCount();
      } catch {
        return undefined; // requests for batches say what is wrong with the storage
      }
    },
    closing: () => opened?.closing(),
    follow({ settings: { batches: next } }) {
      const stays = next.path === current.path && next.enabled === current.enabled;
      current = next;
      if (stays) return;
      void close(LEAVING_MS);
      openIfThere();
    },
    stop: close,
  };
}
