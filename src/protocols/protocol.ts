// What every wire format offers: a client half (Signalbox as a server of that format) and a backend half (Signalbox as a
// client of it). Codecs are pure and synchronous: no I/O, no clock, no configuration, no import of another codec.

import type { ProtocolName } from "../generation/content.ts";
import type { Dropped } from "../generation/dropped.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { EffortHabits } from "../generation/reasoning-effort.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { Failure, GenerationResult } from "../generation/result.ts";
import type { JsonObject } from "../lib/json.ts";
import type { ChatQuirks } from "./chat/quirks.ts";

/** What an answer needs to know of its request. */
export interface AnswerContext {
  /** The model as the client asked for it; answers carry it, whatever the backend calls its model. */
  model: string;
  /** Unix time in seconds, for backends that give none. */
  createdAt: number;
  /** The present Unix time in seconds, for formats that tell when an answer was complete; createdAt where left out. */
  now?(): number;
  /** 32 random hex digits; ids of the answer and of its items are made from it where the backend gives none. */
  nonce: string;
  /** The request that is answered. */
  request: GenerationRequest;
}

export interface ClientProtocol {
  name: ProtocolName;
  /**
   * Reads a request. Throws GatewayError 400 that names the field (protocols/fields.ts) for what cannot be a request.
   * Unknown members are kept in `extensions`.
   */
  decodeRequest(body: JsonObject): GenerationRequest;
  /** A whole answer as the JSON value of its body. */
  encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject;
  streamEncoder(context: AnswerContext): StreamEncoder;
  /** The body of an error answer. */
  errorBody(error: ClientError): JsonObject;
  /**
   * The event that tells of an error inside a stream whose bytes passed untouched, with its empty line.
   * @param sent - the last events that the client has
   */
  errorEvent(error: ClientError, sent?: Uint8Array): string;
}

/** An error in words that every client format can say. */
export interface ClientError {
  status: number;
  message: string;
  /** The gateway's or the backend's own type, e.g. "model_not_found"; formats with a fixed set derive theirs from status. */
  type: string;
  code: string | number | undefined;
  /** The request field at fault. */
  param?: string;
  details?: JsonObject;
  requestId: string;
}

/** Neutral events -> the text of a client's event stream. One instance per answer. */
export interface StreamEncoder {
  /** Text of whole SSE events, "" when nothing is to be sent yet. A `failure` event gives the protocol's error event. */
  push(event: GenerationEvent): string;
  /** The end of a complete answer, after `finish`: what is still open is closed, the end marker is written. */
  end(): string;
}

/** What the formats know of a kind of backend; each row of backends/kinds.ts says it. */
export interface Dialect extends EffortHabits {
  chat: ChatQuirks;
  /** The lowest limit of output tokens that its Responses endpoint takes; undefined: any. */
  leastOutputTokens?: number;
  /** Its rerank endpoint compares texts alone. */
  ranksTextsOnly?: true;
}

/** What a request is encoded for. */
export interface BackendTarget {
  /** The model as the backend knows it. */
  model: string;
  kind: Dialect;
  /** Most output tokens of the model, from its metadata. */
  maxOutputTokens?: number;
  /** Signature that came with a tool call of an earlier answer, remembered by the gateway. */
  signatureOf?(callId: string): string | undefined;
}

export interface EncodedRequest {
  body: JsonObject;
  /** Headers beyond those of the backend's kind. */
  headers?: Record<string, string>;
  dropped: readonly Dropped[];
}

export interface BackendProtocol {
  name: ProtocolName;
  /** Throws GatewayError 400 that names the client's feature where dropping it would change the meaning. */
  encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest;
  /** Throws DecodeError when the body is no answer of this format, AnswerFailed when it tells of a failure. */
  decodeResponse(body: JsonObject): GenerationResult;
  streamDecoder(): StreamDecoder;
  /** The error of an answer with an error status, or of an `error` member inside a 200. Never throws. */
  decodeError(status: number, body: unknown): Failure;
}

/** One backend's stream -> neutral events. One instance per stream. */
export interface StreamDecoder {
  /**
   * One SSE event: its data, and its name where the format has names. Returns what it means, often one event. A marker
   * such as [DONE] is given as any other data. Throws DecodeError for data that is no event of this format.
   */
  push(data: string, name?: string): readonly GenerationEvent[];
  /**
   * The stream is over: closes what is open and adds `finish` where the format leaves it to the end. When the answer was
   * not complete, the last event is no `finish`, and the caller treats the stream as broken.
   */
  end(): readonly GenerationEvent[];
}

/** A backend's whole answer says that it failed, though its status is 200 (Gemini's MALFORMED_FUNCTION_CALL). */
export class AnswerFailed extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.name = "AnswerFailed";
    this.failure = failure;
  }
}

/** A backend sent something that its format does not allow. */
export class DecodeError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DecodeError";
  }
}
