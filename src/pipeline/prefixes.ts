// What the pipeline asks of the index of prompts that begin alike (prompt-prefixes.ts, which is loaded where a strategy
// or the index of KV caches needs it).

import type { Backend } from "../backends/backend.ts";
import type { Usage } from "../generation/usage.ts";
import type { Claim } from "../kv-index/claim-trust.ts";
import type { PrefixChain } from "../kv-index/prefix-hash.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { ModelRequest } from "./model-request.ts";

/** Tells an engine's adapter by which hash to name the prompt in its events. */
export const PREFIX_HEADER = "x-signalbox-prefix-hash";

/** What the pipeline asks; undefined where no strategy and no index needs it. */
export interface PromptPrefixes {
  /** Of the prompt as it is sent to a backend; undefined for one that is shorter than a block. */
  at(request: ModelRequest, backendName: string): PrefixChain | undefined;
  /** What a backend claims to have of such a prompt in its cache. Asked before the request is sent. */
  claimOf(prefix: PrefixChain, backendName: string): Claim | undefined;
  /** A backend has begun to answer. */
  began(request: ModelRequest, backend: Backend): void;
  /** An attempt is over; `usage` is that of its own answer. */
  ended(
    backend: Backend,
    failure: UpstreamFailure | undefined,
    claim: Claim | undefined,
    usage: Usage | undefined,
  ): void;
}
