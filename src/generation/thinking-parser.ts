// Finds the thoughts in the text of engines that do not separate them: text up to the
// end marker is reasoning, what follows is the answer.

import type { AnswerTransform, EventTransform } from "./answer-transform.ts";
import type { Citation } from "./content.ts";
import type { GenerationEvent } from "./events.ts";

/** The `thinking` block of a model's metadata, in its own spelling. */
export interface ThinkingFormat {
  pattern: "none" | "standard" | "unterminated_start";
  start_marker: string;
  end_marker: string;
  assume_reasoning_first: boolean;
}

interface ThinkingPiece {
  type: "reasoning" | "text";
  /** Never empty. */
  text: string;
}

/** Whether answers have to be looked through at all. */
export function hasThinking(format: ThinkingFormat | undefined): format is ThinkingFormat {
  return format !== undefined && (format.pattern !== "none" || format.assume_reasoning_first);
}

/** White space before a start marker, or before the first thought, that is held back at most. */
const LONGEST_SPACE = 256;

/**
 * Splits one text. A start marker counts only at the beginning: an answer may well write about "<think>". Behind the end
 * marker everything is text. No more is held back than what may turn out to be a marker.
 */
export class ThinkingSplitter {
  readonly #start: string;
  readonly #end: string;
  readonly #reasonsFirst: boolean;
  #state: "start" | "reasoning" | "text" = "start";
  #held = "";
  /** White space at the beginning of the thoughts: empty thoughts are none. */
  #space: string | undefined = "";
  #seen = 0;
  #textOffset: number | undefined;

  constructor(format: ThinkingFormat, reasonsFirst: boolean) {
    this.#start = format.start_marker.trimStart();
    this.#end = format.end_marker;
    this.#reasonsFirst = reasonsFirst;
  }

  /** Where the answer begins in the whole text; undefined before it does. */
  get textOffset(): number | undefined {
    return this.#textOffset;
  }

