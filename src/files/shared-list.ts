// Files of a bucket that several gateways use: the list in the bucket decides which files there are, and the catalogue of this
// machine follows it. Files that a gateway kept before there was a list in the bucket stay known to that gateway.

import { GatewayError } from "../errors/gateway-error.ts";
import { whenFree } from "../lib/durable-database.ts";
import { BucketTrouble } from "../object-storage/bucket.ts";
import type { BucketList } from "./bucket-list.ts";
import type { Catalogue } from "./catalogue.ts";
import { isFileId, type StoredFile } from "./file-store.ts";
import type { PublishedRows } from "./published-rows.ts";
import { reasonOf, storageTrouble } from "./storage-trouble.ts";

/** A file that is known is not waited for longer. */
const KNOWN_LIMIT_MS = 2_000;
const DAMAGED = "an entry of the list of files in the bucket is damaged";
/** Facts that are read side by side. */
const READ_AT_ONCE = 8;

interface SharedListParts {
  catalogue: Catalogue;
  rows: PublishedRows;
  list: BucketList;
  /** Unix time in seconds. */
  now(): number;
  log: { warn(fields: object, message: string): void };
}

export type SharedList = ReturnType<typeof createSharedList>;

export function createSharedList({ catalogue, rows, list, now, log }: SharedListParts) {
  const isOver = ({ expiresAt }: StoredFile) => expiresAt !== undefined && expiresAt <= now();

  async function adopt(file: StoredFile): Promise<void> {
    await whenFree(() => {
      if (!catalogue.isKnown(file.id) && rows.ownerOfWithdrawn(file.id) === undefined) catalogue.insert(file, 0, true);
    });
  }

  /** Another gateway has removed them. */
  async function drop(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await whenFree(() => catalogue.remove(ids));
  }

  async function compare(owner: string): Promise<void> {
    for (let after = ""; ; ) {
      // Before the page: files that are added meanwhile stand behind it.
      const lastSequence = rows.lastSequence();
      const { names, isLast } = await list.page(owner, after);
      const found = new Set(names);
      const known = new Set(rows.idsOf(owner, after, isLast ? undefined : names.at(-1), lastSequence));
      await drop([...known].filter((id) => !found.has(id)));
      const fresh = names.filter((id) => !known.has(id) && isFileId(id) && !catalogue.isKnown(id));
      for (let index = 0; index < fresh.length; index += READ_AT_ONCE) {
        const group = fresh.slice(index, index + READ_AT_ONCE);
        const files = await Promise.all(group.map((id) => list.read(owner, id)));
        for (const [place, file] of files.entries()) {
          if (file === "damaged") log.warn({ id: group[place] }, `${DAMAGED}; the file is left out`);
          // Also one whose time is over: where its own gateway is gone, this one removes it.
          else if (file !== undefined) await adopt(file);
        }
      }
      after = names.at(-1) ?? "";
      if (isLast || after === "") return;
    }
  }

  return {
    async find(owner: string, id: string): Promise<StoredFile | undefined> {
      const known = catalogue.find(owner, id, now());
      if (known !== undefined && !rows.isPublished(id)) return known;
      if (!isFileId(id) || rows.ownerOfWithdrawn(id) !== undefined) return undefined;
      try {
        const found = await list.read(owner, id, known && KNOWN_LIMIT_MS);
        if (found === "damaged") throw new BucketTrouble(DAMAGED);
        if (found === undefined || isOver(found)) {
          if (found === undefined && known !== undefined) await drop([id]);
          return undefined;
        }
        if (known === undefined) await adopt(found);
        return found;
      } catch (error) {
        // The bucket's server is away: the file was there the last time.
        if (known !== undefined) return known;
        if (!(error instanceof GatewayError)) {
          log.warn({ id, reason: reasonOf(error) }, "the list of files in the bucket could not be read");
        }
        throw storageTrouble(error);
      }
    },
    /** Makes the catalogue what the bucket's list is; without the server it stays what it was. */
    async follow(owner: string): Promise<void> {
      await compare(owner).catch((error) => {
        log.warn(
          { reason: reasonOf(error) },
          "the list of files in the bucket could not be read; an older one is shown",
        );
      });
    },
    async publish(file: StoredFile): Promise<void> {
      await whenFree(() => rows.note(file));
      await list.publish(file);
    },
    /** Nothing where it does not have to go. */
    async withdraw(id: string): Promise<void> {
      const owner = rows.ownerOfWithdrawn(id);
      if (owner === undefined) return;
      await list.withdraw(owner, id);
      await whenFree(() => rows.forget(id));
    },
  };
}
