// What every wire format offers: a client half (Signalbox as a server of that format), a backend half (Signalbox as a
// client of it), and what it knows of requests and answers that pass in their own bytes. All of it is pure and
// synchronous: no I/O, no clock, no configuration, no import of another format.

import type { AnswerLosses } from "../generation/answer-losses.ts";
import type { ProtocolName } from "../generation/content.ts";
import type { Dropped } from "../generation/dropped.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Quota } from "../generation/quota.ts";
import type { EffortHabits } from "../generation/reasoning-effort.ts";
import type { Effort, GenerationRequest, RequestSetting } from "../generation/request.ts";
import type { Failure, GenerationResult } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import type { Verdict } from "./answer-reader.ts";
import type { Attachment, FileContent } from "./attachments.ts";
import type { ChatQuirks } from "./chat/quirks.ts";
import type { PromptMerge } from "./inject-prompt.ts";
import type { PromptReader } from "./prompt-reader.ts";

/** What an answer needs to know of its request. */
export interface AnswerContext {
  /** The model as the client asked for it; answers carry it, whatever the backend calls its model. */
  model: string;
  /** Unix time in seconds, for backends that give none. */
  createdAt: number;
  /** The present Unix time in seconds, for formats that tell when an answer was complete; createdAt where left out. */
  now?(): number;
  /** Milliseconds since the gateway got the request, for formats that tell how long an answer took. */
  elapsedMs?(): number;
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
  /** Its errors do not have the standard shape. */
  ownErrors?: OwnErrors;
  /** The headers that tell what is left to a client; left out: those of OpenAI. */
  quotaHeaders?(quota: Quota, nowMs: number): Record<string, string>;
  /** What a request brings or names besides text, as it is written; a quick look, because most are text alone. */
  attachments?(body: JsonObject): readonly Attachment[];
  /** What takes the place of the part that names a file; throws a 400 that names the field for a type that has none. */
  withFile?(part: JsonObject, file: FileContent, param: string): JsonObject;
  /** Whether a request asks for a search of the web; a quick look, because most do not. */
  offersSearch?(body: JsonObject): boolean;
  /** The request with an answer and another message of the user behind it, for a whole answer; undefined, or left out: it has no place for them. */
  withReply?(body: JsonObject, said: string, message: string): JsonObject | undefined;
  /** A citation quotes its source. */
  quotesSources?: true;
  /**
   * Where a request of the format says what a route may set: the names of the members, from outside in, joined with dots. Further ones
   * say the same in another way, and are taken out. Left out: the format has no place for it.
   */
  settings?: Readonly<Partial<Record<RequestSetting, readonly string[]>>>;
  losses: AnswerLosses;
}

export interface OwnErrors {
  /** The name of their schema in the OpenAPI document. */
  schema: string;
  /** The type of the object around an error, where that has one. */
  frameType?: string;
  /** The member of an error that says of which kind it is; left out: "type"; "text": an error is its message alone. */
  kind?: string;
  /** A header of their own, in which SDKs look for the id of a request. */
  idHeader?: string;
}

/** What clients of a format are told besides answers. */
export type ClientWords = Pick<ClientProtocol, "errorBody" | "errorEvent" | "ownErrors" | "quotaHeaders">;

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
  /** The gateway itself refuses, not a backend. */
  isOwn?: boolean;
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
  /**
   * Its generateContent is Google Cloud's, which refuses ids of calls and results, and the question for what hosted tools
   * have done (includeServerSideToolInvocations).
   */
  isCloud?: true;
  /** How generateContent embeds: many contents in a request, instances of a model's endpoint, or one content. */
  embeds?: "batch" | "predict" | "content";
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
  /** @param keeps - what of the format's own is kept for a client that speaks it too; nothing where left out */
  streamDecoder(keeps?: KeptMembers): StreamDecoder;
  /** The error of an answer with an error status, or of an `error` member inside a 200. Never throws. */
  decodeError(status: number, body: unknown): Failure;
  /** Its requests reach backends as they came, and its whole answers go back so: there is neither a writer nor a reader of them. One is read as the last event of a stream. */
  readsStreamsAlone?: true;
  /** It has words for a search of the web that a client of another format asks for. */
  carriesSearch?: true;
  /** Whether free-form tools may be sent as they are. */
  hasCustomTools?(kind: Dialect): boolean;
  /** Whose addresses it has no place for. */
  inlines?: readonly ("image" | "document")[];
  /** The efforts that differ for a model of this name, empty where it does not think; left out: the kind of backend knows. */
  effortLevels?(model: string): readonly Effort[];
  /** Calls carry a signature that must come back with them, and for which clients' formats have no place. */
  signsCalls?: true;
}

