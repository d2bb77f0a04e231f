// What a translation could not carry over. Every entry is logged at debug level and counted; a reader of
// docs/compatibility.md finds the same names there.

export interface Dropped {
  /** The feature in the client's words, e.g. "logit_bias", "cache_control on tools" or "input_audio". */
  feature: string;
  /** Why, when it is not just that the target has nothing like it. */
  reason?: string;
}

export class DropList {
  readonly entries: Dropped[] = [];

  /** Notes a feature once. */
  add(feature: string, reason?: string): void {
    if (this.entries.some((entry) => entry.feature === feature)) return;
    this.entries.push(reason === undefined ? { feature } : { feature, reason });
  }
}
