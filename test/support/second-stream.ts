// A stream of a second backend of the client's own format, as it goes on behind what a first one has sent.

import type { AnswerReader } from "../../src/protocols/answer-reader.ts";
import type { ClientProtocol } from "../../src/protocols/protocol.ts";
import { backendProtocol, clientProtocol, streamJoin } from "../../src/protocols/registry.ts";
import type { JoinMode } from "../../src/protocols/seam.ts";
import {
  goingOn,
  requestInOwnFormat,
  type SentAnswer,
  type StreamJoin,
  sentEvents,
} from "../../src/protocols/stream-join.ts";
import { createTranslation, type Translation } from "../../src/protocols/translate.ts";
import type { ClientFormat } from "./format-readings.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const NONCE = "2".repeat(32);

export function readSent(format: ClientFormat, ...events: readonly (string | Uint8Array)[]): SentAnswer | undefined {
  const pieces = events.map((event) => (typeof event === "string" ? encoder.encode(event) : event));
  return (streamJoin(format) as StreamJoin).readSent(sentEvents(pieces));
}

/** How the second stream is read; undefined where nothing was begun, so that its bytes are the answer. */
export function restTranslation(format: ClientFormat, sent: SentAnswer, mode: JoinMode): Translation | undefined {
  const client = goingOn(clientProtocol(format), sent, mode);
  return client && translationBy(format, client);
}

/** @param client - writes the rest of an answer */
export function translationBy(format: ClientFormat, client: ClientProtocol): Translation {
  const request = requestInOwnFormat(client, { value: {} });
  const context = { model: "m", createdAt: 1, nonce: NONCE, request };
  const backend = backendProtocol(format);
  return createTranslation({ client, backend, context, transforms: [], keeps: { hidesUsage: false } });
}

export function restReader(format: ClientFormat, sent: SentAnswer, mode: JoinMode): AnswerReader | undefined {
  return restTranslation(format, sent, mode)?.stream();
}

/** What becomes of pieces of the second stream. */
export function restOf(format: ClientFormat, sent: SentAnswer, mode: JoinMode, pieces: readonly string[]): string {
  const reader = restReader(format, sent, mode);
  const written = pieces.map((piece) =>
    reader === undefined ? piece : decoder.decode(reader.push(encoder.encode(piece))),
  );
  // Such a stream has no mark at its end: it ends with its connection.
  const end = format === "generate-content" ? decoder.decode(reader?.end()) : "";
  return written.join("") + end;
}
