// Why a bucket could not be asked, in words for the log: neither an address nor a key is in them.

import { BucketTrouble } from "../object-storage/bucket.ts";

export function reasonOf(error: unknown): string {
  if (error instanceof BucketTrouble) return error.message;
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (name === "TimeoutError") return "no answer in time";
  return typeof code === "string" ? code : typeof name === "string" ? name : "unknown error";
}
