// What a process has learnt of KV caches, gathered for the others: bounded, because to know less costs only a better choice.

import type { KvNews, KvTeller } from "../kv-index/kv-teller.ts";

/** A lookup may be so much behind. */
const INTERVAL_MS = 20;
/** Of one set of news; what is beyond it is not told. */
const MAX_BLOCKS = 16_384;
const MAX_OUTCOMES = 4_096;
/** Of one backend, so that none leaves another without words. */
const MAX_EVENTS = 4_096;

/**
 * @param send - hands the news to the others
 * @param clear - has them forget, behind what was sent before
 */
export function createKvNews(send: (news: KvNews) => void, clear: (backendName: string | undefined) => void) {
  let news = nothing();
  let blocks = 0;
  const eventsOf = new Map<string, number>();
  let timer: Timer | undefined;

  function flush(): void {
    clearTimeout(timer);
    if (timer === undefined) return;
    timer = undefined;
    const gathered = news;
    news = nothing();
    blocks = 0;
    eventsOf.clear();
    send(gathered);
  }

  function soon(): KvNews {
    timer ??= setTimeout(flush, INTERVAL_MS);
    return news;
  }

  return {
    learnt(backendName, words) {
      if (blocks + words.length / 2 > MAX_BLOCKS) return;
      blocks += words.length / 2;
      soon().learnt.push([backendName, words]);
    },
    told(backendName, event) {
      const events = eventsOf.get(backendName) ?? 0;
      if (events === MAX_EVENTS) return;
      eventsOf.set(backendName, events + 1);
      soon().told.push([backendName, event]);
    },
    ended(backendName, hasFailed, isConfirmed) {
      if (news.ended.length < MAX_OUTCOMES) soon().ended.push([backendName, hasFailed, isConfirmed]);
    },
    counted(hits, lookups) {
      const { hits: before, lookups: asked } = soon();
      news.hits = before + hits;
      news.lookups = asked + lookups;
    },
    cleared(backendName) {
      flush();
      clear(backendName);
    },
    /** What was gathered is sent now. */
    flush,
  } satisfies KvTeller & { flush(): void };
}

function nothing(): KvNews {
  return { learnt: [], told: [], ended: [], hits: 0, lookups: 0 };
}
