// What is left to a client of what it may use, in the counts that clients know.

export interface Allowance {
  limit: number;
  remaining: number;
  /** When it is whole again: milliseconds since 1970. */
  resetAtMs: number;
}

/** Of each count what is tightest; one without a limit is left out. */
export interface Quota {
  requests?: Allowance;
  tokens?: Allowance;
  inputTokens?: Allowance;
  outputTokens?: Allowance;
}

/** With the requests that another rule allows, where those are fewer. */
export function withRequests(quota: Quota | undefined, requests: Allowance): Quota {
  const known = quota?.requests;
  if (quota !== undefined && known !== undefined && known.remaining <= requests.remaining) return quota;
  return { ...quota, requests };
}
