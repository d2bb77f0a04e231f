// Streams of chunks that pass untouched, as of chat and text completions: whether they were complete, and what they
// counted, read where it stands.

import type { Usage } from "../generation/usage.ts";
import { isObject, type JsonObject, parseObject } from "../lib/json.ts";
import type { Verdict } from "./answer-reader.ts";
import { decodeUsage } from "./chunk-usage.ts";
import type { AnswerEdits, StreamWatch, WatchOptions } from "./protocol.ts";
import { readEvents } from "./sse.ts";
import { StreamEnding, saysNothing } from "./stream-ending.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const CLOSING_BRACE = 125;
const CLOSING_BRACKET = 93;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

const DONE_EVENT = encoder.encode("data: [DONE]\n\n");

export class ChunkWatch implements StreamWatch {
  readonly endMarker = DONE_EVENT;
  readonly itemIds: readonly string[] = [];
  readonly #edits: AnswerEdits | undefined;
  readonly #hidesUsage: boolean;
  readonly #ending: StreamEnding;
  isDone = false;
  #counts: JsonObject | undefined;

  constructor({ choices, edits, hidesUsage = false }: WatchOptions) {
    this.#edits = edits;
    this.#hidesUsage = hidesUsage;
    this.#ending = new StreamEnding(choices);
  }

  get usage(): Usage | undefined {
    return decodeUsage(this.#counts);
  }

  push(received: Uint8Array): Uint8Array | undefined {
    if (this.#ending.saw(received)) this.isDone = true;
    const events = this.#edits === undefined ? received : this.#edits.push(received);
    if (!endsLikeUsage(events)) return events;
    const found = readEvents(decoder.decode(events));
    const kept = found.filter(({ data }) => {
      const chunk = parseObject(data);
      if (!isObject(chunk?.usage)) return true;
      this.#counts = chunk.usage;
      return !(this.#hidesUsage && saysNothing(chunk));
    });
    if (kept.length === found.length) return events;
    return kept.length === 0 ? undefined : encoder.encode(kept.map(({ data }) => `data: ${data}\n\n`).join(""));
  }

  verdict(): Verdict {
    return this.#ending.verdict();
  }

  get reported(): JsonObject | undefined {
    return this.#ending.reported;
  }
}

/** A chunk with counts ends with two braces, an ordinary one with a bracket or a null; [DONE] may share its piece. */
function endsLikeUsage(events: Uint8Array): boolean {
  let end = events.length;
  while (end > 0 && (events[end - 1] === LINE_FEED || events[end - 1] === CARRIAGE_RETURN)) end--;
  const last = events[end - 1];
  return (last === CLOSING_BRACE && events[end - 2] === CLOSING_BRACE) || (last === CLOSING_BRACKET && end > 16);
}
