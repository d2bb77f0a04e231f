// The batches that the configuration asks for: opened when they are first used, or at the start where there were some before.

import { existsSync } from "node:fs";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { reasonOf } from "../files/storage-trouble.ts";
import type { Logger } from "../logging/logger.ts";
import { createRedisServer, type RedisSurroundings } from "../redis/open-redis.ts";
import type { Redis } from "../redis/redis.ts";
import type { BatchesInUse } from "./batch-store.ts";
import { batchTrouble } from "./batch-trouble.ts";
import type { BatchStoreParts, OpenBatches } from "./store.ts";

interface BatchesParts extends Pick<BatchStoreParts, "files" | "ask" | "counted" | "vendors">, RedisSurroundings {
  /** Where a path of the settings leads. */
  dataPath(path: string): string;
  log: Pick<Logger, "info" | "warn" | "error">;
}

interface BatchesPart extends Part {
  readonly inUse: BatchesInUse;
  /** Goes on with the batches of an earlier run. */
  start(): void;
  /** Undefined where none are open, or they cannot be read. */
  openCount(): number | undefined;
  readonly server: { readonly isThere: boolean | undefined };
  /** Begins no further line. */
  closing(): void;
  stop(withinMs: number): Promise<void>;
}

/** For lines under way when the folder is left because the configuration has another one, or none. */
const LEAVING_MS = 1_000;
/** Answers come in the order of the commands. */
const CONNECTIONS = 1;
/** No model request waits for these commands, and some have long answers: they get more time than rate_limiting.redis says. */
const MORE_MS = 3_000;

type SharedServerPlace = Settings["rate_limiting"]["redis"];

export function createBatchesPart({ settings }: ConfigSnapshot, parts: BatchesParts): BatchesPart {
  const { dataPath, clock, log } = parts;
  // Another storage of limits is used after a restart.
  const hasRedis = settings.rate_limiting.storage === "redis";
  const bucketOf = ({ files }: Settings) =>
    hasRedis && files.enabled && files.storage === "s3" ? files.s3 : undefined;
  let current = settings.batches;
  /** Of gateways that share their batches; undefined: batches are those of this machine. */
  let bucket = bucketOf(settings);
  let redis: { place: SharedServerPlace; redis: Redis } | undefined;
  const server = createRedisServer<SharedServerPlace>(parts, () => ({
    ...{ use: "batches", poolSize: CONNECTIONS, blockMs: MORE_MS },
    check: (client) => client.send("EXISTS", [redis?.place.key_prefix ?? ""]),
  }));
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
      const given = { ...parts, folder, settings: () => current, wallTime: clock.wallTime };
      if (bucket === undefined) {
        const { openBatches } = await import("./store.ts");
        return openBatches(given);
      }
      const { openSharedBatches } = await import("./shared/shared-store.ts");
      const ofRedis = { redis: () => redis?.redis, keyPrefix: () => redis?.place.key_prefix ?? "" };
      return openSharedBatches({ ...given, ...ofRedis, bucket });
    } catch (error) {
      log.error({ folder, reason: reasonOf(error) }, "the storage for batches cannot be opened");
      throw batchTrouble(error);
    }
  }

  function openIfThere(): void {
    // A gateway that never had a batch, and shares none, pays nothing for them.
    const isThere = bucket !== undefined || existsSync(dataPath(current.path));
    if (current.enabled && isThere) void open().catch(() => {}); // the log says it
  }

  async function close(withinMs: number): Promise<void> {
    const leaving = opening;
    opening = undefined;
    opened = undefined;
    const batches = await leaving?.catch(() => undefined);
    await batches?.close(withinMs);
  }

  function connect({ rate_limiting, batches }: Settings): void {
    if (bucket !== undefined && batches.enabled) redis = server.of(rate_limiting.redis);
  }
  connect(settings);

  return {
    server,
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
    follow({ settings: next }) {
      const { path, enabled } = next.batches;
      const nextBucket = bucketOf(next);
      const stays = path === current.path && enabled === current.enabled && Bun.deepEquals(nextBucket, bucket, true);
      current = next.batches;
      bucket = nextBucket;
      connect(next);
      if (stays) return;
      void close(LEAVING_MS);
      openIfThere();
    },
    async stop(withinMs) {
      await close(withinMs);
      server.stop();
    },
  };
}
