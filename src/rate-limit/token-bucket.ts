// The token bucket: how many requests are admitted at a time. Pure arithmetic; the time comes in.

/**
 * Everything is counted in whole numbers, so that no rounding adds up however often a bucket is asked: time in
 * microseconds, and credit in parts of a token so small that each microsecond earns a whole number of them.
 */
export interface BucketPolicy {
  /** Most tokens in the bucket. */
  readonly capacity: number;
  /** Parts that one microsecond earns: the tokens per window. */
  readonly earnedPerUs: number;
  /** Parts of one token: the microseconds of the window. */
  readonly partsPerToken: number;
  /** Parts of a full bucket. */
  readonly fullParts: number;
  /** After this time any bucket is full. */
  readonly fillUs: number;
}

/** Changed in place by `take`, `putBack` and `changePolicy`. */
export interface Bucket {
  policy: BucketPolicy;
  parts: number;
  /** The time, in whole microseconds, that `parts` is the credit of. */
  atUs: number;
}

export interface BucketReading {
  allowed: boolean;
  /** Whole tokens that are left. */
  remaining: number;
  /** When the next token is there; 0 when one is. */
  retryAfterMs: number;
  /** When the bucket is full again if no token is taken; on the same clock as `nowMs`. */
  resetAtMs: number;
}

/** `tokens` per window are earned, `capacity` at most are kept; all three are whole numbers of at least 1. */
export function bucketPolicy(tokens: number, windowMs: number, capacity: number): BucketPolicy {
  const partsPerToken = windowMs * 1000;
  const fullParts = capacity * partsPerToken;
  return { capacity, earnedPerUs: tokens, partsPerToken, fullParts, fillUs: Math.ceil(fullParts / tokens) };
}

export function fullBucket(policy: BucketPolicy, nowMs: number): Bucket {
  return { policy, parts: policy.fullParts, atUs: toUs(nowMs) };
}

/** Takes one token if there is one; a refusal takes nothing. */
export function take(bucket: Bucket, nowMs: number): BucketReading {
  earn(bucket, nowMs);
  const { partsPerToken } = bucket.policy;
  const allowed = bucket.parts >= partsPerToken;
  if (allowed) bucket.parts -= partsPerToken;
  return reading(bucket, nowMs, allowed);
}

/** The result that `take` would have, without taking. */
export function look(bucket: Bucket, nowMs: number): BucketReading {
  earn(bucket, nowMs);
  return reading(bucket, nowMs, bucket.parts >= bucket.policy.partsPerToken);
}

interface JointReading extends BucketReading {
  /** Which bucket speaks: of a refusal the one with the longest wait, else the one with the fewest tokens left. */
  index: number;
}

/** Takes one token of every bucket, or none of any: a request that one bucket refuses costs nothing in the others. */
export function takeAll(buckets: readonly Bucket[], nowMs: number): JointReading {
  let refusing = -1;
  let longestWaitUs = 0;
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index] as Bucket;
    earn(bucket, nowMs);
    const waitUs = waitForToken(bucket);
    if (waitUs > longestWaitUs) {
      longestWaitUs = waitUs;
      refusing = index;
    }
  }
  if (refusing >= 0) return readingOf(buckets, refusing, nowMs, false);

  let tightest = 0;
  let fewest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index] as Bucket;
    const { partsPerToken } = bucket.policy;
    bucket.parts -= partsPerToken;
    const left = bucket.parts / partsPerToken;
    if (left < fewest) {
      fewest = left;
      tightest = index;
    }
  }
  return readingOf(buckets, tightest, nowMs, true);
}

/** Gives a taken token back; never more than the bucket holds. */
export function putBack(bucket: Bucket, nowMs: number): void {
  earn(bucket, nowMs);
  const { fullParts, partsPerToken } = bucket.policy;
  bucket.parts = Math.min(fullParts, bucket.parts + partsPerToken);
}

/** A full bucket says nothing that a new one would not say: it can be forgotten. */
export function isFull(bucket: Bucket, nowMs: number): boolean {
  earn(bucket, nowMs);
  return bucket.parts === bucket.policy.fullParts;
}

/**
 * From now on another policy holds, for the same window: the tokens stay, as many as the bucket holds then; a full bucket
 * is full of the new number.
 */
export function changePolicy(bucket: Bucket, policy: BucketPolicy, nowMs: number): void {
  const wasFull = isFull(bucket, nowMs);
  bucket.parts = wasFull ? policy.fullParts : Math.min(bucket.parts, policy.fullParts);
  bucket.policy = policy;
}

/** Brings the credit up to now. A clock that goes back earns nothing and loses nothing. */
export function earn(bucket: Bucket, nowMs: number): void {
  const { fullParts, fillUs, earnedPerUs } = bucket.policy;
  const nowUs = toUs(nowMs);
  const elapsedUs = nowUs - bucket.atUs;
  if (elapsedUs <= 0) return;
  // Cut first: after a long pause the product would leave the exact whole numbers.
  bucket.parts = elapsedUs >= fillUs ? fullParts : Math.min(fullParts, bucket.parts + elapsedUs * earnedPerUs);
  bucket.atUs = nowUs;
}

function waitForToken({ parts, policy }: Bucket): number {
  return parts >= policy.partsPerToken ? 0 : Math.ceil((policy.partsPerToken - parts) / policy.earnedPerUs);
}

function readingOf(buckets: readonly Bucket[], index: number, nowMs: number, allowed: boolean): JointReading {
  const joint = reading(buckets[index] as Bucket, nowMs, allowed) as JointReading;
  joint.index = index;
  return joint;
}

function reading(bucket: Bucket, nowMs: number, allowed: boolean): BucketReading {
  const { parts, policy } = bucket;
  return {
    allowed,
    remaining: Math.floor(parts / policy.partsPerToken),
    retryAfterMs: waitForToken(bucket) / 1000,
    resetAtMs: nowMs + Math.ceil((policy.fullParts - parts) / policy.earnedPerUs) / 1000,
  };
}

/** Rounded, not cut: a wait that was computed as a fraction of a millisecond must not end a microsecond too early. */
function toUs(timeMs: number): number {
  return Math.round(timeMs * 1000);
}
