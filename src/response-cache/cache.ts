// What a response cache is: complete answers by key, whichever tier keeps them.

import type { ByteAllowance } from "../lib/byte-allowance.ts";
import type { Eventually } from "../lib/eventually.ts";
/** How an answer is sent; one question may be answered in several forms. */
export type AnswerForm = "plain" | "stream" | "stream+usage";

/**
 * The question, its owner and the form of the answer. Requests are identical when both texts are equal: nothing here is
 * shortened, so that no two can be confused. A tier outside the process names its entries as suits it, such as by the SHA-256
 * of the question and the form.
 */
export interface RequestKey {
  /** Written when it is first asked for. */
  readonly question: string;
  readonly form: AnswerForm;
  /** The form that an answer in `form` can be made of, if there is one; see replay.ts. */
  readonly otherForm: AnswerForm | undefined;
  /**
   * A number of 32 bits that costs far less than the question. Equal questions have equal sketches; others seldom have,
   * unless a client crafts them. With a secret seed a client cannot know which sketches are equal.
   */
  sketch(seed: number): number;
}

/** Plain data, so that a tier outside the process can write it down. */
export interface CachedAnswer {
  form: "plain" | "stream";
  model: string;
  contentType: string;
  /** Exactly what the first client received. */
  body: Uint8Array;
}

export interface ModelCacheCounts {
  model: string;
  hits: number;
  misses: number;
  stores: number;
  /** Kept now; null where they are not counted. */
  entries: number | null;
  bytes: number | null;
}

/** null where only the server that keeps the answers could know the number, and does not report it. */
export interface CacheStatistics {
  backend: "memory" | "tiered" | "redis";
  /** Of a tier outside the process: whether it is used at the moment. */
  connected?: boolean;
  capacity: number | null;
  maxBytes: number | null;
  entries: number | null;
  bytes: number | null;
  hits: number;
  misses: number;
  stores: number;
  /** Answers that made room for others. */
  evictions: number | null;
  /** Answers that were found, but too old. */
  expirations: number | null;
  /** The first models seen; whatever comes beyond the limit is counted as OTHER_MODELS. */
  models: ModelCacheCounts[];
  /** Of a bucket behind the memory; the other numbers are of both, or of the memory alone where they are of what is kept. */
  l2?: BucketStatistics;
}

export interface BucketStatistics {
  hits: number;
  misses: number;
  /** Objects that are no answer to the question, or too old. */
  unusable: number;
  written: number;
  /** Writes that failed; they are tried again. */
  failures: number;
  /** Answers that were not written, because too many waited. */
  dropped: number;
  /** Answers that wait to be written. */
  queued: number;
  queuedBytes: number;
}

/** A cache, and the memory for streams that may be stored when they are complete. */
export interface CacheInUse {
  store: ResponseCache;
  streams: ByteAllowance;
}

/** The answers are forgotten by this gateway, but not yet where others find them. */
export class ClearedHereOnly extends Error {
  override readonly name = "ClearedHereOnly";
}

/**
 * A tier outside the process answers its own trouble with undefined (a miss) or by storing nothing: a cache that is
 * down must never fail a request.
 */
export interface ResponseCache {
  /**
   * The answer in the form that is asked for, else in the other one: a tier can find either in one round trip. Both
   * together count as one hit or one miss of the model.
   */
  get(key: RequestKey, model: string): Eventually<CachedAnswer | undefined>;
  /** Keeps an answer in the key's own form. */
  put(key: RequestKey, answer: CachedAnswer, ttlMs: number): Eventually<void>;
  /** Forgets the answers of one model, or all; returns how many. Throws ClearedHereOnly where that is not all of them. */
  clear(model?: string): Eventually<number>;
  stats(): Eventually<CacheStatistics>;
}
