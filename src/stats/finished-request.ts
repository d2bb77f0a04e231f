// What is known of a request that is over: one value, made by the pipeline, for its story, statistics and metrics.

import type { Usage } from "../generation/usage.ts";
import type { Outcome } from "./outcome.ts";

export interface FinishedRequest {
  /** "chat", "messages", "embeddings", … */
  operation: string;
  /** The model that was asked for, after aliases; the client's own text where no such model exists. */
  model: string;
  /** The model that answered, where another stood in. */
  answeredBy?: string | undefined;
  /** The backend of the last attempt; undefined when none was asked. */
  backend?: string | undefined;
  /** As the client saw it; 499 when it left before the end. Of a stream that broke off, what a plain answer had been. */
  status: number;
  outcome: Outcome;
  durationMs: number;
  /** Until the first byte went to the client. */
  firstByteMs?: number | undefined;
  /** Time of all attempts. */
  backendMs?: number | undefined;
  stream: boolean;
  usage?: Usage | undefined;
  /** Attempts at backends; 0 for answers from the cache and for refusals. */
  attempts: number;
  /** Those that another attempt followed. */
  retried?: readonly { model: string; backend: string }[] | undefined;
  /** Why another model was asked, e.g. "error_code_429". */
  fallback?: string | undefined;
  cache?: "HIT" | "MISS" | "BYPASS" | undefined;
  /** Got its answer from another request's call: the tokens are counted there. */
  shared?: boolean | undefined;
  /**
   * Why the request failed, e.g. "status_502", "timeout_first_byte", "aborted"; undefined for one that succeeded,
   * whatever its earlier attempts met.
   */
  failure?: string | undefined;
  /** Of the error that the client was answered with; its type where the code is only the status. */
  code?: string | undefined;
  /** Of a failure: the rules by which no other backend and no other model was asked. */
  endedBy?: string | undefined;
  /** The caller's key. */
  keyId?: string | undefined;
  /** As the caller's key names them. */
  userId?: string | undefined;
  /** The user that the request itself names: any text of the client. */
  endUser?: string | undefined;
  organizationId?: string | undefined;
}

/** The name under which everything is counted that is too much to be counted by name. */
export const OTHER = "(other)";

/** No request has so many. A backend that claims more would make every sum useless, its costs infinite. */
const MAX_TOKENS = 1e9;

/** Tokens that a backend worked for: not those of answers that were there already. */
export function countedUsage({ usage, cache, shared }: FinishedRequest): Usage | undefined {
  if (usage === undefined || cache === "HIT" || shared === true) return undefined;
  const { input, output } = usage;
  const { total, cacheRead = 0, cacheWrite = 0 } = input;
  return Math.max(total, cacheRead, cacheWrite, output.total) <= MAX_TOKENS ? usage : undefined;
}
