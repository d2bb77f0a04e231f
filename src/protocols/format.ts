// A wire format as the registry lists it: what of it there is.

import type { KeptAnswers } from "./kept-answers.ts";
import type { BackendProtocol, ClientProtocol, ClientWords, PassThrough } from "./protocol.ts";
import type { StreamJoin } from "./stream-join.ts";

export interface Format {
  /** Clients may speak it. */
  client?: ClientProtocol;
  /** Its words for errors, where it has no client half; left out: those of its client half. */
  words?: ClientWords;
  /** Backends are spoken to in it, whatever their clients speak. */
  backend?: BackendProtocol;
  passing: PassThrough;
  /** The member of a request with its conversation, where no other format has it there. */
  conversation?: string;
  /** What the response cache must know of its answers; left out: they are never kept. */
  kept?: KeptAnswers;
  /** How two of its streams become one; left out where they cannot. */
  join?: StreamJoin;
}
