// What a batch that several gateways run has in their bucket: its row (batches/rows/<id>), and below batches/data/<id>/ the segments
// of its lines, the results of lines that cannot be asked, and those of segments that are done.

import type { Settings } from "../../config/sections/registry.ts";
import { type AskBucket, createBucket, passOver, readTrouble } from "../../object-storage/bucket.ts";
import { createKeyList, eachPage } from "../../object-storage/object-list.ts";
import { batchTrouble } from "../batch-trouble.ts";

/** For questions, and from one byte to the next. */
const TIME_LIMIT_MS = 10_000;
const STALLED_MS = 30_000;
const REMOVED_AT_ONCE = 16;

export type BatchObjects = ReturnType<typeof createBatchObjects>;

export function createBatchObjects(settings: Settings["files"]["s3"]) {
  const ask = createBucket(settings);
  const list = createKeyList(settings, TIME_LIMIT_MS);
  const root = `${settings.key_prefix}batches/`;

  async function remove(name: string): Promise<void> {
    const response = await ask("DELETE", root + name, { signal: AbortSignal.timeout(TIME_LIMIT_MS) });
    if (response.ok || response.status === 404) return await passOver(response);
    throw await readTrouble(response);
  }

  async function* names(folder: string): AsyncGenerator<string, void> {
    try {
      for await (const page of eachPage(list, root + folder)) yield* page;
    } catch (error) {
      throw batchTrouble(error);
    }
  }

  return {
    put: (name: string, body: Uint8Array) => guarded(() => put(ask, root + name, body, body.byteLength)),
    putFile: (name: string, path: string) =>
      guarded(() => put(ask, root + name, Bun.file(path).stream(), Bun.file(path).size)),
    /** The body of an object; undefined where there is none. */
    get: (name: string) => guarded(() => get(ask, root + name)),
    /** Names below a folder, without the folder. */
    names,
    remove: (name: string) => guarded(() => remove(name)),
    async removeAll(folder: string): Promise<void> {
      let group: string[] = [];
      const flush = async () => {
        await Promise.all(group.map((name) => guarded(() => remove(folder + name))));
        group = [];
      };
      for await (const name of names(folder)) if (group.push(name) >= REMOVED_AT_ONCE) await flush();
      await flush();
    },
  };
}

export const rowName = (id: string) => `rows/${id}`;
export const ROWS = "rows/";
export const dataOf = (id: string) => `data/${id}/`;
export const resultsOf = (id: string) => `${dataOf(id)}results/`;
/** The name of an object has the segment and the token of the claim under which it was written. */
export const resultsName = (id: string, segment: number, name: string) => `${resultsOf(id)}${segment}-${name}`;

async function put(ask: AskBucket, key: string, body: NonNullable<BunFetchRequestInit["body"]>, bytes: number) {
  const headers = { "Content-Length": String(bytes), "Content-Type": "application/octet-stream" };
  const given = bytes === 0 ? new Uint8Array(0) : body;
  const response = await ask("PUT", key, { body: given, headers, timeout: STALLED_MS });
  if (!response.ok) throw await readTrouble(response);
  await passOver(response);
}

async function get(ask: AskBucket, key: string): Promise<Response | undefined> {
  const response = await ask("GET", key, { timeout: STALLED_MS });
  if (response.ok) return response;
  const trouble = await readTrouble(response);
  if (response.status === 404 && trouble.code !== "NoSuchBucket") return undefined;
  throw trouble;
}

/** What waits can be waited for: the storage is there again some time. */
async function guarded<Result>(task: () => Promise<Result>): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    throw batchTrouble(error);
  }
}
