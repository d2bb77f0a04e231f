// A map that forgets: what was not used for longest goes first when it grows beyond its limits, and nothing outlives its
// time. Every memory of the gateway that is keyed by what clients or backends send is one of these.

export interface BoundedMapOptions {
  maxEntries: number;
  /** Sum of the sizes given to set(). */
  maxBytes: number;
  /** An entry is forgotten this long after it was set. */
  ttlMs: number;
  now(): number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  setMs: number;
}

export class BoundedMap<Value> {
  readonly #options: BoundedMapOptions;
  /** A Map keeps the order of insertion: entries are put back at the end when they are used. */
  readonly #entries = new Map<string, Entry<Value>>();
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
    this.#entries.delete(key);
    if (this.#options.now() - entry.setMs > this.#options.ttlMs) {
      this.#bytes -= entry.bytes;
      return undefined;
    }
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** A value that alone is larger than the limit is not kept. `bytes` is its size; the key's length is added here. */
  set(key: string, value: Value, bytes: number): void {
    this.delete(key);
    const size = bytes + key.length;
    if (size > this.#options.maxBytes) return;
    this.#entries.set(key, { value, bytes: size, setMs: this.#options.now() });
    this.#bytes += size;
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= this.#options.maxEntries && this.#bytes <= this.#options.maxBytes) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#bytes -= entry.bytes;
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }
}
