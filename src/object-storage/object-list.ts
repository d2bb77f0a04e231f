// The keys of a bucket below a prefix, page by page in their order.

import { inTime } from "../lib/abortable-delay.ts";
import { type BucketSettings, BucketTrouble } from "./bucket.ts";

/** The most that S3 gives at once. */
const PAGE_KEYS = 1_000;

export interface KeyPage {
  /** Behind the prefix. */
  names: string[];
  isLast: boolean;
}

/** @param after - the name behind which the page begins; "": the first page */
type ListKeys = (prefix: string, after: string) => Promise<KeyPage>;

export function createKeyList(settings: BucketSettings, timeLimitMs: number, pageKeys = PAGE_KEYS): ListKeys {
  const { endpoint, bucket, region, access_key, secret_key } = settings;
  const client = new Bun.S3Client({
    ...(endpoint !== undefined && { endpoint }),
    bucket: bucket ?? "",
    region,
    accessKeyId: access_key ?? "",
    secretAccessKey: secret_key ?? "",
    virtualHostedStyle: false,
  });
  return async (prefix, after) => {
    const asked = client.list({ prefix, maxKeys: pageKeys, ...(after !== "" && { startAfter: prefix + after }) });
    const answer = await inTime(asked, timeLimitMs);
    if (answer === undefined) throw new BucketTrouble("no list of the bucket in time");
    const names = (answer.contents ?? []).map(({ key }) => key.slice(prefix.length));
    return { names, isLast: answer.isTruncated !== true };
  };
}

/** All names below the prefix, a page of them at a time. */
export async function* eachPage(list: ListKeys, prefix: string): AsyncGenerator<string[], void> {
  for (let after = ""; ; ) {
    const { names, isLast } = await list(prefix, after);
    if (names.length > 0) yield names;
    after = names.at(-1) ?? "";
    if (isLast || after === "") return;
  }
}
