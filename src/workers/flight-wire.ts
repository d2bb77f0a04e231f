// A shared call on its way from the worker that makes it to one whose clients share it: a head, pieces, an end.

import { deserialize, serialize } from "bun:jsc";
import type { UpstreamFailure } from "../upstream/failure.ts";

export interface ToldError {
  message: string;
  /** Of a refusal; undefined for a bug. */
  definition?: { status: number; type: string; code: string | number } | undefined;
  param?: string | undefined;
  details?: Record<string, unknown> | undefined;
  headers?: Record<string, string> | undefined;
}

interface ToldAnswer {
  backendName: string;
  model: string;
  reasons: readonly { model: string; reason: string }[];
}

export type ToldOutcome =
  | { kind: "refused"; error: ToldError; decision: unknown }
  | (ToldAnswer &
      (
        | {
            kind: "plain";
            body: Uint8Array;
            contentType: string;
            headers: Record<string, string>;
            itemIds: readonly string[] | undefined;
            isKept: boolean;
          }
        | { kind: "stream"; headers: Record<string, string>; contentType: string | undefined; runningMs: number }
        | { kind: "failed"; failure: UpstreamFailure; retryAfterMs: number | undefined }
      ));

export interface ToldHead {
  attempts: number;
  dropped: readonly string[] | undefined;
  storyId: string;
  outcome: ToldOutcome;
}

/** `attempts`: of the request that made the call, which a takeover adds to. */
export interface ToldEnd {
  failure: UpstreamFailure | undefined;
  attempts: number;
}

export type Frame =
  | { kind: "head"; head: ToldHead }
  | { kind: "piece"; bytes: Uint8Array }
  | { kind: "end"; end: ToldEnd };

const KINDS = ["head", "piece", "end"] as const;
const PREFIX_BYTES = 5;

export function encodeFrame(frame: Frame): Uint8Array {
  const content =
    frame.kind === "piece"
      ? frame.bytes
      : new Uint8Array(serialize(frame.kind === "head" ? frame.head : frame.end) as SharedArrayBuffer);
  const bytes = new Uint8Array(PREFIX_BYTES + content.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, KINDS.indexOf(frame.kind));
  view.setUint32(1, content.length);
  bytes.set(content, PREFIX_BYTES);
  return bytes;
}

/** Takes bytes at any cut and hands on whole frames. */
export class FrameReader {
  /** Of one frame or several, in their order: put together when a frame is whole. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Of the first frame that is held; known with its prefix. */
  #frameBytes = PREFIX_BYTES;

  *push(bytes: Uint8Array): Generator<Frame> {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    while (this.#heldBytes >= this.#frameBytes) {
      const whole = this.#held.length === 1 ? (this.#held[0] as Uint8Array) : Buffer.concat(this.#held);
      this.#held = [whole];
      const view = new DataView(whole.buffer, whole.byteOffset, whole.length);
      const end = PREFIX_BYTES + view.getUint32(1);
      this.#frameBytes = end;
      if (whole.length < end) return;
      const rest = whole.subarray(end);
      this.#held = [rest];
      this.#heldBytes = rest.length;
      this.#frameBytes = PREFIX_BYTES;
      yield frameOf(KINDS[view.getUint8(0)], whole.slice(PREFIX_BYTES, end));
    }
  }
}

function frameOf(kind: Frame["kind"] | undefined, content: Uint8Array): Frame {
  if (kind === "piece") return { kind, bytes: content };
  if (kind === "head") return { kind, head: deserialize(content) as ToldHead };
  return { kind: "end", end: deserialize(content) as ToldEnd };
}
