// The response cache in a worker: the primary keeps the answers, so that what one worker has got is a hit for all.

import type { ResponseCache } from "../response-cache/cache.ts";
import type { Channel } from "./channel.ts";
import type { PrimaryDesk } from "./messages.ts";

/** The primary asks a bucket for a second at most. */
const LOOKUP_MS = 1_250;

export function createRemoteCache(channel: Channel<PrimaryDesk>, seed: number): ResponseCache {
  return {
    get(key, model) {
      const { question, form, otherForm } = key;
      return channel.call("cached", [{ question, form, otherForm, sketch: key.sketch(seed), model }], LOOKUP_MS);
    },
    put(key, answer, ttlMs) {
      const { question, form, otherForm } = key;
      const asked = { question, form, otherForm, sketch: key.sketch(seed), model: answer.model };
      channel.tell("cache", asked, answer, ttlMs);
      // The client may ask again as soon as it has its answer.
      channel.flush();
    },
    clear: () => 0, // the admin API asks the primary's own
    stats: () => Promise.reject(new Error("a worker keeps no answers")),
  };
}
