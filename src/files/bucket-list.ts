// The list of files in a bucket, which all gateways of the bucket read: a small object with the facts of each file, named by its
// owner and its id.

import type { Settings } from "../config/sections/registry.ts";
import { parseObject } from "../lib/json.ts";
import { createKeyList, type KeyPage } from "../object-storage/object-list.ts";
import { createSmallObjects } from "../object-storage/small-objects.ts";
import type { StoredFile } from "./file-store.ts";

const TIME_LIMIT_MS = 10_000;
/** A file name of 255 characters, an owner and numbers. */
const MAX_FACTS_BYTES = 64 * 1024;

/** Everything rejects with the error of the storage. */
export interface BucketList {
  publish(file: StoredFile): Promise<void>;
  withdraw(owner: string, id: string): Promise<void>;
  /** Undefined: the owner has no such file. "damaged": there is an entry, which no gateway has written like this. */
  read(owner: string, id: string, limitMs?: number): Promise<StoredFile | "damaged" | undefined>;
  /** Ids in their order, from behind one of them ("": from the beginning). */
  page(owner: string, after: string): Promise<KeyPage>;
}

export function createBucketList(
  settings: Settings["files"]["s3"],
  timeLimitMs = TIME_LIMIT_MS,
  pageKeys?: number,
): BucketList {
  const objects = createSmallObjects(settings);
  const list = createKeyList(settings, timeLimitMs, pageKeys);
  const signal = () => AbortSignal.timeout(timeLimitMs);
  // An owner may have any characters, and is not to be read in the names of a bucket.
  const folderOf = (owner: string) => {
    const digest = new Bun.CryptoHasher("sha256").update(owner).digest("hex");
    return `${settings.key_prefix}lists/${digest.slice(0, 32)}/`;
  };
  return {
    publish: (file) => objects.put(folderOf(file.owner) + file.id, Buffer.from(JSON.stringify(file)), signal()),
    withdraw: (owner, id) => objects.remove(folderOf(owner) + id, signal()),
    async read(owner, id, limitMs = timeLimitMs) {
      const given = { maxBytes: MAX_FACTS_BYTES, signal: AbortSignal.timeout(limitMs) };
      const bytes = await objects.get(folderOf(owner) + id, given);
      if (bytes === undefined) return undefined;
      const file = bytes === "too-large" ? undefined : readFacts(bytes);
      return file?.owner === owner && file.id === id ? file : "damaged";
    },
    page: (owner, after) => list(folderOf(owner), after),
  };
}

/** Undefined for an object that is not what a gateway has written. */
function readFacts(bytes: Uint8Array): StoredFile | undefined {
  const value = parseObject(new TextDecoder().decode(bytes));
  if (value === undefined) return undefined;
  const { id, owner, filename, mediaType, purpose, bytes: size, sha256, createdAt, expiresAt } = value;
  const texts = { id, owner, filename, mediaType, purpose, sha256 };
  const numbers = { bytes: size, createdAt, ...(expiresAt !== undefined && { expiresAt }) };
  if (!Object.values(texts).every((text) => typeof text === "string")) return undefined;
  if (!Object.values(numbers).every((number) => Number.isSafeInteger(number))) return undefined;
  return { expiresAt: undefined, ...texts, ...numbers } as unknown as StoredFile;
}
