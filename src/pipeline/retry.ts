// Attempts on one model: which backend next, after which wait, and when to give up.

import type { BackendEntry } from "../backends/board.ts";
import type { Settings } from "../config/sections/registry.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import { isCredentialRefusal, isRetryable, type UpstreamFailure } from "../upstream/failure.ts";

export type RetrySettings = Settings["retry"];

/** The section retry with a backend's overrides. */
export function retrySettingsFor(entry: BackendEntry, retry: RetrySettings): RetrySettings {
  const { retry_override } = entry.backend.settings;
  return retry_override === undefined ? retry : ({ ...retry, ...retry_override } as RetrySettings);
}

/**
 * How long to wait for the next attempt after a failed one, or the rule by which there is none. Who refuses the gateway's
 * credential is not asked again, but others have other credentials. The wait belongs to a backend: one that was not tried yet
 * is asked at once, the same one again only after the backoff or its Retry-After, whichever is longer, max_delay at most.
 */
export function waitBeforeRetry(options: {
  failure: UpstreamFailure;
  /** The model of this backend lacks what another is known to take. */
  isTakenElsewhere?: boolean;
  /** Attempts made so far that count; one that costsNothing counts only when no other backend is left. */
  attempts: number;
  /** Whether a backend is left that was not tried. */
  untriedLeft: boolean;
  retry: RetrySettings;
  random: () => number;
}): number | string {
  const { failure, isTakenElsewhere = false, attempts, untriedLeft, retry, random } = options;
  const isRetried =
    isRetryable(failure, retry.status_codes) || (untriedLeft && (isCredentialRefusal(failure) || isTakenElsewhere));
  if (!isRetried) return whyNotRetried(failure);
  if (attempts >= retry.max_attempts) return `retry.max_attempts is ${retry.max_attempts}`;
  if (untriedLeft) return 0;
  const backoffMs = backoffDelayMs(
    {
      baseDelayMs: retry.base_delay,
      maxDelayMs: retry.max_delay,
      multiplier: retry.backoff_multiplier,
      jitter: retry.jitter,
    },
    Math.max(attempts, 1),
    random,
  );
  const retryAfterMs = failure.kind === "status" ? (failure.retryAfterMs ?? 0) : 0;
  return Math.min(Math.max(backoffMs, retryAfterMs), retry.max_delay);
}

function whyNotRetried(failure: UpstreamFailure): string {
  switch (failure.kind) {
    case "status":
      if (isCredentialRefusal(failure)) return NOBODY_LEFT;
      if (failure.isSpent) return "the account behind the backend has nothing left, which no retry changes";
      return `HTTP ${failure.status} is not in retry.status_codes`;
    case "timeout":
      return OUT_OF_TIME;
    case "told-in-stream":
      return "the client had a part of the answer";
    case "aborted":
      return "the client had left";
    default:
      return `${failure.kind} is not retried`;
  }
}

/** Rules by which a request is not tried again. */
export const NOBODY_LEFT = "no other backend of the model can be asked";
export const OUT_OF_TIME = "the time for the whole request (timeouts.request) does not suffice for another attempt";
