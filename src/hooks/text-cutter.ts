// Cuts the text of a stream into pieces for hooks: the pieces depend on the text alone, never on how it came, no character is cut
// through, and what is held back is bounded.

import type { ChunkCuts } from "./define.ts";

/** A character may consist of several code units: so many behind a cut decide whether it is one. */
const LOOK_AHEAD = 32;
const TAIL = 64;

const LINE_END = String.raw`(?:\r\n|\r(?=[^\n])|[^\S\r])`;
const CLOSING = String.raw`["'”’»)\]」』]`;
/** A sentence ends before white space, in Chinese and Japanese behind its sign; a line ends a sentence, too. */
const SENTENCE_END = new RegExp(
  String.raw`[.!?…]+${CLOSING}*${LINE_END}|[。！？]${CLOSING}*(?=[^"'”’»)\]」』。！？])|\r\n|\n|\r(?=[^\n])`,
);
const BLANK = /\s/;
const COMBINING = /^\p{M}/u;

export class TextCutter {
  readonly #by: ChunkCuts["by"];
  readonly #hold: number;
  #held = "";

  constructor({ by, hold }: Pick<Required<ChunkCuts>, "by" | "hold">) {
    this.#by = by;
    this.#hold = hold;
  }

  /** Most code units that are held back. */
  get bound(): number {
    return this.#by === "delta" ? TAIL : this.#hold + LOOK_AHEAD;
  }

  push(text: string): string[] {
    this.#held += text;
    const pieces: string[] = [];
    for (;;) {
      const at = this.#by === "delta" ? lastCharacterAt(this.#held) : this.#nextCut();
      if (at === undefined || at === 0) return pieces;
      pieces.push(this.#held.slice(0, at));
      this.#held = this.#held.slice(at);
      if (this.#by === "delta") return pieces;
    }
  }

  /** What is left. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #nextCut(): number | undefined {
    const held = this.#held;
    if (this.#by === "sentence") {
      const found = SENTENCE_END.exec(held.slice(0, this.#hold + LOOK_AHEAD));
      const end = found === null ? 0 : found.index + found[0].length;
      // What follows must be known: it may belong to the character before.
      if (end > 0 && end <= this.#hold && end < held.length && !COMBINING.test(held.slice(end, end + 2))) return end;
    }
    if (held.length <= this.#hold + LOOK_AHEAD) return undefined;
    return forcedCut(held.slice(0, this.#hold + LOOK_AHEAD), this.#hold, this.#by === "sentence");
  }
}

/** Behind the last blank, where words are kept whole, else at the last end of a character. */
function forcedCut(text: string, most: number, atBlank: boolean): number {
  for (let at = most; atBlank && at > most / 2; at--) {
    if (BLANK.test(text[at - 1] as string) && text[at - 1] !== "\r" && !COMBINING.test(text.slice(at, at + 2)))
      return at;
  }
  const start = characters().segment(text).containing(most)?.index ?? most;
  if (start > 0) return start;
  // A character without an end: at least no code point is cut through.
  return isHighSurrogate(text.charCodeAt(most - 1)) ? most - 1 : most;
}

/** Where the last character begins, which may go on. */
function lastCharacterAt(text: string): number {
  const whole = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
  if (whole === "") return 0;
  const from = Math.max(0, whole.length - TAIL);
  const last = characters()
    .segment(whole.slice(from))
    .containing(whole.length - from - 1);
  const at = from + (last?.index ?? 0);
  // A character that is longer than all that is looked at is cut between code points.
  return at > from || from === 0 ? at : whole.length;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function characters(): Intl.Segmenter {
  return new Intl.Segmenter(undefined, { granularity: "grapheme" });
}
