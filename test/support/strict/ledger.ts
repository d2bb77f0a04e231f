// The proofs that a backend has issued: it accepts its own, unaltered and with the text they were made for, and no others.

export class Ledger {
  readonly #proofs = new Map<string, string>();
  readonly #thoughtOf = new Set<string>();

  /** A new proof for a text; base64 with a tail of punctuation, as real ones have. */
  issue(label: string, text: string): string {
    const proof = Buffer.from(`${label} ${this.#proofs.size + 1} +/? of ${Bun.hash(text)}`).toString("base64");
    this.#proofs.set(proof, text);
    return proof;
  }

  holds(proof: string, text: string): boolean {
    return this.#proofs.get(proof) === text;
  }

  /** Whether this backend issued it, for whatever text. */
  knows(proof: string): boolean {
    return this.#proofs.has(proof);
  }

  /** Notes that a call came out of thoughts, which have to come back with it. */
  noteThought(callId: string): void {
    this.#thoughtOf.add(callId);
  }

  wasThoughtOf(callId: string): boolean {
    return this.#thoughtOf.has(callId);
  }
}
