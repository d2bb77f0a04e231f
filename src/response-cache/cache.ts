// What a response cache is: complete answers by key, whichever tier keeps them.

/** Plain data, so that a tier outside the process can write it down. */
export interface CachedAnswer {
  form: "plain" | "stream";
  /** The model that was asked for. */
  model: string;
  contentType: string;
  /** Exactly what the first client received. */
  body: Uint8Array;
}

export interface ModelStatistics {
  model: string;
  hits: number;
  misses: number;
  stores: number;
  /** Kept now. */
  entries: number;
  bytes: number;
}

export interface CacheStatistics {
  backend: "memory";
  capacity: number;
  max_bytes: number;
  entries: number;
  bytes: number;
  hits: number;
  misses: number;
  stores: number;
  /** Answers that made room for others. */
  evictions: number;
  /** Answers found too old. */
  expirations: number;
  /** The first models seen; whatever comes beyond the limit is counted as OTHER_MODELS. */
  models: ModelStatistics[];
}

/** A value at once from memory, later from a tier outside the process: `await` only what is a promise. */
export type Eventually<Value> = Value | Promise<Value>;

/**
 * A tier outside the process answers its own trouble with undefined (a miss) or by storing nothing: a cache that is
 * down must never fail a request.
 */
export interface ResponseCache {
  /**
   * The first of the keys that is present. Several, so that one round trip finds an answer in either form; together
   * they count as one hit or one miss of the model.
   */
  get(keys: readonly string[], model: string): Eventually<CachedAnswer | undefined>;
  put(key: string, answer: CachedAnswer, ttlMs: number): Eventually<void>;
  /** Forgets the answers of one model, or all; returns how many. */
  clear(model?: string): Eventually<number>;
  stats(): Eventually<CacheStatistics>;
}
