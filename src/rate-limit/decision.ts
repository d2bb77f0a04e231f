// What the limiter decided, as headers and as the 429.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { BucketPolicy, BucketReading } from "./token-bucket.ts";

/** The owner of the limit that decided. */
export type LimitScope = "client" | "key" | "global" | "backend";

export interface Decision {
  allowed: boolean;
  /** The limit that refuses; of an admitted request the one that is nearest to refusing. */
  scope: LimitScope;
  /** Most requests at once; earned again within the window. */
  limit: number;
  windowMs: number;
  remaining: number;
  retryAfterMs: number;
  /** When all of `limit` is there again: milliseconds since the Unix epoch. */
  resetAtMs: number;
}

/** `epochMs` makes a time since the Unix epoch of those in the reading. */
export function decisionOf(
  reading: BucketReading,
  scope: LimitScope,
  { capacity, fillUs }: BucketPolicy,
  epochMs: number,
): Decision {
  const { allowed, remaining, retryAfterMs, resetAtMs } = reading;
  const windowMs = fillUs / 1000;
  return { allowed, scope, limit: capacity, windowMs, remaining, retryAfterMs, resetAtMs: epochMs + resetAtMs };
}

const WHOSE: Record<LimitScope, string> = {
  client: "this client",
  key: "this API key",
  global: "all clients together",
  backend: "the backends of this model",
};

/** Adds the state of the limit; X-RateLimit-Reset is in Unix seconds, rounded up. */
export function writeRateLimitHeaders(decision: Decision, into: Record<string, string>): void {
  into["X-RateLimit-Limit"] = String(decision.limit);
  into["X-RateLimit-Remaining"] = String(decision.remaining);
  into["X-RateLimit-Reset"] = String(Math.ceil(decision.resetAtMs / 1000));
  if (!decision.allowed) into["Retry-After"] = String(retryAfterSeconds(decision));
}

/** The refusal of a decision that does not allow. */
export class RateLimitError extends GatewayError {
  readonly scope: LimitScope;
  readonly decision: Decision;

  constructor(decision: Decision) {
    const { scope, limit, windowMs, resetAtMs } = decision;
    const seconds = retryAfterSeconds(decision);
    const headers: Record<string, string> = {};
    writeRateLimitHeaders(decision, headers);
    super(
      ERRORS.rateLimited,
      `Rate limit exceeded: ${countOf(limit)} per ${windowText(windowMs)} for ${WHOSE[scope]}. Try again in ${seconds} s.`,
      {
        headers,
        details: {
          limit,
          window: windowText(windowMs),
          retry_after: seconds,
          // The same moment as X-RateLimit-Reset, in whole seconds too.
          reset_at: new Date(Math.ceil(resetAtMs / 1000) * 1000).toISOString(),
        },
      },
    );
    this.scope = scope;
    this.decision = decision;
  }
}

/** Rounded up, and at least 1: a client that comes back after 0 seconds would only be refused again. */
function retryAfterSeconds(decision: Decision): number {
  return Math.max(1, Math.ceil(decision.retryAfterMs / 1000));
}

function countOf(limit: number): string {
  return limit === 1 ? "1 request" : `${limit} requests`;
}

/** In the spelling of the configuration: "60s", "500ms". */
function windowText(windowMs: number): string {
  return windowMs % 1000 === 0 ? `${windowMs / 1000}s` : `${Math.round(windowMs)}ms`;
}
