// The public interface of hooks, `signalbox/hooks`: what a module exports, the events it gets and the verdicts it returns.

import type { GenerationRequest } from "../generation/request.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { JsonObject } from "../lib/json.ts";

export type { ContentPart, Message, TextPart, ToolCallPart, ToolResultPart } from "../generation/content.ts";
export type { GenerationRequest } from "../generation/request.ts";
export type { GenerationResult } from "../generation/result.ts";
export type { Tool } from "../generation/tools.ts";
export type { Usage } from "../generation/usage.ts";
export type { JsonObject } from "../lib/json.ts";

/** Which request an event belongs to. */
export interface HookInfo {
  /** The gateway's own id of the request; no two requests have the same. */
  readonly id: string;
  /** The id that its client may have chosen. */
  readonly requestId: string;
  /** What is asked for: "chat", "messages", "responses", "embeddings", … */
  readonly operation: string;
  /** The wire format of `body`; "neutral": it is the neutral model itself, as in agent mode and for answers of streams. */
  readonly format: string;
  /** The model as the client named it. */
  readonly model: string;
  readonly stream: boolean;
  readonly key?: string | undefined;
  readonly organization?: string | undefined;
  readonly user?: string | undefined;
}

/** An answer of the gateway to a question of a hook. */
export interface HookAnswer {
  status: number;
  body: unknown;
}

interface AnyEvent<Options> {
  /** The name of the hook in the configuration. */
  readonly hook: string;
  readonly info: HookInfo;
  /** Its options in the configuration, as `options` of the hook has returned them. */
  readonly options: Options;
  /** What an earlier event of this request has returned as `state`; undefined at first. */
  readonly state: unknown;
  /** A secret of this gateway, the same in all its processes and after a restart. */
  readonly salt: string;
  /**
   * Asks a model through the gateway, without hooks, with the key and the limits of the request.
   * @param operation - one that takes and gives JSON, such as "moderations", "chat" or "embeddings"
   */
  ask(operation: string, body: JsonObject): Promise<HookAnswer>;
}

/** Before a backend is looked for. */
export interface RequestHookEvent<Options = JsonObject> extends AnyEvent<Options> {
  /** The body as the client sent it, with what it refers to in place. */
  readonly body: JsonObject;
  /** The same in the neutral model; undefined where the operation is no conversation. Made when it is asked for. */
  readonly request: GenerationRequest | undefined;
}

/** Before one backend is asked. */
export interface AttemptHookEvent<Options = JsonObject> extends RequestHookEvent<Options> {
  readonly backend: string;
  /** The model that is asked now. */
  readonly model: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** A whole answer; of a stream, where the hook has no `chunk`. */
export interface AnswerHookEvent<Options = JsonObject> extends AnyEvent<Options> {
  readonly body: JsonObject;
  /** The same in the neutral model. Made when it is asked for. */
  readonly result: GenerationResult | undefined;
  /** How often the answer was repaired. */
  readonly round: number;
}

export type ChunkKind = "text" | "reasoning" | "refusal" | "tool-call";

/** A piece of a stream: whole characters, cut as `chunks` of the hook says. */
export interface ChunkHookEvent<Options = JsonObject> extends AnyEvent<Options> {
  readonly part: ChunkKind;
  /** Of the part in the answer. */
  readonly index: number;
  readonly text: string;
  /** Nothing of the part follows. `text` may be empty. */
  readonly isLast: boolean;
}

/** The request is over. Nothing waits for this event. */
export interface EndHookEvent<Options = JsonObject> extends AnyEvent<Options> {
  readonly status: number;
  readonly outcome: string;
  readonly durationMs: number;
  readonly backend?: string | undefined;
  readonly failure?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

interface WithEvery {
  /** Kept for later events of this request: any JSON value of at most 256 KiB. */
  state?: unknown;
  /** Shown in the story of the request: numbers and truth values under short names, never texts. */
  note?: Readonly<Record<string, number | boolean>>;
}

interface Pass extends WithEvery {
  verdict: "pass";
}
interface BodyChange extends WithEvery {
  verdict: "change";
  body: JsonObject;
}
interface RequestChange extends WithEvery {
  verdict: "change";
  request: GenerationRequest;
}
interface ResultChange extends WithEvery {
  verdict: "change";
  result: GenerationResult;
}
interface TextChange extends WithEvery {
  verdict: "change";
  text: string;
  /** The end of what was given, which comes again in front of the next piece; at most `hold` characters. */
  rest?: string;
}
interface Refuse extends WithEvery {
  verdict: "refuse";
  status: number;
  code: string;
  message: string;
}
interface AnswerInstead extends WithEvery {
  verdict: "answer";
  result: GenerationResult | { text: string };
}
interface Repair extends WithEvery {
  verdict: "repair";
  message: string;
}

/** undefined is `pass`. */
type Returned<Verdict> = Verdict | undefined | Promise<Verdict | undefined>;

export type RequestVerdict = Pass | BodyChange | RequestChange | Refuse | AnswerInstead;
export type AttemptVerdict = Pass | BodyChange | RequestChange | Refuse;
export type AnswerVerdict = Pass | BodyChange | ResultChange | Refuse | AnswerInstead | Repair;
export type ChunkVerdict = Pass | TextChange | Refuse;

/** How the text of a stream is cut for `chunk`. */
export interface ChunkCuts {
  /** sentence: at the ends of sentences and lines. window: at so many characters. delta: as it comes. */
  by: "sentence" | "window" | "delta";
  /** Most characters that are held back, from 16 to 8192; of windows, their length. Default: 400. */
  hold?: number;
  /** Default: text and refusal. */
  parts?: readonly ChunkKind[];
}

export interface Hook<Options = JsonObject> {
  /** Checks the options of the configuration and returns what events get; throws an Error that names what is wrong. */
  options?(given: JsonObject): Options;
  /** Left out: sentences. */
  chunks?: ChunkCuts | ((options: Options) => ChunkCuts);
  request?(event: RequestHookEvent<Options>): Returned<RequestVerdict>;
  attempt?(event: AttemptHookEvent<Options>): Returned<AttemptVerdict>;
  answer?(event: AnswerHookEvent<Options>): Returned<AnswerVerdict>;
  chunk?(event: ChunkHookEvent<Options>): Returned<ChunkVerdict>;
  end?(event: EndHookEvent<Options>): void | Promise<void>;
}

export function defineHook<Options = JsonObject>(hook: Hook<Options>): Hook<Options> {
  return hook;
}

/** Nothing is changed. */
export function pass(more: WithEvery = {}): Pass {
  return { ...more, verdict: "pass" };
}

/** Another body, request, answer or text in place of the one that was given. */
export function change<
  Change extends
    | { body: JsonObject }
    | { request: GenerationRequest }
    | { result: GenerationResult }
    | { text: string; rest?: string },
>(changed: Change, more: WithEvery = {}): { verdict: "change" } & Change & WithEvery {
  return { ...more, ...changed, verdict: "change" };
}

/** The client gets an error. `status` is from 400 to 599, `code` a word such as "topic_refused". */
export function refuse(status: number, code: string, message: string, more: WithEvery = {}): Refuse {
  return { ...more, verdict: "refuse", status, code, message };
}

/** The client gets this answer; at `request`, no backend is asked. */
export function answer(result: GenerationResult | { text: string }, more: WithEvery = {}): AnswerInstead {
  return { ...more, verdict: "answer", result };
}

/** The model is asked once more, with its answer and this message behind the conversation; the hook then gets the new answer. */
export function repair(message: string, more: WithEvery = {}): Repair {
  return { ...more, verdict: "repair", message };
}
