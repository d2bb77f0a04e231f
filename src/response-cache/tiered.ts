// The response cache in two tiers: memory in front of a bucket, which outlives the process and which several gateways share.

import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { createSmallObjects } from "../object-storage/small-objects.ts";
import type { CachedAnswer, CacheStatistics, ModelCacheCounts, RequestKey, ResponseCache } from "./cache.ts";
import { createFarTier, type FarBounds } from "./far-tier.ts";
import { createMemoryCache, entryBytes } from "./memory.ts";
import { MAX_COUNTED_MODELS, OTHER_MODELS } from "./model-counters.ts";

interface TieredCacheParts {
  settings: Settings["response_cache"];
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
  seed: number;
}

/** Answers of a model that memory counted as misses and stores, although the bucket had them. */
interface FromBucket {
  hits: number;
  promotions: number;
}

/** Keeps its entries over changes of the settings, except for those of the bucket. */
export interface TieredCache extends ResponseCache {
  apply(settings: Settings["response_cache"]): void;
}

export function createTieredCache({ settings, clock, log, seed }: TieredCacheParts): TieredCache {
  let { l1, promote_on_hit, l1_promotion_ttl } = settings.tiered;
  let { ttl_override } = settings.tiered.l2;
  const { l2 } = settings.tiered;
  const near = createMemoryCache({ ...nearBounds(settings), now: clock.now, seed });
  const far = createFarTier({
    objects: createSmallObjects(l2),
    prefix: l2.key_prefix,
    bounds: farBounds(settings),
    clock,
    log,
    cleared: near.clear,
  });
  const fromBucket = new Map<string, FromBucket>();

  function countersOf(model: string): FromBucket {
    const name = fromBucket.has(model) || fromBucket.size < MAX_COUNTED_MODELS ? model : OTHER_MODELS;
    const counters = fromBucket.get(name) ?? { hits: 0, promotions: 0 };
    fromBucket.set(name, counters);
    return counters;
  }

  function keepNear(key: RequestKey, answer: CachedAnswer, ttlMs: number): boolean {
    if (answer.body.length > l1.max_value_size) return false;
    near.put(key, answer, ttlMs);
    return true;
  }

  async function orPromoted(
    looking: NonNullable<ReturnType<typeof far.get>>,
    key: RequestKey,
    model: string,
  ): Promise<CachedAnswer | undefined> {
    const found = await looking;
    if (found === undefined) return undefined;
    const { answer, form, leftMs } = found;
    const counters = countersOf(model);
    counters.hits++;
    const { otherForm, question } = key;
    const kept: RequestKey = { form, otherForm, question, sketch: (secret) => key.sketch(secret) };
    if (promote_on_hit && keepNear(kept, answer, Math.min(l1_promotion_ttl, leftMs))) counters.promotions++;
    return answer;
  }

  return {
    apply(next) {
      ({ l1, promote_on_hit, l1_promotion_ttl } = next.tiered);
      ({ ttl_override } = next.tiered.l2);
      near.resize(nearBounds(next));
      far.resize(farBounds(next));
    },
    get(key, model) {
      const answer = near.get(key, model);
      if (answer !== undefined) {
        far.passedBy(model);
        return answer;
      }
      const looking = far.get(key, model);
      return looking && orPromoted(looking, key, model);
    },
    put(key, answer, ttlMs) {
      keepNear(key, answer, ttlMs);
      far.put(key, answer, ttl_override ?? ttlMs, entryBytes(key, answer));
    },
    async clear(model) {
      const removed = near.clear(model);
      await far.clear(model);
      return removed;
    },
    stats(): CacheStatistics {
      const { models, ...counted } = near.stats();
      const told = models.map((row) => withBucket(row, fromBucket.get(row.model)));
      let hits = 0;
      let promotions = 0;
      for (const counters of fromBucket.values()) {
        hits += counters.hits;
        promotions += counters.promotions;
      }
      const { connected, ...l2Counts } = far.stats();
      return {
        ...counted,
        backend: "tiered",
        connected,
        hits: counted.hits + hits,
        misses: counted.misses - hits,
        stores: counted.stores - promotions,
        l2: l2Counts,
        models: told,
      };
    },
  };
}

function nearBounds({ capacity, max_total_size }: Settings["response_cache"]) {
  return { capacity, maxBytes: max_total_size };
}

function farBounds({
  max_response_size,
  max_stream_buffer_size,
  max_total_size,
}: Settings["response_cache"]): FarBounds {
  return { maxAnswerBytes: Math.max(max_response_size, max_stream_buffer_size), maxReadBytes: max_total_size };
}

function withBucket(row: ModelCacheCounts, counted: FromBucket | undefined): ModelCacheCounts {
  if (counted === undefined) return row;
  const { hits, promotions } = counted;
  return { ...row, hits: row.hits + hits, misses: row.misses - hits, stores: row.stores - promotions };
}
