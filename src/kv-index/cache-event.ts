// What engines tell of their prefix caches: one event of such a stream, read without trust.

import { isObject, parseObject } from "../lib/json.ts";
import type { SseEvent } from "../protocols/sse.ts";

const ACTIONS = ["created", "evicted", "offloaded", "reloaded", "purged"] as const;

type CacheAction = (typeof ACTIONS)[number];

export interface CacheEvent {
  action: CacheAction;
  /** Both halves of the hash; undefined: the whole cache, which only `purged` may say. */
  hash: { low: number; high: number } | undefined;
  /** True for the storage behind the GPU; undefined where the event does not say. */
  isWarm: boolean | undefined;
}

const HASH = /^[0-9a-f]{16}$/i;
/** Of the tier, and of the action: "GpuHot" and "gpu_hot" are one, "CacheCreated" and "cache_created" too. */
const SEPARATORS = /[_\-\s]/g;

/** Undefined for what is no event of a cache, or names no hash. */
export function readCacheEvent({ name, data }: SseEvent): CacheEvent | undefined {
  const value = parseObject(data);
  if (!isObject(value)) return undefined;
  const { prefix_hash: hash, tier, action, event, type } = value;
  const said = [name, action, event, type].map(actionOf).find((each) => each !== undefined);
  if (said === undefined) return undefined;
  const isWarm = tierOf(tier);
  if (typeof hash === "string" && HASH.test(hash)) {
    const high = Number.parseInt(hash.slice(0, 8), 16);
    const low = Number.parseInt(hash.slice(8), 16);
    return { action: said, hash: { low, high }, isWarm };
  }
  const isOfAll = said === "purged" && (hash === undefined || hash === null || hash === "");
  return isOfAll ? { action: said, hash: undefined, isWarm } : undefined;
}

function actionOf(spelling: unknown): CacheAction | undefined {
  if (typeof spelling !== "string") return undefined;
  const plain = spelling.replaceAll(SEPARATORS, "").toLowerCase();
  return ACTIONS.find((action) => plain === `cache${action}` || plain === action);
}

function tierOf(spelling: unknown): boolean | undefined {
  if (typeof spelling !== "string") return undefined;
  const plain = spelling.replaceAll(SEPARATORS, "").toLowerCase();
  if (plain === "storagewarm") return true;
  return plain === "gpuhot" ? false : undefined;
}
