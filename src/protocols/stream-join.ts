// Joining the stream of a second backend to what a first one has sent, in the client's format: the client sees one
// answer with one id, no text twice and none lost. Each format has its own way; this is what they share.

import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { DecodeError } from "./protocol.ts";
import { readEvents, type SseEvent, singleEvents } from "./sse.ts";

/**
 * How the second stream begins: exactly behind the text that was sent (behind its last letter, that is: see prefillOf()),
 * behind it as a model does that was asked to, or at the start of the answer.
 */
export type JoinMode = "exact" | "continued" | "restarted";

/** What a client has seen of an answer that broke off. */
export interface SentAnswer {
  /** The text so far. */
  text: string;
  /**
   * The members of the request in which what was sent stands as the beginning of the model's turn, with what is left of
   * the limit of tokens; undefined where the request has no place for it.
   */
  askToGoOn(request: JsonObject): JsonObject | undefined;
  /**
   * Makes a second stream fit behind it: whole events -> whole events for the client; undefined when nothing is left of
   * them.
   */
  joiner(mode: JoinMode): (events: Uint8Array) => Uint8Array | undefined;
}

/** A backend's own error event, and what comes before it. */
export interface SplitStream {
  before: Uint8Array | undefined;
  error: unknown;
  /** The event as it came. */
  data: string;
}

export interface StreamJoin {
  /**
   * Reads all events that were sent. Undefined when nothing can be joined to them: a tool call was begun (its arguments
   * could not be continued into valid JSON), a refusal or audio was sent, or the answer was finished.
   */
  readSent(events: readonly Uint8Array[]): SentAnswer | undefined;
  /** Splits whole events at the first one in which a backend tells of an error; undefined when none does. */
  splitAtError(events: Uint8Array): SplitStream | undefined;
  /**
   * The members of the request in which the text stands as the model's own turn, and the prompt to go on behind it.
   * Undefined for a format that knows no turns.
   */
  askForRest(request: JsonObject, text: string, prompt: string): JsonObject | undefined;
}

const decoder = new TextDecoder();

/** Splits whole events at the first one that holds an error, as `errorIn` finds it; undefined when none does. */
export function splitAt(events: Uint8Array, errorIn: (event: SseEvent) => unknown): SplitStream | undefined {
  let offset = 0;
  for (const block of singleEvents(events)) {
    const [event] = readEvents(decoder.decode(block));
    const error = event === undefined ? undefined : errorIn(event);
    if (event !== undefined && error !== undefined && error !== null && error !== "") {
      return { before: offset === 0 ? undefined : events.subarray(0, offset), error, data: event.data };
    }
    offset += block.length;
  }
  return undefined;
}

/** The same for formats that tell of an error in a member of that name. */
export function splitAtErrorMember(events: Uint8Array): SplitStream | undefined {
  if (!Buffer.from(events.buffer, events.byteOffset, events.byteLength).includes('"error"')) return undefined;
  // An answer that merely speaks of errors is told apart by the place of the word.
  return splitAt(events, ({ data }) => parseObject(data)?.error);
}

/** Half a character, which a backend sends in two pieces. */
const HALF_CHARACTER = /[\ud800-\udbff]$/;

/**
 * The text as the beginning of a turn: without the blanks at its end. Chat templates may cut them off, some backends
 * refuse them, and tokens begin with a blank more often than they end with one. The backend says them again.
 */
export function prefillOf(text: string): string {
  return text.replace(HALF_CHARACTER, "").trimEnd();
}

/** A message's content with more text behind it; undefined where it does not end with text. */
export function withTextBehind(content: unknown, text: string): unknown {
  if (typeof content === "string") return content + text;
  const last: unknown = Array.isArray(content) ? content.at(-1) : undefined;
  if (!isObject(last) || typeof last.text !== "string") return undefined;
  return [...(content as unknown[]).slice(0, -1), { ...last, text: last.text + text }];
}

/**
 * The named limits of tokens, less what was spent; one is always left, for the end of the answer.
 * @param pieces - how many pieces of text and thought were sent: engines send one for each token, or for a few of them
 */
export function limitsLeft(request: JsonObject, names: readonly string[], pieces: number): JsonObject {
  const left: JsonObject = {};
  for (const name of names) {
    const limit = request[name];
    if (typeof limit === "number") left[name] = Math.max(1, limit - pieces);
  }
  return left;
}

/**
 * Counts of a backend that went on behind what was sent, in the two members named: what the client has is a part of the
 * answer, though this backend was told it with the question. The sum stays as it is.
 */
export function countAsAnswer(usage: JsonObject, members: readonly [asked: string, answered: string], pieces: number) {
  const [asked, answered] = members;
  const { [asked]: question, [answered]: answer } = usage;
  if (typeof question !== "number" || typeof answer !== "number") return usage;
  const moved = Math.min(pieces, question);
  return { ...usage, [asked]: question - moved, [answered]: answer + moved };
}

/** Leaves out what of a second stream's beginning the client has already. */
export interface OpeningFilter {
  /** Whether more of it may come. */
  readonly isActive: boolean;
  /** How much of it there can be. */
  readonly length: number;
  /** What is left of a piece of text. */
  push(text: string): string;
  /** The answer ends, or turns to tools. */
  end(): void;
}

export function openingFilter(text: string, mode: JoinMode): OpeningFilter {
  if (mode === "exact") return new SeamFilter(text.slice(prefillOf(text).length));
  return new RepetitionFilter(mode === "restarted" ? text : "");
}

/** Leaves out the end of the text that the backend was not told of, as far as it says the same. */
class SeamFilter implements OpeningFilter {
  readonly length: number;
  #expected: string;

  constructor(expected: string) {
    this.length = expected.length;
    this.#expected = expected;
  }

  get isActive(): boolean {
    return this.#expected !== "";
  }

  push(text: string): string {
    const expected = this.#expected;
    let same = 0;
    while (same < expected.length && same < text.length && text[same] === expected[same]) same++;
    this.#expected = same === text.length ? expected.slice(same) : "";
    return text.slice(same);
  }

  end(): void {
    this.#expected = "";
  }
}

/** For a backend that was to go on with its text: what it takes for a thought may be that text. */
export function refuseThought(thought: string): void {
  if (thought !== "") throw new DecodeError("it thinks where it was to go on with its text");
}

/** What stands between the text that was sent and a new answer that begins differently. */
const RESTART_SEPARATOR = "\n\n";

/** Swallows the text of a restarted answer while it repeats what was sent; from the first difference on it is shown whole. */
class RepetitionFilter implements OpeningFilter {
  readonly length: number;
  #expected: string;
  #swallowed = "";

  /** @param sent - the text that may be repeated; "" when the second answer goes on behind it */
  constructor(sent: string) {
    this.length = sent.length;
    this.#expected = sent;
  }

  get isActive(): boolean {
    return this.#expected !== "";
  }

  push(text: string): string {
    if (this.#expected === "") return text;
    const seen = this.#swallowed + text;
    if (this.#expected.startsWith(seen)) {
      this.#swallowed = seen;
      if (seen.length === this.#expected.length) this.end();
      return "";
    }
    const expected = this.#expected;
    this.end();
    return seen.startsWith(expected) ? seen.slice(expected.length) : RESTART_SEPARATOR + seen;
  }

  /** The answer ends, or turns to tools, within what was sent: what it has said so far is not new. */
  end(): void {
    this.#expected = "";
    this.#swallowed = "";
  }
}
