// Time as an argument, so that tests are exact.

export interface Clock {
  /** Milliseconds of a monotonic clock; only differences mean something. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wallTime(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
};
