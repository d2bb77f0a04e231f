// Joining the stream of a second backend to what a first one has sent, in the client's format: the client sees one
// answer with one id, no text twice and none lost. Each format has its own way; this is what they share.

import type { JsonObject } from "../lib/json.ts";
import { readEvents, type SseEvent } from "./sse.ts";

/** How the second stream begins: behind the text that was sent, or at the start of the answer. */
export type JoinMode = "continued" | "restarted";

/** What a client has seen of an answer that broke off. */
export interface SentAnswer {
  /** The text so far. */
  text: string;
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
  /** The members of the request in which the text stands as the model's own turn, and the prompt to go on behind it. */
  askForRest(request: JsonObject, text: string, prompt: string): JsonObject;
}

const decoder = new TextDecoder();
const latin1 = new TextDecoder("latin1");

/** Splits whole events at the first one that holds an error, as `errorIn` finds it; undefined when none does. */
export function splitAt(events: Uint8Array, errorIn: (event: SseEvent) => unknown): SplitStream | undefined {
  let offset = 0;
  // As Latin-1 every byte is one character, so that offsets are right whatever the bytes are.
  for (const block of latin1.decode(events).split(/(?<=\n\r?\n|\r\r)/)) {
    const [event] = readEvents(decoder.decode(events.subarray(offset, offset + block.length)));
    const error = event === undefined ? undefined : errorIn(event);
    if (event !== undefined && error !== undefined && error !== null && error !== "") {
      return { before: offset === 0 ? undefined : events.subarray(0, offset), error, data: event.data };
    }
    offset += block.length;
  }
  return undefined;
}

/** What stands between the text that was sent and a new answer that begins differently. */
const RESTART_SEPARATOR = "\n\n";

/** Swallows the text of a restarted answer while it repeats what was sent; from the first difference on it is shown whole. */
export class RepetitionFilter {
  #expected: string;
  #swallowed = "";

  /** @param sent - the text that may be repeated; "" when the second answer goes on behind it */
  constructor(sent: string) {
    this.#expected = sent;
  }

  /** Whether what was sent may still be repeated. */
  get isActive(): boolean {
    return this.#expected !== "";
  }

  /** What is left of a piece of text. */
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
