// The words that a recording is found by.

import { parseJson } from "../lib/json.ts";

/** Of one recording; it is not found by further ones. */
const MOST_WORDS = 2_000;
const MOST_CHARACTERS = 1024 * 1024;

const WORD = /[\p{L}\p{N}_]{1,64}/gu;
/** Writings without spaces between words: each two signs side by side are a word. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const BASE64 = /^(data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]{1024,}$/;

/** Each once, in small letters. */
export function wordsOf(texts: Iterable<string>): Set<string> {
  const words = new Set<string>();
  let left = MOST_CHARACTERS;
  for (const text of texts) {
    if (BASE64.test(text)) continue;
    const plain = text.slice(0, left).normalize("NFKC").toLowerCase();
    const hasUnspaced = UNSPACED.test(plain);
    for (const run of plain.match(WORD) ?? []) {
      if (hasUnspaced && UNSPACED.test(run)) for (const pair of pairsOf(run)) words.add(pair);
      else words.add(run);
      if (words.size >= MOST_WORDS) return new Set([...words].slice(0, MOST_WORDS));
    }
    left -= text.length;
    if (left <= 0) break;
  }
  return words;
}

function pairsOf(run: string): string[] {
  const signs = [...run];
  return signs.length < 2 ? signs : signs.slice(1).map((sign, index) => `${signs[index]}${sign}`);
}

/** Every text of a JSON body; of another body none. */
export function* textsOf(body: Uint8Array): Generator<string> {
  yield* textsIn(parseJson(new TextDecoder().decode(body)));
}

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) yield* textsIn(inner);
}
