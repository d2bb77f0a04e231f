// A map that forgets: what was not used for longest goes first when it grows beyond its limits, and nothing outlives its
// time. Every memory of the gateway that is keyed by what clients or backends send is one of these.

import { type Linked, RecencyList } from "./recency-list.ts";

interface BoundedMapOptions {
  maxEntries: number;
  /** The sum of the sizes given to set(). */
  maxBytes: number;
  /** An entry is forgotten this long after it was set. */
  ttlMs: number;
  now(): number;
}

interface Entry<Value> extends Linked<Entry<Value>> {
  key: string;
  value: Value;
  bytes: number;
  setMs: number;
}

export class BoundedMap<Value> {
  readonly #options: BoundedMapOptions;
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #uses = new RecencyList<Entry<Value>>();
  #bytes = 0;

  constructor(options: BoundedMapOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#options.now() - entry.setMs > this.#options.ttlMs) {
      this.#remove(entry);
      return undefined;
    }
    this.#uses.use(entry);
    return entry.value;
  }

  /** A value that alone is larger than the limit is not kept. `bytes` is its size; the key's length is added here. */
  set(key: string, value: Value, bytes: number): void {
    this.delete(key);
    const size = bytes + key.length;
    if (size > this.#options.maxBytes) return;
    const setMs = this.#options.now();
    const entry: Entry<Value> = { key, value, bytes: size, setMs, older: undefined, newer: undefined };
    this.#entries.set(key, entry);
    this.#uses.add(entry);
    this.#bytes += size;
    for (const oldest of this.#uses) {
      if (this.#entries.size <= this.#options.maxEntries && this.#bytes <= this.#options.maxBytes) break;
      this.#remove(oldest);
    }
  }

  /** Lets an entry live as long as one that is set now; false where there is none. */
  renew(key: string): boolean {
    const isKnown = this.get(key) !== undefined;
    const entry = isKnown ? this.#entries.get(key) : undefined;
    if (entry !== undefined) entry.setMs = this.#options.now();
    return isKnown;
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#remove(entry);
  }

  deleteWhere(isGone: (value: Value) => boolean): void {
    for (const entry of [...this.#entries.values()]) if (isGone(entry.value)) this.#remove(entry);
  }

  #remove(entry: Entry<Value>): void {
    this.#bytes -= entry.bytes;
    this.#entries.delete(entry.key);
    this.#uses.remove(entry);
  }
}
