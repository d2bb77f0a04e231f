// The order in which things were used, for whatever has to forget what was not used for longest.

/** Where a node stands; written by the list alone. */
export interface Linked<Node> {
  older: Node | undefined;
  newer: Node | undefined;
}

/**
 * The nodes carry the order themselves. A Map or Set whose entries are taken out and put back with every use costs far
 * more, in its own upkeep and in garbage collection.
 */
export class RecencyList<Node extends Partial<Linked<Node>>> {
  #oldest: Node | undefined;
  #newest: Node | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldest(): Node | undefined {
    return this.#oldest;
  }

  get newest(): Node | undefined {
    return this.#newest;
  }

  /** True if a node that is in no other list is in this one. */
  has(node: Node): boolean {
    return node.older !== undefined || node.newer !== undefined || node === this.#oldest;
  }

  /** A node that is in no list becomes the one that was used last. */
  add(node: Node): void {
    node.older = this.#newest;
    node.newer = undefined;
    if (this.#newest === undefined) this.#oldest = node;
    else this.#newest.newer = node;
    this.#newest = node;
    this.#size++;
  }

  /** A node of this list becomes the one that was used last. */
  use(node: Node): void {
    if (node === this.#newest) return;
    this.remove(node);
    this.add(node);
  }

  /** The node must be in this list. */
  remove(node: Node): void {
    const { older, newer } = node;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    node.older = undefined;
    node.newer = undefined;
    this.#size--;
  }

  /** From the oldest to the newest; the node at hand may be removed. */
  *[Symbol.iterator](): Generator<Node, undefined> {
    let node = this.#oldest;
    while (node !== undefined) {
      const { newer } = node;
      yield node;
      node = newer;
    }
  }
}
