// The seam of an answer that two backends make: what of the second one's events the client has seen already is left out,
// and the rest goes on behind it, in whatever format the client reads.

import type { Citation } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Usage } from "../generation/usage.ts";
import { compact } from "../lib/json.ts";
import { DecodeError, type StreamEncoder } from "./protocol.ts";

/**
 * How the second stream begins: exactly behind the text that was sent (behind its last letter, that is: see prefillOf()),
 * behind it as a model does that was asked to, or at the start of the answer.
 */
export type JoinMode = "exact" | "continued" | "restarted";

/** What the seam has to know of an answer that broke off. */
export interface SentText {
  text: string;
  /** Length of the text of the part that is open, and goes on with the second answer's first text; 0 where none has text. */
  openText: number;
  /** How many pieces of text and thought there were. */
  pieces: number;
  /** The counts of a question from which tokens can be moved to the answer; all where left out. */
  movable?: (usage: Usage) => number;
  /** Whether thoughts would stand behind something that was shown. */
  hidesThoughts: boolean;
}

type Of<Type extends GenerationEvent["type"]> = Extract<GenerationEvent, { type: Type }>;

/** A part of the second answer whose events do not just pass. */
type SeamPart =
  | { type: "hidden" }
  | {
      type: "text";
      start: Of<"part-start">;
      isShown: boolean;
      /** How much longer the text is for the client than as the backend told it; negative where it is shorter. */
      shift: number;
      hasText: boolean;
      /** Citations and the like that came before any text that is shown. */
      held: (Of<"citation"> | Of<"seal">)[];
    };

type SeamText = Extract<SeamPart, { type: "text" }>;

export class Seam implements StreamEncoder {
  readonly #encoder: StreamEncoder;
  readonly #sent: SentText;
  readonly #filter: OpeningFilter;
  /** Whether the second backend got the text as the beginning of its own. */
  readonly #isBehindText: boolean;
  /** Whether the client's open text part can still be gone on with. */
  #isOpen: boolean;
  /** Length of the text that has come. */
  #received = 0;
  readonly #parts = new Map<number, SeamPart>();
  #misfit: DecodeError | undefined;

  /** @param encoder - writes behind what was sent */
  constructor(sent: SentText, mode: JoinMode, encoder: StreamEncoder) {
    this.#encoder = encoder;
    this.#sent = sent;
    this.#filter = openingFilter(sent.text, mode);
    this.#isBehindText = mode === "exact" && prefillOf(sent.text) !== "";
    this.#isOpen = sent.openText > 0;
  }

  push(event: GenerationEvent): string {
    // What does not fit is not told as an answer that is complete.
    if (this.#misfit !== undefined && event.type !== "failure") throw this.#misfit;
    switch (event.type) {
      case "part-start":
        return this.#startPart(event);
      case "delta":
      case "citation":
      case "seal":
      case "part-end": {
        const part = this.#parts.get(event.index);
        if (part === undefined) return this.#encoder.push(event);
        return part.type === "text" ? this.#inText(part, event) : this.#inHidden(event);
      }
      case "usage":
        return this.#encoder.push(this.#isBehindText ? { ...event, usage: this.#counted(event.usage) } : event);
      case "finish":
        this.#filter.end();
        return this.#encoder.push(event);
      default:
        return this.#encoder.push(event);
    }
  }

  end(): string {
    return this.#encoder.end();
  }

  #startPart(event: Of<"part-start">): string {
    const { index, part } = event;
    if (part.type === "text") {
      this.#parts.set(index, { type: "text", start: event, isShown: false, shift: 0, hasText: false, held: [] });
      return "";
    }
    if (part.type === "reasoning" && this.#sent.hidesThoughts) {
      this.#parts.set(index, { type: "hidden" });
      return "";
    }
    // Before any text, as a search may come, it is no turn within the text.
    if (this.#received > 0) this.#filter.end();
    this.#isOpen = false;
    return this.#encoder.push(event);
  }

  #inHidden(event: GenerationEvent): string {
    // What it takes for a thought may be the text that it was to go on with.
    if (!this.#isBehindText || event.type !== "delta") return "";
    this.#misfit = new DecodeError("it thinks where it was to go on with its text");
    throw this.#misfit;
  }

  #inText(part: SeamText, event: Of<"delta"> | Of<"citation"> | Of<"seal"> | Of<"part-end">): string {
    switch (event.type) {
      case "delta": {
        part.hasText = true;
        this.#received += event.text.length;
        const rest = this.#filter.push(event.text);
        part.shift += rest.length - event.text.length;
        if (rest === "") return "";
        return this.#show(part) + this.#encoder.push(rest === event.text ? event : cut(event, rest));
      }
      case "part-end": {
        // Swallowed to the last letter that was sent: it is the client's open part that ends.
        const isWhole = this.#isOpen && part.hasText && this.#received === this.#filter.length;
        const shown = isWhole ? this.#show(part) : "";
        return part.isShown ? shown + this.#encoder.push(event) : "";
      }
      default:
        if (part.isShown) return this.#pushMoved(part, event);
        part.held.push(event);
        return "";
    }
  }

  #show(part: SeamText): string {
    if (part.isShown) return "";
    part.isShown = true;
    if (this.#isOpen) part.shift += this.#sent.openText;
    this.#isOpen = false;
    let text = this.#encoder.push(part.start);
    for (const event of part.held.splice(0)) text += this.#pushMoved(part, event);
    return text;
  }

  #pushMoved({ shift }: SeamText, event: Of<"citation"> | Of<"seal">): string {
    if (event.type === "seal" || shift === 0) return this.#encoder.push(event);
    const citation = moved(event.citation, shift);
    return citation === undefined ? "" : this.#encoder.push({ ...event, citation });
  }

  /**
   * What the client has is a part of the answer, though this backend got it with the question. The sum stays as it
   * is.
   */
  #counted(usage: Usage): Usage {
    const { input, output } = usage;
    const { pieces, movable = () => input.total } = this.#sent;
    const told = Math.min(pieces, movable(usage));
    return {
      ...usage,
      input: { ...input, total: input.total - told },
      output: { ...output, total: output.total + told },
    };
  }
}

/** The event with what is left of its text; probabilities speak of the whole of it. */
function cut({ own, ...event }: Of<"delta">, text: string): GenerationEvent {
  const { logprobs: _, ...left } = own ?? {};
  return { ...event, text, ...(Object.keys(left).length > 0 && { own: left }) };
}

/** The same place in a text that begins elsewhere; undefined where that is in a part which is closed. */
function moved(citation: Citation, shift: number): Citation | undefined {
  const { startIndex, endIndex } = citation;
  if (endIndex !== undefined && endIndex + shift <= 0) return undefined;
  return compact({
    ...citation,
    startIndex: startIndex === undefined ? undefined : Math.max(0, startIndex + shift),
    endIndex: endIndex === undefined ? undefined : endIndex + shift,
  });
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

/** Leaves out what of a second stream's beginning the client has already. */
interface OpeningFilter {
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

/** Leaves out the end of the text that the backend did not get, as far as it says the same. */
class SeamFilter implements OpeningFilter {
  readonly length: number;
  #expected: string;

  constructor(expected: string) {
    this.length = expected.length;
    this.#expected = expected;
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
