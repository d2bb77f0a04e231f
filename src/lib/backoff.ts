// Exponential backoff, with or without jitter.

interface BackoffPolicy {
  baseDelayMs: number;
  maxDelayMs: number;
  multiplier: number;
  jitter: boolean;
}

/**
 * Milliseconds to wait after the given number of failures (1 = first). With jitter the result is spread evenly over the
 * upper half of the delay, so that clients that failed together do not come back together.
 */
export function backoffDelayMs(policy: BackoffPolicy, failures: number, random: () => number): number {
  const delayMs = Math.min(policy.maxDelayMs, policy.baseDelayMs * policy.multiplier ** (failures - 1));
  return policy.jitter ? delayMs / 2 + (random() * delayMs) / 2 : delayMs;
}
