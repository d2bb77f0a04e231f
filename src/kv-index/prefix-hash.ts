// The hashes of a prompt's prefixes: its UTF-8 bytes in blocks of 512, each hashed with the hash before it as seed, so that
// a hash stands for everything up to the end of its block. Only whole blocks count.

export const BLOCK_BYTES = 512;

const BUFFERED_BLOCKS = 128;
const LINE_FEED = 10;
/** Shorter texts are written faster by hand than by a call of the runtime. */
const SHORT_TEXT = 24;

/** Up to here a copy costs less than a view of the place where the text belongs. */
const STAGED_TEXT = 4_096;
/** Bytes of UTF-8 for each unit of UTF-16. */
const MAX_BYTES_PER_UNIT = 3;

const encoder = new TextEncoder();

export class PrefixChain {
  /** Two words per block, the lower one first. */
  readonly words: Uint32Array;

  constructor(words: Uint32Array) {
    this.words = words;
  }

  get blocks(): number {
    return this.words.length >> 1;
  }

  /** As 16 hex digits: the hash of the first block, and that of all of them. */
  get first(): string {
    return hexOf(this.words[1] as number, this.words[0] as number);
  }

  get deepest(): string {
    const { length } = this.words;
    return hexOf(this.words[length - 1] as number, this.words[length - 2] as number);
  }
}

/**
 * Takes a prompt text by text and hashes what it has of it, without ever holding the whole. Used for one prompt after
 * another: begin(), any number of texts, end().
 */
export class PrefixHasher {
  readonly #memory = new Uint8Array(BUFFERED_BLOCKS * BLOCK_BYTES + STAGED_TEXT * MAX_BYTES_PER_UNIT);
  readonly #buffer = this.#memory.subarray(0, BUFFERED_BLOCKS * BLOCK_BYTES);
  /** Behind it; short texts are written here first. */
  readonly #stage = this.#memory.subarray(BUFFERED_BLOCKS * BLOCK_BYTES);
  /** Made once: a view costs about as much as the hash of a block. */
  readonly #blocks: readonly Uint8Array[];
  #filled = 0;
  #hashes = new BigUint64Array(BUFFERED_BLOCKS);
  #count = 0;
  #last = 0n;

  constructor() {
    this.#blocks = Array.from({ length: BUFFERED_BLOCKS }, (_, index) =>
      this.#buffer.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES),
    );
  }

  begin(): void {
    this.#filled = 0;
    this.#count = 0;
    this.#last = 0n;
  }

  text(text: string): void {
    if (text.length <= SHORT_TEXT && this.#writeShort(text)) return;
    if (text.length <= STAGED_TEXT) {
      const { written } = encoder.encodeInto(text, this.#stage);
      if (this.#filled + written > this.#buffer.length) this.#hashBlocks();
      this.#memory.copyWithin(this.#filled, this.#buffer.length, this.#buffer.length + written);
      this.#filled += written;
    } else this.#writeLong(text);
  }

  lineFeed(): void {
    if (this.#filled === this.#buffer.length) this.#hashBlocks();
    this.#buffer[this.#filled++] = LINE_FEED;
  }

  /** Undefined for a prompt that is shorter than a block. */
  end(): PrefixChain | undefined {
    this.#hashBlocks();
    if (this.#count === 0) return undefined;
    return new PrefixChain(new Uint32Array(this.#hashes.buffer.slice(0, this.#count * 8)));
  }

  #writeLong(text: string): void {
    let rest = text;
    while (rest.length > 0) {
      const { read, written } = encoder.encodeInto(rest, this.#buffer.subarray(this.#filled));
      this.#filled += written;
      if (read === rest.length) return;
      this.#hashBlocks();
      rest = rest.slice(read);
    }
  }

  /** False, and nothing written, where the text is not plain ASCII. */
  #writeShort(text: string): boolean {
    if (this.#filled + text.length > this.#buffer.length) this.#hashBlocks();
    const start = this.#filled;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) return false;
      this.#buffer[start + index] = code;
    }
    this.#filled = start + text.length;
    return true;
  }

  /** Hashes the whole blocks of the buffer, and keeps what is left over. */
  #hashBlocks(): void {
    const whole = Math.floor(this.#filled / BLOCK_BYTES);
    if (this.#count + whole > this.#hashes.length) this.#grow(this.#count + whole);
    const hashes = this.#hashes;
    let last = this.#last;
    let count = this.#count;
    for (let index = 0; index < whole; index++) {
      last = Bun.hash.xxHash64(this.#blocks[index] as Uint8Array, last);
      hashes[count++] = last;
    }
    this.#last = last;
    this.#count = count;
    const done = whole * BLOCK_BYTES;
    this.#buffer.copyWithin(0, done, this.#filled);
    this.#filled -= done;
  }

  #grow(needed: number): void {
    const larger = new BigUint64Array(Math.max(needed, this.#hashes.length * 2));
    larger.set(this.#hashes.subarray(0, this.#count));
    this.#hashes = larger;
  }
}

function hexOf(high: number, low: number): string {
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
}
