// Small objects of a bucket, read and written whole, within a size limit and a time limit.

import { readBounded } from "../lib/read-bounded.ts";
import { type BucketSettings, type BucketTrouble, createBucket, passOver, readTrouble } from "./bucket.ts";

export interface SmallObjects {
  /**
   * Undefined where there is none, "too-large" where it is not what is looked for. Throws, or rejects with the signal's
   * reason.
   * @param onChunk - what it throws ends the reading
   */
  get(
    name: string,
    options: { maxBytes: number; signal: AbortSignal; onChunk?: (bytes: number, chunk: Uint8Array) => void },
  ): Promise<Uint8Array | "too-large" | undefined>;
  put(name: string, body: Uint8Array, signal: AbortSignal): Promise<void>;
  /** One that is not there is no fault. */
  remove(name: string, signal: AbortSignal): Promise<void>;
}

export function createSmallObjects(settings: BucketSettings): SmallObjects {
  const ask = createBucket(settings);
  return {
    async get(name, { maxBytes, signal, onChunk }) {
      const response = await ask("GET", name, { signal, timeout: false });
      if (response.status === 200) return (await readBounded(response.body, maxBytes, onChunk)) ?? "too-large";
      const trouble = await readTrouble(response);
      if (isMissing(trouble)) return undefined;
      throw trouble;
    },
    async put(name, body, signal) {
      const response = await ask("PUT", name, { body: body as Uint8Array<ArrayBuffer>, signal, timeout: false });
      if (response.status !== 200) throw await readTrouble(response);
      await passOver(response);
    },
    async remove(name, signal) {
      const response = await ask("DELETE", name, { signal, timeout: false });
      if (response.ok) return await passOver(response);
      const trouble = await readTrouble(response);
      if (!isMissing(trouble)) throw trouble;
    },
  };
}

/** Without the bucket nothing is known of its objects. */
function isMissing({ status, code }: BucketTrouble): boolean {
  return status === 404 && code !== "NoSuchBucket";
}
