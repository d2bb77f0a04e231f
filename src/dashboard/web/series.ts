// What has happened in the last minutes, in buckets of a few seconds: made of requests that are listed and of events that
// come in.

export interface SeriesBucket {
  total: number;
  failed: number;
  durationMs: number;
  longestMs: number;
  firstBytes: number;
  firstByteSumMs: number;
  promptTokens: number;
  completionTokens: number;
}

export interface SeriesPoint extends SeriesBucket {
  atMs: number;
}

interface SeriesOptions {
  bucketMs: number;
  buckets: number;
}

/** Of times before `sinceMs` nothing is known. */
export function createSeries({ bucketMs, buckets }: SeriesOptions) {
  const held = new Map<number, SeriesBucket>();
  let sinceMs = Number.POSITIVE_INFINITY;

  return {
    clear(): void {
      held.clear();
      sinceMs = Number.POSITIVE_INFINITY;
    },
    /** From here on everything is known. */
    knownSince(atMs: number): void {
      sinceMs = Math.min(sinceMs, atMs);
    },
    add(atMs: number, more: SeriesBucket): void {
      const number = Math.floor(atMs / bucketMs);
      const bucket = held.get(number) ?? emptyBucket();
      addTo(bucket, more);
      held.set(number, bucket);
    },
    /** The oldest first, the one that is not over left out; undefined where nothing is known. */
    points(nowMs: number): (SeriesPoint | undefined)[] {
      const times = timesOf({ bucketMs, buckets }, nowMs);
      const first = (times[0] as number) / bucketMs;
      for (const number of held.keys()) if (number < first) held.delete(number);
      return times.map((atMs, index) => {
        if (atMs + bucketMs <= sinceMs) return undefined;
        return { atMs, ...(held.get(first + index) ?? emptyBucket()) };
      });
    },
  };
}

/** When the buckets begin, the one that is not over left out. */
export function timesOf({ bucketMs, buckets }: SeriesOptions, nowMs: number): number[] {
  const end = Math.floor(nowMs / bucketMs);
  return Array.from({ length: buckets }, (_, index) => (end - buckets + index) * bucketMs);
}

/** The same in longer steps, the newest first; those of which a part is not known are left out. */
export function inSteps(points: readonly (SeriesPoint | undefined)[], bucketMs: number, stepMs: number): SeriesPoint[] {
  const steps = new Map<number, { point: SeriesPoint; buckets: number }>();
  for (const point of points) {
    if (point === undefined) continue;
    const atMs = Math.floor(point.atMs / stepMs) * stepMs;
    const step = steps.get(atMs) ?? { point: { atMs, ...emptyBucket() }, buckets: 0 };
    addTo(step.point, point);
    step.buckets++;
    steps.set(atMs, step);
  }
  const whole = [...steps.values()].filter(({ buckets }) => buckets === stepMs / bucketMs);
  return whole.map(({ point }) => point).toReversed();
}

function addTo(bucket: SeriesBucket, more: SeriesBucket): void {
  bucket.total += more.total;
  bucket.failed += more.failed;
  bucket.durationMs += more.durationMs;
  bucket.longestMs = Math.max(bucket.longestMs, more.longestMs);
  bucket.firstBytes += more.firstBytes;
  bucket.firstByteSumMs += more.firstByteSumMs;
  bucket.promptTokens += more.promptTokens;
  bucket.completionTokens += more.completionTokens;
}

export function emptyBucket(): SeriesBucket {
  return {
    total: 0,
    failed: 0,
    durationMs: 0,
    longestMs: 0,
    firstBytes: 0,
    firstByteSumMs: 0,
    promptTokens: 0,
    completionTokens: 0,
  };
}
