// Wrong credentials for the admin API, counted per address, and per user where one is named: after too many of them
// the next one has to wait, longer with each.

import { clientGroup } from "../access/client-address.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Clock } from "../lib/clock.ts";

interface AttemptLimits {
  max_failed_attempts: number;
  /** Milliseconds without a failure after which those before are forgotten. */
  failed_attempts_window: number;
}

interface Guesser {
  /** Undefined for a peer on a unix socket. */
  address: string | undefined;
  /** Digest of the user's name, where the method has one. */
  user?: string | undefined;
}

interface Count {
  failures: number;
  lastMs: number;
}

/** Guessers that are remembered; with more of them the one that was quiet for longest is forgotten. */
const MAXIMUM_GUESSERS = 10_000;
const MAXIMUM_BYTES = 4 * 1024 * 1024;

const FIRST_WAIT_MS = 1_000;
/** Short: behind a proxy that is not trusted, the operator has the same address as the guesser. */
const LONGEST_WAIT_MS = 10_000;

/** All peers on unix sockets together. */
const UNIX_PEERS = "unix:";

export function createFailedAttempts({ now, wallTime }: Clock) {
  const counts = new BoundedMap<Count>({
    maxEntries: MAXIMUM_GUESSERS,
    maxBytes: MAXIMUM_BYTES,
    ttlMs: Number.POSITIVE_INFINITY, // the window may change at any time, and is looked at below
    now,
  });

  function keyOf({ address, user = "" }: Guesser): string {
    return `${address === undefined ? UNIX_PEERS : clientGroup(address)} ${user}`;
  }

  function countOf(key: string, windowMs: number): Count | undefined {
    const count = counts.get(key);
    return count !== undefined && now() - count.lastMs < windowMs ? count : undefined;
  }

  return {
    /** The refusal while the guesser has to wait. */
    refusal(guesser: Guesser, limits: AttemptLimits): GatewayError | undefined {
      const { max_failed_attempts: limit, failed_attempts_window: windowMs } = limits;
      const count = countOf(keyOf(guesser), windowMs);
      if (count === undefined || count.failures < limit) return undefined;
      const longestMs = Math.min(LONGEST_WAIT_MS, windowMs);
      const waitMs = Math.min(longestMs, FIRST_WAIT_MS * 2 ** (count.failures - limit));
      const restMs = count.lastMs + waitMs - now();
      if (restMs <= 0) return undefined;
      const seconds = Math.ceil(restMs / 1000);
      return new GatewayError(
        ERRORS.rateLimited,
        `Too many wrong credentials from this address (admin.auth.max_failed_attempts). Try again in ${seconds} s.`,
        {
          headers: { "Retry-After": String(seconds) },
          details: {
            limit,
            window: `${windowMs / 1000}s`,
            retry_after: seconds,
            reset_at: new Date(wallTime() + restMs).toISOString(),
          },
        },
      );
    },
    record(guesser: Guesser, { failed_attempts_window: windowMs }: AttemptLimits): void {
      const key = keyOf(guesser);
      const failures = (countOf(key, windowMs)?.failures ?? 0) + 1;
      counts.set(key, { failures, lastMs: now() }, 32);
    },
  };
}
