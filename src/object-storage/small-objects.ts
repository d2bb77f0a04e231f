// Small objects of a bucket, read and written whole, within a bound and until somebody has waited long enough. The runtime's
// client signs the requests; they are sent by fetch, which can be given up at any byte.

import { readBounded } from "../lib/read-bounded.ts";
import { type BucketSettings, bucketClient } from "./bucket.ts";

/** The server said something else than yes or no. Neither keys nor addresses are in it. */
export class BucketTrouble extends Error {
  override readonly name = "BucketTrouble";
}

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
}

/** Clocks differ, and a request may wait for its connection. */
const SIGNED_FOR_SECONDS = 300;

const MAX_PASSED_BYTES = 16 * 1024;

export function createSmallObjects(settings: BucketSettings): SmallObjects {
  const client = bucketClient(settings);

  function ask(method: "GET" | "PUT", name: string, signal: AbortSignal, body?: Uint8Array): Promise<Response> {
    const address = client.presign(name, { method, expiresIn: SIGNED_FOR_SECONDS });
    return fetch(address, {
      method,
      ...(body && { body: body as Uint8Array<ArrayBuffer> }),
      headers: { "accept-encoding": "identity" },
      // What is signed is meant for this server alone.
      redirect: "manual",
      timeout: false,
      signal,
    } as RequestInit);
  }

  return {
    async get(name, { maxBytes, signal, onChunk }) {
      const response = await ask("GET", name, signal);
      if (response.status !== 200) {
        await passOver(response);
        if (response.status === 404) return undefined;
        throw new BucketTrouble(`HTTP ${response.status}`);
      }
      return (await readBounded(response.body, maxBytes, onChunk)) ?? "too-large";
    },
    async put(name, body, signal) {
      const response = await ask("PUT", name, signal, body);
      await passOver(response);
      if (response.status !== 200) throw new BucketTrouble(`HTTP ${response.status}`);
    },
  };
}

/** What it says is nothing that anybody needs; a connection whose answer was read can be used again. */
async function passOver(response: Response): Promise<void> {
  await readBounded(response.body, MAX_PASSED_BYTES);
}