/** Members and events that only the backend's own format knows come as `own` and `unknown` (generation/events.ts). */
export interface KeptMembers {
  /** The gateway asked for the counts of the stream, not the client. */
  hidesUsage: boolean;
  /** What is changed in the events before they are read. */
  edits?: AnswerEdits | undefined;
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

/** What a request is sent to when it passes in the client's own bytes. */
export interface PassTarget {
  kind: Dialect;
  /** The model as the backend knows it. */
  model: string;
  /** The model as the client named it. */
  askedModel: string;
}

/** What of a body must be another before a backend gets it. */
export interface Adapted {
  /** The top-level members to set, undefined ones to remove. */
  members: JsonObject;
  /** What was taken out, in the client's words. */
  lost?: readonly string[];
}

/** What of the pieces of a stream may go on: whole events. */
export interface Framer {
  /** Throws RangeError for an event that is too large. */
  push(piece: Uint8Array): Uint8Array | undefined;
  /** What is left at the end. */
  rest(): Uint8Array;
}

/**
 * What passes untouched, but for little: a client's own body to a backend that speaks the same format, and its answer
 * back. Members of a body are given as changes, so that all other bytes stay as they were written; undefined: none.
 */
export interface PassThrough {
  /**
   * Whether a request has to be translated although the backend speaks its format.
   * @param splitsThoughts - the model leaves its thoughts in the text of its answer
   * @param fetchesNothing - the backend takes no pictures and documents by their address
   */
  mustTranslate?(body: JsonObject, splitsThoughts: boolean, fetchesNothing: boolean, kind: Dialect): boolean;
  adapt?(body: JsonObject, target: PassTarget): Adapted | undefined;
  /** Undefined also where the body has no place for a prompt. */
  injectPrompt?(body: JsonObject, prompt: string, merge: PromptMerge): JsonObject | undefined;
  /** Tells what the model reads of a request, its tools left aside; left out: the format has no prompts. */
  readPrompt?(body: JsonObject, reader: PromptReader): void;
  /** Has the tokens of a stream counted; undefined where the client asked for that itself, or the backend cannot. */
  askUsage?(body: JsonObject, kind: Dialect): JsonObject | undefined;
  /** Headers of the client that mean something only together with a body of the format. */
  headers?: readonly string[];
  /** A text can only be gone on with by this very format: by means of another one it would be a question. */
  goesOnAlone?: true;
  /** Whether a backend goes on behind the beginning of an answer of this model; left out: any model. */
  goesOn?(model: string): boolean;

  /** The path of a request below the backend's root, where it depends on the body. */
  pathOf?(body: JsonObject): string;
  /** For backends whose streams are no Server-Sent Events: makes events of them. One per stream. */
  unframe?(): Framer;

  /** What is changed in the answer to a request; undefined: nothing. */
  editAnswer?(body: JsonObject, kind: Dialect): AnswerEdits | undefined;
  /** The member of a whole answer with its counts; left out: usage. */
  usageMember?: string;
  /** The counts of a whole answer; undefined when its backend did not count. */
  usageOf?(answer: JsonObject): Usage | undefined;
  /** Ids under which the vendor keeps the items of a whole answer. */
  itemIdsOf?(answer: JsonObject): readonly string[];
  /** Names of events (or their type, where they have no name) that announce an answer without saying anything of it. */
  preamble: ReadonlySet<string>;
  /**
   * A whole answer as the events of a stream, for backends that do not stream. Such an answer is refused where this is left
   * out, or cannot make any events of it.
   */
  asEvents?(answer: Uint8Array): Uint8Array | undefined;
  /** Whether an answer or an event tells that it failed, where it has no member and no type of the name "error". */
  hasFailed?(told: JsonObject): boolean;
  /** One per stream. */
  watch(options: WatchOptions): StreamWatch;
}

/** What is changed in one answer on its way; the bytes come back as they are where there is nothing to change. */
export interface AnswerEdits {
  /** A whole answer, and what it says. */
  whole(body: Uint8Array, parsed: JsonObject): Uint8Array;
  /** Whole events of a stream. */
  push(events: Uint8Array): Uint8Array;
  /** What is still to be said when the stream has ended as a complete answer; undefined: nothing. */
  end?(): Uint8Array | undefined;
}

export interface WatchOptions {
  /** How many choices a complete answer has. */
  choices: number;
  /** The gateway asked for the counts, not the client: they are taken out. */
  hidesUsage?: boolean | undefined;
  edits?: AnswerEdits | undefined;
}

/** Follows a stream that passes by its bytes: whether it was complete, and what it counted. */
export interface StreamWatch {
  /** Whole events as they came -> as the client gets them; undefined when nothing is left of them. */
  push(events: Uint8Array): Uint8Array | undefined;
  /** The answer's own end marker has come. */
  readonly isDone: boolean;
  verdict(): Verdict;
  /** The event with the error, after the verdict `reported`. */
  readonly reported?: JsonObject | undefined;
  /** What a stream with the verdict `finished` lacks. */
  readonly endMarker: Uint8Array | undefined;
  readonly usage: Usage | undefined;
  /** As itemIdsOf(), once the answer is complete. */
  readonly itemIds: readonly string[];
}

/** A backend's whole answer says that it failed, though its status is 200 (Gemini's MALFORMED_FUNCTION_CALL). */
export class AnswerFailed extends Error {
  override readonly name = "AnswerFailed";
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** For the `error` member of an answer in no format of its own. */
export function answerFailed(error: unknown): AnswerFailed {
  const message = isObject(error) ? error.message : error;
  return new AnswerFailed({
    message: typeof message === "string" ? message : "the backend reported an error",
    status: 502,
  });
}

/** A backend sent something that its format does not allow. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

/**
 * A backend's answer, or an event of it.
 * @param subject - what the DecodeError begins with
 */
export function decodeObject(text: string, subject = ""): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DecodeError(`${subject}is not valid JSON`);
  }
  if (!isObject(value)) throw new DecodeError(`${subject}is no JSON object`);
  return value;
}
