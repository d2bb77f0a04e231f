// What a recording is: facts of a request in plain columns, and its bodies, which are sealed.

import type { Outcome } from "../stats/outcome.ts";

export interface RecordingFacts {
  /** The gateway's own id of the request; of an imported one, an id of its own. */
  id: string;
  /** As access/owner.ts names it. */
  owner: string;
  /** When the request came, in milliseconds since 1970. */
  atMs: number;
  keyId: string | null;
  userId: string | null;
  organizationId: string | null;
  /** As it was asked for, after aliases and routes. */
  model: string;
  answeredBy: string | null;
  route: string | null;
  arm: string | null;
  backend: string | null;
  operation: string;
  stream: boolean;
  status: number;
  outcome: Outcome;
  durationMs: number;
  firstByteMs: number | null;
  inputTokens: number | null;
  outputTokens: number | null;
  /** In 10^-9 of the currency's unit. */
  cost: number;
  /** The name of the data set that it was imported with; null: a client asked. */
  dataset: string | null;
}

/** Why a body is not all that was sent: longer than recording.max_body_bytes, or nothing that can be redacted. */
export type Incomplete = "cut" | "too_long_to_redact" | "not_redactable" | "not_recorded";

export interface RecordedBody {
  contentType: string;
  /** What was sent, before it was cut. */
  bytes: number;
  incomplete: Incomplete | null;
  content: Uint8Array;
}

export interface Bodies {
  /** Of the request, without its query. */
  path: string;
  request: RecordedBody;
  answer: RecordedBody;
}

/** As it is kept, and as a worker hands it to its primary. */
export interface SealedRecording {
  facts: RecordingFacts;
  sealed: Uint8Array;
  /** Digests of the words that it is found by, one behind the other. */
  words: Uint8Array;
}

export interface RecordingSink {
  /** Resolves with how many of them are kept; the log says why others are not. */
  keep(recordings: readonly SealedRecording[]): Promise<number>;
}

/** In one piece: the facts of the bodies as JSON with its length before it, then the bodies. */
export function packBodies({ path, request, answer }: Bodies): Uint8Array {
  const { content: asked, ...ofRequest } = request;
  const { content: told, ...ofAnswer } = answer;
  const head = Buffer.from(JSON.stringify({ path, request: ofRequest, answer: ofAnswer, asked: asked.length }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head, asked, told]);
}

export function unpackBodies(packed: Uint8Array): Bodies {
  const buffer = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const start = 4 + buffer.readUInt32BE(0);
  const { path, request, answer, asked } = JSON.parse(buffer.toString("utf8", 4, start));
  return {
    path,
    request: { ...request, content: buffer.subarray(start, start + asked) },
    answer: { ...answer, content: buffer.subarray(start + asked) },
  };
}