  push(text: string): ThinkingPiece[] {
    this.#seen += text.length;
    if (this.#state === "text") return textPiece(text);
    const pieces: ThinkingPiece[] = [];
    let rest = this.#held + text;
    this.#held = "";
    if (this.#state === "start") {
      const beginning = this.#findStart(rest);
      if (beginning === undefined) {
        this.#held = rest;
        return pieces;
      }
      if (!beginning.isReasoning) return this.#beginText(rest);
      this.#state = "reasoning";
      rest = beginning.rest;
    }
    const found = rest.indexOf(this.#end);
    if (found >= 0) {
      this.#reason(rest.slice(0, found), pieces);
      return [...pieces, ...this.#beginText(rest.slice(found + this.#end.length))];
    }
    const held = prefixAtEnd(rest, this.#end);
    this.#reason(rest.slice(0, rest.length - held), pieces);
    this.#held = rest.slice(rest.length - held);
    return pieces;
  }

  /** The text is over: what was held back is no marker. */
  end(): ThinkingPiece[] {
    const held = this.#held;
    this.#held = "";
    if (this.#state === "start" && !this.#reasonsFirst) return this.#beginText(held);
    const pieces: ThinkingPiece[] = [];
    if (this.#state !== "text") this.#reason(held, pieces);
    return pieces;
  }

  /** How the text begins; undefined while that is not decided. */
  #findStart(rest: string): { isReasoning: boolean; rest: string } | undefined {
    const begun = rest.trimStart();
    if (rest.length - begun.length <= LONGEST_SPACE) {
      if (this.#start !== "" && begun.startsWith(this.#start)) {
        return { isReasoning: true, rest: begun.slice(this.#start.length) };
      }
      if (this.#start.startsWith(begun)) return undefined;
    }
    return { isReasoning: this.#reasonsFirst, rest };
  }

  #reason(text: string, pieces: ThinkingPiece[]): void {
    let thought = text;
    if (this.#space !== undefined) {
      thought = this.#space + text;
      if (thought.trim() === "" && thought.length <= LONGEST_SPACE) {
        this.#space = thought;
        return;
      }
      this.#space = undefined;
    }
    if (thought !== "") pieces.push({ type: "reasoning", text: thought });
  }

  #beginText(text: string): ThinkingPiece[] {
    this.#state = "text";
    this.#textOffset = this.#seen - text.length;
    return textPiece(text);
  }
}

function textPiece(text: string): ThinkingPiece[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** Length of the longest beginning of the marker that the text ends with. */
function prefixAtEnd(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

/**
 * Moves thoughts out of the text of answers. Where the backend gives reasoning itself, its text is left alone. Only the
 * first text can begin with thoughts that have no start marker: behind a tool call the model says where it thinks again.
 */
export function splitThinking(format: ThinkingFormat): AnswerTransform {
  return () => new ThinkingStream(format);
}

/** Decides part by part whether and how a text is split. */
class SplitPolicy {
  readonly #format: ThinkingFormat;
  #reasonsFirst: boolean;
  #isSeparated = false;

  constructor(format: ThinkingFormat) {
    this.#format = format;
    this.#reasonsFirst = format.pattern === "unterminated_start" || format.assume_reasoning_first;
  }

  sawReasoning(): void {
    this.#isSeparated = true;
  }

  splitterForText(): ThinkingSplitter | undefined {
    if (this.#isSeparated || !hasThinking(this.#format)) return undefined;
    const splitter = new ThinkingSplitter(this.#format, this.#reasonsFirst);
    this.#reasonsFirst = false;
    return splitter;
  }
}

/** Offsets count in the text of the part, which begins later now. */
function shifted(citation: Citation, offset: number): Citation {
  if (offset === 0) return citation;
  const { startIndex, endIndex, ...rest } = citation;
  // Said of the thoughts: the place does not exist any more.
  if ((startIndex ?? offset) < offset || (endIndex ?? offset) < offset) return rest;
  return {
    ...rest,
    ...(startIndex !== undefined && { startIndex: startIndex - offset }),
    ...(endIndex !== undefined && { endIndex: endIndex - offset }),
  };
}

/** A text of the stream that is being split. */
interface OpenText {
  splitter: ThinkingSplitter;
  /** Index in the backend's stream. */
  index: number;
  /** The part that is open towards the client. */
  open: { type: ThinkingPiece["type"]; index: number } | undefined;
  length: number;
  /** Citations and proofs that came before the text they belong to. */
  waiting: GenerationEvent[];
}

class ThinkingStream implements EventTransform {
  readonly #policy: SplitPolicy;
  /** The backend's indexes -> the client's, for parts that pass. */
  readonly #indexes = new Map<number, number>();
  #nextIndex = 0;
  #text: OpenText | undefined;

  constructor(format: ThinkingFormat) {
    this.#policy = new SplitPolicy(format);
  }

  push(event: GenerationEvent): readonly GenerationEvent[] {
    if (event.type === "part-start") return this.#startPart(event);
    if (!("index" in event)) return [event];
    const text = this.#text;
    if (text?.index !== event.index) {
      const index = this.#indexes.get(event.index);
      return index === undefined ? [] : [{ ...event, index }];
    }
    if (event.type === "delta") return this.#forward(text, event.text);
    if (event.type === "part-end") return this.#endText(text);
    if (text.open?.type === "text") return [this.#placed(text, event, text.open.index)];
    text.waiting.push(event);
    return [];
  }

  /** A stream that broke off: what was held back is given out, what is open stays open. */
  end(): readonly GenerationEvent[] {
    const text = this.#text;
    if (text === undefined) return [];
    const events: GenerationEvent[] = [];
    for (const piece of text.splitter.end()) this.#write(text, piece, events);
    return events;
  }

  #startPart(event: Extract<GenerationEvent, { type: "part-start" }>): GenerationEvent[] {
    if (event.part.type === "reasoning") this.#policy.sawReasoning();
    const splitter = event.part.type === "text" ? this.#policy.splitterForText() : undefined;
    if (splitter !== undefined) {
      const none = { open: undefined, length: 0, waiting: [] };
      this.#text = { splitter, index: event.index, ...none };
      return [];
    }
    const index = this.#nextIndex++;
    this.#indexes.set(event.index, index);
    return [{ ...event, index }];
  }

  #forward(text: OpenText, delta: string): GenerationEvent[] {
    text.length += delta.length;
    // The usual case: the thoughts are over, or there were none.
    if (text.open?.type === "text") return [{ type: "delta", index: text.open.index, text: delta }];
    const events: GenerationEvent[] = [];
    for (const piece of text.splitter.push(delta)) this.#write(text, piece, events);
    return events;
  }

  #write(text: OpenText, piece: ThinkingPiece, events: GenerationEvent[]): void {
    const index = this.#open(text, piece.type, events);
    events.push({ type: "delta", index, text: piece.text });
  }

  #open(text: OpenText, type: ThinkingPiece["type"], events: GenerationEvent[]): number {
    if (text.open?.type === type) return text.open.index;
    if (text.open !== undefined) events.push({ type: "part-end", index: text.open.index });
    const index = this.#nextIndex++;
    text.open = { type, index };
    events.push({ type: "part-start", index, part: { type } });
    if (type === "text") {
      for (const event of text.waiting) events.push(this.#placed(text, event, index));
      text.waiting = [];
    }
    return index;
  }

  #endText(text: OpenText): GenerationEvent[] {
    const events: GenerationEvent[] = [];
    for (const piece of text.splitter.end()) this.#write(text, piece, events);
    // An empty text stays one, and what came with the text needs a place.
    if (text.waiting.length > 0 || text.open === undefined) this.#open(text, "text", events);
    if (text.open !== undefined) events.push({ type: "part-end", index: text.open.index });
    this.#text = undefined;
    return events;
  }

  /** A citation or proof at the text that is now open. */
  #placed(text: OpenText, event: GenerationEvent, index: number): GenerationEvent {
    if (event.type === "citation") {
      return { ...event, index, citation: shifted(event.citation, text.splitter.textOffset ?? text.length) };
    }
    return event.type === "seal" ? { ...event, index } : event;
  }
}
