// The demo model's tokens: the unit of its usage figures, of max_tokens, and of one streamed piece.

/**
 * A token is up to eight characters of a word together with the white space before it, which comes near the count of
 * real tokenisers for English text. White space at the very end is a token of its own.
 */
const TOKEN = /\s*\S{1,8}|\s+/gu;

/** Joined, the tokens are the text again. */
export function splitTokens(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

/** The same as splitTokens(text).length, without keeping the tokens of a long prompt. */
export function countTokens(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(TOKEN)) count++;
  return count;
}

/** Counts the tokens of a text, or of a list of token ids. */
export function countInput(input: string | number[]): number {
  return typeof input === "string" ? countTokens(input) : input.length;
}
