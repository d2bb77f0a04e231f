// The words that a recording is found by, as hashes: no text is made of a word, because a recording has some hundred.

/** Of one recording; it is not found by further ones. */
const MOST_WORDS = 2_000;
const MOST_CHARACTERS = 1024 * 1024;
/** A longer run of letters is several words. */
const MOST_LETTERS = 64;

const ASCII_CODES = 128;
const WORD = new RegExp(`[\\p{L}\\p{N}_]{1,${MOST_LETTERS}}`, "gu");
/** Writings without spaces between words: each two signs side by side are a word. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const LEAST_BASE64 = 1024;
const BASE64 = new RegExp(`^(data:[\\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]{${LEAST_BASE64},}$`);

/** Of FNV-1a, whose 32 bits are as many as a digest has. */
const HASH_START = 0x811c9dc5 | 0;
const HASH_FACTOR = 0x01000193;

/** More than twice as many as words, and a power of two. */
const PLACES = 4_096;

/** Makes the hashes of one recording after the other, in the same memory. */
export class WordHashes {
  readonly #hashes = new Uint32Array(MOST_WORDS);
  /** Where a hash stands, plus one; 0 is free. */
  readonly #places = new Uint16Array(PLACES);
  readonly #smallLetters = asciiLetters();
  #count = 0;

  /**
   * One for each different word, whatever its capital letters, in the order of the texts. What is returned is overwritten by the next
   * call.
   */
  of(texts: Iterable<string>): Uint32Array {
    this.#count = 0;
    this.#places.fill(0);
    let left = MOST_CHARACTERS;
    for (const text of texts) {
      if (isEncoded(text)) continue;
      const read = text.length > left ? text.slice(0, left) : text;
      if (!this.#addAsciiWords(read)) this.#addWords(read);
      left -= text.length;
      if (left <= 0 || this.#count === MOST_WORDS) break;
    }
    return this.#hashes.subarray(0, this.#count);
  }

  /** The words that WORD finds, hashed on the way. False: the text has other signs, and is to be read as a whole by #addWords. */
  #addAsciiWords(text: string): boolean {
    const smallLetters = this.#smallLetters;
    let hash = HASH_START;
    let letters = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code >= ASCII_CODES) return false;
      const letter = smallLetters[code] as number;
      if (letter !== 0) {
        hash = hashed(hash, letter);
        if (++letters < MOST_LETTERS) continue;
      } else if (letters === 0) continue;
      this.#add(hash);
      hash = HASH_START;
      letters = 0;
    }
    if (letters > 0) this.#add(hash);
    return true;
  }

  #addWords(text: string): void {
    const plain = text.normalize("NFKC").toLowerCase();
    const hasUnspaced = UNSPACED.test(plain);
    for (const run of plain.match(WORD) ?? []) {
      if (hasUnspaced && UNSPACED.test(run)) for (const pair of pairsOf(run)) this.#addWord(pair);
      else this.#addWord(run);
      if (this.#count === MOST_WORDS) return;
    }
  }

  /** In small letters. */
  #addWord(word: string): void {
    let hash = HASH_START;
    for (let at = 0; at < word.length; at++) hash = hashed(hash, word.charCodeAt(at));
    this.#add(hash);
  }

  #add(signed: number): void {
    const places = this.#places;
    const hash = signed >>> 0;
    let place = (hash ^ (hash >>> 16)) & (PLACES - 1);
    for (let known = places[place] as number; known !== 0; known = places[place] as number) {
      if (this.#hashes[known - 1] === hash) return;
      place = (place + 1) & (PLACES - 1);
    }
    if (this.#count === MOST_WORDS) return;
    this.#hashes[this.#count] = hash;
    places[place] = ++this.#count;
  }
}

function hashed(hash: number, letter: number): number {
  return Math.imul(hash ^ letter, HASH_FACTOR);
}

/** By its code, each letter, digit and underscore of ASCII as a small letter; 0: it is none. */
function asciiLetters(): Uint8Array {
  const letters = new Uint8Array(ASCII_CODES);
  for (let code = 0; code < ASCII_CODES; code++) {
    const sign = String.fromCharCode(code);
    if (/\w/.test(sign)) letters[code] = sign.toLowerCase().charCodeAt(0);
  }
  return letters;
}

function pairsOf(run: string): string[] {
  const signs = [...run];
  return signs.length < 2 ? signs : signs.slice(1).map((sign, index) => `${signs[index]}${sign}`);
}

/** Pictures and sound: whoever writes so much without a space writes no text. */
export function isEncoded(text: string): boolean {
  return text.length >= LEAST_BASE64 && BASE64.test(text);
}

/** Every text of a JSON value. */
export function textsIn(value: unknown, found: string[] = []): string[] {
  if (typeof value === "string") found.push(value);
  else if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) textsIn(inner, found);
  return found;
}
