// Token counts in one meaning for all formats: totals include their parts.

export interface Usage {
  input: {
    /** All prompt tokens: fresh, read from a cache and written to one. */
    total: number;
    cacheRead?: number;
    cacheWrite?: number;
    /** The part of cacheWrite that is kept for an hour. */
    cacheWrite1h?: number;
  };
  output: {
    /** All generated tokens, reasoning included. */
    total: number;
    reasoning?: number;
  };
  /** Web searches that the backend or the gateway made. */
  webSearches?: number;
  /** Pictures that were made. */
  images?: number;
  /** Sound that was heard, in seconds, where a vendor counts no tokens of it. */
  audioSeconds?: number;
  /** A batch of the vendor has answered, which has a price of its own. */
  isBatched?: true;
}

/** Prompt tokens that were neither read from nor written to a cache; never below 0. */
export function freshInput({ input }: Usage): number {
  return Math.max(0, input.total - (input.cacheRead ?? 0) - (input.cacheWrite ?? 0));
}
