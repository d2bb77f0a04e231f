// What the chunks of chat and of text completions share, where an answer goes on that another backend has begun: what was
// sent is read, and what only these formats know passes through the neutral model.

import type { GenerationEvent } from "../generation/events.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { encodeUsage } from "./chunk-usage.ts";
import { isSet, joinChunks } from "./joined-chunks.ts";
import type { AnswerContext } from "./protocol.ts";
import { objectOf, textOf } from "./reading.ts";
import type { SseEvent } from "./sse.ts";
import { recounted } from "./stream-join.ts";

/** What a client has of an answer in chunks that broke off. */
export interface SentChunks {
  /** The first id, time and model that were given. */
  identity: JsonObject;
  text: string;
  thought: string;
  /** How many pieces of text and thought there were. */
  pieces: number;
  hasRole: boolean;
}

const IDENTITY = ["id", "created", "model"] as const;

/** What no other backend can go on with, if it was begun: its pieces could not be joined into one that is valid. */
const CLOSED = ["tool_calls", "function_call", "audio", "refusal", "content", "message"];

/**
 * Reads whole events of one choice. Undefined when nothing can go on behind them: several choices run, a call, a refusal or
 * sound was begun, its text has another form than a string, or the answer was finished.
 */
export function readSentChunks(events: readonly SseEvent[], says: "delta" | "text"): SentChunks | undefined {
  const { members, choices } = joinChunks(
    events.map(({ data }) => data),
    says,
  );
  const identity = Object.fromEntries(
    IDENTITY.flatMap((name) => (isSet(members[name]) ? [[name, members[name]]] : [])),
  );
  const [choice, ...others] = choices;
  if (choice === undefined) return { identity, text: "", thought: "", pieces: 0, hasRole: false };
  const { fields, message, toolCalls, thought, pieces, hasEnded, unknown } = choice;
  const isClosed = toolCalls.size > 0 || isSet(message.refusal) || CLOSED.some((name) => unknown.get(name) === true);
  if (others.length > 0 || fields.index !== 0 || hasEnded || isClosed) return undefined;
  return { identity, text: textOf(message.content), thought, pieces, hasRole: isSet(message.role) };
}

const CHUNK: ReadonlySet<string> = new Set(["id", "object", "created", "model", "choices", "usage"]);
const CHOICE: ReadonlySet<string> = new Set(["index", "delta", "text", "finish_reason", "logprobs"]);

/**
 * What of a chunk only its own format knows: members of the chunk, of its choice and of its delta, and the probabilities
 * of its tokens. Undefined where there is nothing of that kind.
 * @param known - members of the delta that the neutral model has
 */
export function ownMembers(chunk: JsonObject, choice: JsonObject, known: ReadonlySet<string>): JsonObject | undefined {
  const own: JsonObject = {};
  const add = (name: string, members: JsonObject | undefined) => {
    if (members !== undefined) own[name] = members;
  };
  add("chunk", rest(chunk, CHUNK));
  add("choice", rest(choice, CHOICE));
  if (isObject(choice.delta)) add("delta", rest(choice.delta, known));
  if (isObject(choice.logprobs)) own.logprobs = choice.logprobs;
  return Object.keys(own).length > 0 ? own : undefined;
}

function rest(value: JsonObject, known: ReadonlySet<string>): JsonObject | undefined {
  const entries = Object.entries(value).filter(
    ([name, member]) => !known.has(name) && member !== null && member !== "",
  );
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

type Of<Type extends GenerationEvent["type"]> = Extract<GenerationEvent, { type: Type }>;

/** What streams of chunks have besides their choices: who answers at the head of every chunk, and the counts at the end. */
export class ChunkFrame {
  /** What every chunk begins with, up to its choices. */
  head = "";
  identity: JsonObject | undefined;
  /** What stands behind the choices where there are no counts. */
  readonly noUsage: string;
  readonly #context: AnswerContext;
  readonly #sent: JsonObject | undefined;
  readonly #wantsUsage: boolean;
  #usage: Of<"usage"> | undefined;

  /** @param sent - id, time and model of an answer which this one goes on with */
  constructor(context: AnswerContext, sent: JsonObject | undefined) {
    this.#context = context;
    this.#sent = sent;
    this.#wantsUsage = objectOf(context.request.origin.body.stream_options).include_usage === true;
    this.noUsage = this.#wantsUsage ? ',"usage":null' : "";
  }

  start(object: string, id: string, createdAt: number): void {
    const { model, createdAt: now } = this.#context;
    this.identity = { id, object, created: createdAt || now, model, ...this.#sent };
    this.head = `data: ${JSON.stringify(this.identity).slice(0, -1)},"choices":`;
  }

  /** A chunk with one choice. `own`: what only the format knows of it, as ownMembers() has read it. */
  chunk(choice: string, own: JsonObject | undefined): string {
    if (own?.chunk === undefined) return `${this.head}[${choice}]${this.noUsage}}\n\n`;
    const head = { ...this.identity, ...(this.#wantsUsage && { usage: null }), ...(own.chunk as object) };
    return `data: ${JSON.stringify(head).slice(0, -1)},"choices":[${choice}]}\n\n`;
  }

  /** The last ones count. */
  count(usage: Of<"usage">): void {
    this.#usage = usage;
  }

  end(): string {
    const counts = this.#counts();
    const usage = counts === undefined ? "" : `${this.head}[],"usage":${JSON.stringify(counts)}}\n\n`;
    return `${usage}data: [DONE]\n\n`;
  }

  /** Undefined where the client does not get them, or there are none. */
  #counts(): JsonObject | undefined {
    if (this.#usage === undefined) return undefined;
    const { usage, own } = this.#usage;
    const counts = encodeUsage(usage);
    if (own !== undefined) return recounted(own, counts, ["prompt_tokens", "completion_tokens"]);
    return this.#wantsUsage ? counts : undefined;
  }
}

/** JSON members behind others: with a comma in front, empty for none. */
export function membersBehind(members: unknown): string {
  return members === undefined ? "" : `,${JSON.stringify(members).slice(1, -1)}`;
}
