// Keeps the newest entries of several sources. When the buffer is full, the source with the most entries loses its oldest one:
// a source that floods it cannot remove what others have in it.

interface EntrySource<Entry> {
  /** The oldest first; never empty. */
  entries: Entry[];
  /** Counts up with each entry of the buffer. */
  lastUsed: number;
}

export class FairBuffer<Entry> {
  readonly #maxEntries: number;
  readonly #maxSources: number;
  readonly #sources = new Map<string, EntrySource<Entry>>();
  #size = 0;
  #turn = 0;

  constructor(maxEntries: number, maxSources: number) {
    this.#maxEntries = maxEntries;
    this.#maxSources = maxSources;
  }

  get size(): number {
    return this.#size;
  }

  add(name: string, entry: Entry): void {
    let source = this.#sources.get(name);
    if (source === undefined) {
      if (this.#sources.size >= this.#maxSources) this.#forgetLongestUnused();
      source = { entries: [], lastUsed: 0 };
      this.#sources.set(name, source);
    }
    source.entries.push(entry);
    source.lastUsed = ++this.#turn;
    this.#size++;
    if (this.#size > this.#maxEntries) this.#forgetOldestOfLargest();
  }

  /** Those of one source after those of another, each from the oldest on. */
  *entries(): Generator<Entry> {
    for (const { entries } of this.#sources.values()) yield* entries;
  }

  #forgetOldestOfLargest(): void {
    let largest: [name: string, source: EntrySource<Entry>] | undefined;
    for (const each of this.#sources) {
      if (largest === undefined || each[1].entries.length > largest[1].entries.length) largest = each;
    }
    if (largest === undefined) return;
    const [name, { entries }] = largest;
    entries.shift();
    this.#size--;
    if (entries.length === 0) this.#sources.delete(name);
  }

  #forgetLongestUnused(): void {
    let unused: [name: string, source: EntrySource<Entry>] | undefined;
    for (const each of this.#sources) {
      if (unused === undefined || each[1].lastUsed < unused[1].lastUsed) unused = each;
    }
    if (unused === undefined) return;
    this.#sources.delete(unused[0]);
    this.#size -= unused[1].entries.length;
  }
}
