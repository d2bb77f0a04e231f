// The store of files that the configuration asks for: opened when it is first used, and opened again when its place changes.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { FileStore, FilesInUse, FileUsage } from "./file-store.ts";
import { reasonOf, storageTrouble } from "./storage-trouble.ts";

type FileSettings = Settings["files"];

interface FilesParts {
  /** Where a path of the settings leads. */
  dataPath(path: string): string;
  clock: Pick<Clock, "wallTime">;
  log: Pick<Logger, "info" | "warn" | "error">;
}

interface FilesPart extends Part {
  readonly inUse: FilesInUse;
  /** Undefined where no store is open, or it cannot tell. */
  usage(): FileUsage | undefined;
  /** Cleans up after an earlier run, and removes expired files even when no requests come. */
  start(): void;
  stop(): void;
}

/** A store at one place; another place is another store. */
interface StorePlace {
  folder: string;
  /** The settings that the store was made from. */
  made: Pick<FileSettings, "storage" | "path" | "s3">;
  opened: Promise<FileStore> | undefined;
  /** Set once the store is open. */
  store?: FileStore;
}

export function createFilesPart({ settings }: ConfigSnapshot, { dataPath, clock, log }: FilesParts): FilesPart {
  let current = settings.files;
  let place = placeOf(current);

  function placeOf({ storage, path, s3 }: FileSettings): StorePlace {
    const folder = dataPath(path);
    const made = { storage, path, s3 };
    return { folder: storage === "s3" ? join(folder, nameOfBucket(s3)) : folder, made, opened: undefined };
  }

  function open(): Promise<FileStore> {
    const asked = place;
    asked.opened ??= openStore(asked).catch((error) => {
      // The next one who asks tries again: it may be repaired by then.
      asked.opened = undefined;
      log.error({ folder: asked.folder, reason: reasonOf(error) }, "the storage for files cannot be opened");
      throw storageTrouble(error);
    });
    return asked.opened;
  }

  async function openStore(asked: StorePlace): Promise<FileStore> {
    const { folder, made } = asked;
    const { createFileStore } = await import("./store.ts");
    const s3 = made.storage === "s3" ? await import("./s3-storage.ts") : undefined;
    asked.store = createFileStore({
      folder,
      storage: s3 && ((catalogue) => s3.createS3Storage(made.s3, catalogue)),
      retentionSeconds: () => (current.retention === undefined ? undefined : Math.ceil(current.retention / 1000)),
      wallTime: clock.wallTime,
      log,
    });
    return asked.store;
  }

  function openIfThere(): void {
    // A gateway that never had a file pays nothing for them.
    if (current.enabled && existsSync(place.folder)) void open().catch(() => {}); // the log says it
  }

  function close(): void {
    void place.opened?.then(
      (store) => store.close(),
      () => {}, // it was never open
    );
    place.opened = undefined;
    delete place.store;
  }

  function usage(): FileUsage | undefined {
    try {
      return place.store?.usage();
    } catch {
      return undefined; // requests for files say what is wrong with the storage
    }
  }

  return {
    inUse: () => (current.enabled ? open() : undefined),
    usage,
    start: openIfThere,
    follow({ settings: { files: next } }) {
      const nextPlace = placeOf(next);
      const isSame = Bun.deepEquals(nextPlace.made, place.made, true);
      const stays = isSame && next.enabled === current.enabled;
      current = next;
      if (stays) return;
      close();
      place = nextPlace;
      openIfThere();
    },
    stop: close,
  };
}

/** Another bucket has other files. Who may use it is not part of its name. */
function nameOfBucket({ endpoint, bucket, key_prefix }: FileSettings["s3"]): string {
  const text = JSON.stringify([endpoint, bucket, key_prefix]);
  return `s3-${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16)}`;
}
