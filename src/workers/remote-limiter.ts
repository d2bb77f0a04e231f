// The limits in a worker: the primary owns the buckets, and is asked for each decision while there are limits.

import type { Settings } from "../config/sections/registry.ts";
import type { Decision } from "../rate-limit/decision.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { Channel } from "./channel.ts";
import type { PrimaryDesk } from "./messages.ts";

/** A backend that has refused is asked again after this time, because another worker may have given a token back. */
const MOST_REFUSED_MS = 250;

/** A primary that does not answer lets requests in: it is being replaced, or the whole gateway is. */
export function createRemoteLimiter(
  { rate_limiting }: Pick<Settings, "rate_limiting">,
  channel: Pick<Channel<PrimaryDesk>, "call" | "tell">,
  now: () => number,
): Limiter {
  const { enabled, bypass_keys } = rate_limiting;
  /** What backends refused last, and until when that holds. */
  const refusals = new Map<string, { decision: Decision; untilMs: number }>();

  function refusalOf(name: string) {
    const refusal = refusals.get(name);
    return refusal !== undefined && now() < refusal.untilMs ? refusal : undefined;
  }

  return {
    limitsRequests: enabled,
    hasBypassKeys: bypass_keys.length > 0,
    limitsBackends: enabled,
    takesLater: enabled,
    take: async (query) => (await channel.call("take", [query]))?.decision,
    takeForGuess: async (query) => (await channel.call("takeForGuess", [query]))?.decision,
    guessRefusal: () => undefined, // of what only the primary answers
    putBack: (query) => channel.tell("putBack", query),
    backendHasRoom: (name) => !enabled || refusalOf(name) === undefined,
    takeBackend(name) {
      if (!enabled) return true;
      return channel.call("takeBackend", [name]).then((answer) => {
        const decision = answer?.refusal;
        if (decision === undefined) return true;
        refusals.set(name, { decision, untilMs: now() + Math.min(decision.retryAfterMs, MOST_REFUSED_MS) });
        return false;
      });
    },
    backendRefusal(names) {
      const found = names.map(refusalOf);
      if (!enabled || found.length === 0 || found.includes(undefined)) return undefined;
      const decisions = found.flatMap((refusal) => refusal?.decision ?? []);
      return decisions.reduce((soonest, each) => (each.retryAfterMs < soonest.retryAfterMs ? each : soonest));
    },
    size: 0,
  };
}
