// Wrong credentials for the admin API, counted per address: after too many of them the address has to wait.

import { clientGroup } from "../access/client-address.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Clock } from "../lib/clock.ts";

export interface AttemptLimits {
  max_failed_attempts: number;
  /** Milliseconds. */
  failed_attempts_window: number;
}

export interface FailedAttempts {
  /** Throws 429 while the address has to wait, whatever it presents: else every guess would be answered. */
  requireRoom(address: string | undefined, limits: AttemptLimits): void;
  record(address: string | undefined, limits: AttemptLimits): void;
}

interface Count {
  failures: number;
  startedMs: number;
}

/** Addresses that are remembered; with more of them the one that was quiet for longest is forgotten. */
const MAXIMUM_ADDRESSES = 10_000;
const MAXIMUM_BYTES = 2 * 1024 * 1024;

/** All peers on unix sockets together. */
const UNIX_PEERS = "unix:";

export function createFailedAttempts({ now, wallTime }: Clock): FailedAttempts {
  const counts = new BoundedMap<Count>({
    maxEntries: MAXIMUM_ADDRESSES,
    maxBytes: MAXIMUM_BYTES,
    ttlMs: Number.POSITIVE_INFINITY, // the window may change at any time, and is looked at below
    now,
  });
  const groupOf = (address: string | undefined) => (address === undefined ? UNIX_PEERS : clientGroup(address));

  function countOf(group: string, windowMs: number): Count | undefined {
    const count = counts.get(group);
    return count !== undefined && now() - count.startedMs < windowMs ? count : undefined;
  }

  return {
    requireRoom(address, { max_failed_attempts: limit, failed_attempts_window: windowMs }) {
      const count = countOf(groupOf(address), windowMs);
      if (count === undefined || count.failures < limit) return;
      const restMs = Math.max(0, count.startedMs + windowMs - now());
      const seconds = Math.max(1, Math.ceil(restMs / 1000));
      throw new GatewayError(
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
    record(address, { failed_attempts_window: windowMs }) {
      const group = groupOf(address);
      const count = countOf(group, windowMs) ?? { failures: 0, startedMs: now() };
      counts.set(group, { ...count, failures: count.failures + 1 }, 32);
    },
  };
}
