// What processes that share one index of KV caches tell each other.

import type { CacheEvent } from "./cache-event.ts";

/** Changes since the news before. */
export interface KvNews {
  /** Backends that hold these blocks now, two words for each. */
  learnt: [backendName: string, words: Uint32Array][];
  told: [backendName: string, event: CacheEvent][];
  ended: [backendName: string, hasFailed: boolean, isConfirmed: boolean | undefined][];
  hits: number;
  lookups: number;
}

/** Receives what requests and engines say. */
export interface KvTeller {
  learnt(backendName: string, words: Uint32Array): void;
  told(backendName: string, event: CacheEvent): void;
  ended(backendName: string, hasFailed: boolean, isConfirmed: boolean | undefined): void;
  counted(hits: number, lookups: number): void;
  /** Undefined: all backends. */
  cleared(backendName: string | undefined): void;
}
