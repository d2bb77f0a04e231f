// A whole answer.

import type { ContentPart, ProtocolName } from "./content.ts";
import type { Usage } from "./usage.ts";

export type FinishReason =
  /** The model was done. */
  | "stop"
  /** A stop sequence of the request was written. */
  | "stop-sequence"
  /** The limit of output tokens or of the context. */
  | "length"
  /** The client has to run tools. */
  | "tool-calls"
  /** Blocked or refused. */
  | "content-filter"
  /** A long turn of a server-side tool was paused; to be sent back to go on. */
  | "pause";

export interface Finish {
  reason: FinishReason;
  /** The reason as its protocol said it; used when the client speaks the same protocol. */
  raw?: { protocol: ProtocolName; value: string };
  stopSequence?: string;
}

/** An error that a backend reported inside an answer or a stream. */
export interface Failure {
  message: string;
  /** HTTP status that fits, e.g. 529 for an overloaded backend. */
  status: number;
  type?: string;
  code?: string;
  /** The request field at fault, as the backend named it. */
  param?: string;
  /** How long the backend asks to be left alone. */
  retryAfterMs?: number;
}

export interface GenerationResult {
  /** As the backend gave it; "" when it gave none. */
  id: string;
  model: string;
  /** Unix time in seconds; 0 when the backend gave none. */
  createdAt: number;
  parts: ContentPart[];
  finish: Finish;
  /** Undefined when the backend did not count. */
  usage?: Usage;
}
