// Contents of files in a bucket of an S3-compatible server: <prefix><name of the list>/<id>.

import { unlink } from "node:fs/promises";
import type { Settings } from "../config/sections/registry.ts";
import { bucketClient } from "../object-storage/bucket.ts";
import type { Catalogue } from "./catalogue.ts";
import type { ContentStorage } from "./content-storage.ts";

/** How long the server may take for a question without content. */
const QUESTION_TIMEOUT_MS = 10_000;
/** Parts of a large file, of which some are in memory at a time. */
const PART_BYTES = 5 * 1024 * 1024;
const PARTS_AT_A_TIME = 2;

/** Lists that share a bucket do not see the objects of each other. */
export function createS3Storage(settings: Settings["files"]["s3"], catalogue: Catalogue): ContentStorage {
  const client = bucketClient(settings);
  const folder = `${settings.key_prefix}${catalogue.name()}/`;
  const keyOf = (id: string) => folder + id;
  const sizeOf = async (id: string) => (await orMissing(inTime(client.stat(keyOf(id)))))?.size;
  const remove = async (id: string) => {
    await orMissing(inTime(client.delete(keyOf(id))));
  };
  return {
    notesLeftovers: true,
    async keep({ id, path, bytes }, mediaType) {
      const options = { type: mediaType, partSize: PART_BYTES, queueSize: PARTS_AT_A_TIME };
      await client.write(keyOf(id), Bun.file(path), options);
      if ((await sizeOf(id)) !== bytes) throw new Error("the object is not what was sent");
      await unlink(path);
    },
    remove,
    async slice(id, bytes, start, end) {
      if ((await sizeOf(id)) !== bytes) return undefined;
      // A response of the S3 file itself would send the client to the server.
      return start >= end ? new Blob([]) : client.file(keyOf(id)).slice(start, end).stream();
    },
    /** Objects are what the list notes. A row without object stays: the bucket may be there again tomorrow. */
    async recover(_catalogue, { leftovers, isClosed }) {
      let removedContents = 0;
      for (const id of leftovers) {
        if (isClosed()) break;
        if (!catalogue.isKnown(id)) {
          await remove(id);
          removedContents++;
        }
        catalogue.forget(id);
      }
      return { removedContents, removedRows: 0 };
    },
  };
}

async function orMissing<Result>(question: Promise<Result>): Promise<Result | undefined> {
  try {
    return await question;
  } catch (error) {
    if (/^(NoSuchKey|NotFound)$/.test((error as { code?: string }).code ?? "")) return undefined;
    throw error;
  }
}

async function inTime<Result>(question: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("the server did not answer in time")), QUESTION_TIMEOUT_MS);
  try {
    return await Promise.race([question, late]);
  } finally {
    clearTimeout(timer);
  }
}
