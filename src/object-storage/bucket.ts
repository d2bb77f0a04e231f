// A bucket of an S3-compatible server. The runtime's client signs the requests; they are sent by fetch, which has a time
// limit from byte to byte, and can be given up at any of them.

import { readBounded } from "../lib/read-bounded.ts";

export interface BucketSettings {
  /** Undefined: that of AWS in the region. */
  endpoint?: string | undefined;
  bucket?: string | undefined;
  region: string;
  access_key?: string | undefined;
  secret_key?: string | undefined;
}

/** The server said something else than yes or no. Neither keys nor addresses are in it. */
export class BucketTrouble extends Error {
  override readonly name = "BucketTrouble";
  /** Undefined where the answer itself is wrong. */
  readonly status: number | undefined;
  /** The server's own, such as "NoSuchBucket". */
  readonly code: string | undefined;

  constructor(message: string, { status, code }: { status?: number; code?: string | undefined } = {}) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The members of fetch's options that a request may have; `timeout` is in milliseconds, from one byte to the next. */
type BucketRequest = Pick<BunFetchRequestInit, "body" | "headers" | "signal" | "timeout">;

export type AskBucket = (
  method: "GET" | "HEAD" | "PUT" | "DELETE",
  key: string,
  options: BucketRequest,
) => Promise<Response>;

/** Clocks differ, and a request may wait for its connection. */
const SIGNED_FOR_SECONDS = 300;

const MAX_PASSED_BYTES = 16 * 1024;
const CODE = /<Code>([A-Za-z0-9.]{1,64})<\/Code>/;

/** The bucket stands in the path, which every server understands. */
export function createBucket({ endpoint, bucket, region, access_key, secret_key }: BucketSettings): AskBucket {
  const client = new Bun.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    bucket: bucket ?? "",
    region,
    accessKeyId: access_key ?? "",
    secretAccessKey: secret_key ?? "",
    virtualHostedStyle: false,
  });
  return (method, key, { headers, ...options }) =>
    fetch(client.presign(key, { method, expiresIn: SIGNED_FOR_SECONDS }), {
      method,
      headers: { "accept-encoding": "identity", ...headers },
      // A signature is for this server only, so no redirect is followed.
      redirect: "manual",
      ...options,
    } as BunFetchRequestInit);
}

/** Reads the rest of an answer that is not needed, so that its connection can be used again. */
export async function passOver(response: Response): Promise<void> {
  await readBounded(response.body, MAX_PASSED_BYTES);
}

/** Reads an unexpected answer to its end, for its error. */
export async function readTrouble(response: Response): Promise<BucketTrouble> {
  const body = await readBounded(response.body, MAX_PASSED_BYTES);
  const [, code] = CODE.exec(new TextDecoder().decode(body)) ?? [];
  const { status } = response;
  return new BucketTrouble(code === undefined ? `HTTP ${status}` : `HTTP ${status} ${code}`, { status, code });
}
