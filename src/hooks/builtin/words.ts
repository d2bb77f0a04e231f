// Built-in hook: lists of words that requests and answers may not have, or of which requests must have one.

import { type ChunkVerdict, defineHook, pass, refuse } from "../define.ts";
import { textsIn } from "./body-texts.ts";
import { checkNames, listIn, textIn } from "./option-fields.ts";

interface WordsOptions {
  deny: RegExp | undefined;
  allow: RegExp | undefined;
  checks: ReadonlySet<string>;
  message: string;
}

const CHECKED = ["request", "answer"];
/** Longer words would be cut in streams. */
const MAX_WORD_LENGTH = 100;

/** Whole words, whatever their case; a phrase of several words may have any white space between them. */
export function wordPattern(words: readonly string[]): RegExp | undefined {
  if (words.length === 0) return undefined;
  const escaped = words.map((word) =>
    word
      .trim()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
      .replaceAll(/\s+/g, "\\s+"),
  );
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})(?![\\p{L}\\p{N}])`, "iu");
}

function refusal(message: string): ReturnType<typeof refuse> {
  return refuse(403, "words_refused", message);
}

export default defineHook<WordsOptions>({
  options(given) {
    checkNames(given, ["deny", "allow", "checks", "message"]);
    const [deny, allow] = [listIn(given, "deny", undefined), listIn(given, "allow", undefined)];
    if (deny.length + allow.length === 0) throw new Error("options: name words in deny or in allow");
    const long = [...deny, ...allow].find((word) => word.length > MAX_WORD_LENGTH);
    if (long !== undefined) throw new Error(`options: words may have at most ${MAX_WORD_LENGTH} characters`);
    return {
      deny: wordPattern(deny),
      allow: wordPattern(allow),
      checks: new Set(listIn(given, "checks", CHECKED)),
      message: textIn(given, "message", "The request or its answer has words that are not allowed here.") as string,
    };
  },
  // The end of a piece is checked with the beginning of the next one.
  chunks: { by: "window", hold: 2 * MAX_WORD_LENGTH, parts: ["text", "refusal", "reasoning", "tool-call"] },

  request({ body, options: { deny, allow, checks, message } }) {
    if (!checks.has("request")) return pass();
    const texts = textsIn(body);
    if (deny !== undefined && texts.some((text) => deny.test(text))) return refusal(message);
    if (allow !== undefined && !texts.some((text) => allow.test(text))) return refusal(message);
    return pass();
  },

  answer({ body, options: { deny, checks, message } }) {
    if (!checks.has("answer") || deny === undefined) return pass();
    return textsIn(body).some((text) => deny.test(text)) ? refusal(message) : pass();
  },

  chunk({ text, isLast, options: { deny, checks, message } }): ChunkVerdict {
    if (!checks.has("answer") || deny === undefined) return pass();
    const found = deny.exec(text);
    // A word at the end of the piece may go on.
    if (found !== null && (isLast || found.index + found[0].length < text.length)) return refusal(message);
    const kept = text.length - MAX_WORD_LENGTH;
    if (isLast || kept <= 0) return isLast ? pass() : { verdict: "change", text: "", rest: text };
    const at = wordStart(text, kept);
    return { verdict: "change", text: text.slice(0, at), rest: text.slice(at) };
  },
});

/** The beginning of the word at a place, so that the rest does not begin inside of it. */
function wordStart(text: string, place: number): number {
  const blank = text.slice(0, place).search(/\s\S*$/);
  if (blank >= 0) return blank + 1;
  const isInside = text.charCodeAt(place) >= 0xdc00 && text.charCodeAt(place) <= 0xdfff;
  return isInside ? place - 1 : place; // a code point is not cut through
}
