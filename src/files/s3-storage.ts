// Contents of files in a bucket of an S3-compatible server: <prefix>contents/<id>, and <prefix><name of the catalogue>/<id> where a
// program wrote them that kept no list in the bucket.

import { unlink } from "node:fs/promises";
import type { Settings } from "../config/sections/registry.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { type AskBucket, BucketTrouble, createBucket, passOver, readTrouble } from "../object-storage/bucket.ts";
import { createBucketList } from "./bucket-list.ts";
import type { Catalogue } from "./catalogue.ts";
import type { ContentStorage } from "./content-storage.ts";

/** How long the server may take for a question without content, and for the next byte of a content. */
const TIME_LIMITS = { questionMs: 10_000, stalledMs: 30_000 };

const UPLOAD_ATTEMPTS = 3;
const BETWEEN_ATTEMPTS = { baseDelayMs: 200, maxDelayMs: 2_000, multiplier: 3, jitter: true };

/** Contents up to here are read before the answer begins: it has its length then, and trouble shows in its status. */
const READ_WHOLE_BYTES = 1024 * 1024;

export function createS3Storage(
  settings: Settings["files"]["s3"],
  catalogue: Catalogue,
  { questionMs, stalledMs } = TIME_LIMITS,
): ContentStorage {
  const ask = createBucket(settings);
  const keyOf = (id: string) => `${settings.key_prefix}contents/${id}`;
  const olderKeyOf = (id: string) => `${settings.key_prefix}${catalogue.name()}/${id}`;
  const hasOlder = catalogue.shared?.hasOthers() === true;
  /** Where the content of the id may be. */
  const keysOf = (id: string) => (hasOlder ? [keyOf(id), olderKeyOf(id)] : [keyOf(id)]);

  async function question(method: "HEAD" | "DELETE", key: string): Promise<Response | undefined> {
    const response = await ask(method, key, { signal: AbortSignal.timeout(questionMs) });
    if (response.ok) {
      await passOver(response);
      return response;
    }
    return absent(await readTrouble(response));
  }

  async function sizeOf(key: string): Promise<number | undefined> {
    const length = (await question("HEAD", key))?.headers.get("content-length");
    return typeof length === "string" ? Number(length) : undefined;
  }

  async function remove(id: string): Promise<void> {
    for (const key of keysOf(id)) await question("DELETE", key);
  }

  async function sliceOf(key: string, bytes: number, start: number, end: number) {
    if (start >= end) return (await sizeOf(key)) === bytes ? new Blob([]) : undefined;
    const isWhole = start === 0 && end === bytes;
    const headers: Record<string, string> = isWhole ? {} : { Range: `bytes=${start}-${end - 1}` };
    const response = await ask("GET", key, { headers, timeout: stalledMs });
    if (!response.ok) return absent(await readTrouble(response));
    if (response.body === null || !has(response, { bytes, start, end, isWhole })) {
      await response.body?.cancel();
      return undefined;
    }
    if (end - start > READ_WHOLE_BYTES) return response.body;
    const content = await readBounded(response.body, end - start);
    return content?.byteLength === end - start ? new Blob([content as Uint8Array<ArrayBuffer>]) : undefined;
  }

  return {
    notesLeftovers: true,
    list: createBucketList(settings, questionMs),
    async keep({ id, path, bytes }, mediaType) {
      await putWhole(ask, keyOf(id), { path, bytes, mediaType, stalledMs });
      if ((await sizeOf(keyOf(id))) !== bytes) throw new BucketTrouble("the object is not what was sent");
      await unlink(path);
    },
    remove,
    async slice(id, bytes, start, end) {
      for (const key of keysOf(id)) {
        const found = await sliceOf(key, bytes, start, end);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    /** Objects are what the list notes. A row without object stays: the bucket may be there again tomorrow. */
    async recover({ leftovers, isClosed }) {
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

interface S3Upload {
  path: string;
  bytes: number;
  mediaType: string;
  stalledMs: number;
}

/** In one request, which leaves the whole object or nothing: parts of a broken upload would stay at the server, paid for. */
async function putWhole(ask: AskBucket, key: string, { path, bytes, mediaType, stalledMs }: S3Upload): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await ask("PUT", key, {
        // A file itself would be read into memory where the connection is encrypted.
        body: bytes === 0 ? new Uint8Array(0) : Bun.file(path).stream(),
        headers: { "Content-Length": String(bytes), "Content-Type": mediaType },
        timeout: stalledMs,
      });
      if (!response.ok) throw await readTrouble(response);
      await passOver(response);
      return;
    } catch (error) {
      if (attempt === UPLOAD_ATTEMPTS || !mayPass(error)) throw error;
      await Bun.sleep(backoffDelayMs(BETWEEN_ATTEMPTS, attempt, Math.random));
    }
  }
}

/** Not a refusal, and not a server that has used up its time. */
function mayPass(error: unknown): boolean {
  if (error instanceof BucketTrouble) return error.status === 429 || (error.status ?? 0) >= 500;
  return (error as Error).name !== "TimeoutError";
}

/** Undefined for an object that is not there; answers without a body say no more than the status. */
function absent(trouble: BucketTrouble): undefined {
  if (trouble.status === 404 && /^(NoSuchKey|NotFound)?$/.test(trouble.code ?? "")) return undefined;
  throw trouble;
}

interface S3Question {
  bytes: number;
  start: number;
  end: number;
  isWhole: boolean;
}

/** True if the answer is the range that was asked for, of an object of that size. */
function has({ status, headers }: Response, { bytes, start, end, isWhole }: S3Question): boolean {
  if (!isWhole) return status === 206 && headers.get("content-range") === `bytes ${start}-${end - 1}/${bytes}`;
  return status === 200 && Number(headers.get("content-length") ?? bytes) === bytes;
}
