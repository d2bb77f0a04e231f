// The canonical form of a prompt, which is hashed: the model's name and the tools, each on a line, then every message as a
// line with its role, its parts joined by line feeds, and a line feed. Of media stands the xxHash64 of their bytes or of
// their address.

import { splitDataUrl } from "../media/data-url.ts";
import type { PromptReader } from "../protocols/prompt-reader.ts";
import { type PrefixChain, PrefixHasher } from "./prefix-hash.ts";

/** Used for one prompt after another: begin(), what a format's reading tells, end(). */
export class CanonicalPrompt implements PromptReader {
  readonly #hasher = new PrefixHasher();
  #isInMessage = false;
  #hasParts = false;

  begin(model: string, tools: unknown): void {
    const hasher = this.#hasher;
    this.#isInMessage = false;
    hasher.begin();
    hasher.text(model);
    hasher.lineFeed();
    if (tools !== undefined && tools !== null) hasher.text(JSON.stringify(tools));
    hasher.lineFeed();
  }

  message(role: string): void {
    this.#endMessage();
    this.#hasher.text(role);
    this.#hasher.lineFeed();
    this.#isInMessage = true;
    this.#hasParts = false;
  }

  text(text: string): void {
    if (this.#hasParts) this.#hasher.lineFeed();
    this.#hasParts = true;
    this.#hasher.text(text);
  }

  media(address: string): void {
    const data = splitDataUrl(address);
    if (data?.isBase64) this.base64(data.payload);
    else this.text(hashOf(address));
  }

  base64(data: string): void {
    this.text(hashOf(Buffer.from(data, "base64")));
  }

  /** Undefined for a prompt that is shorter than a block. */
  end(): PrefixChain | undefined {
    this.#endMessage();
    return this.#hasher.end();
  }

  #endMessage(): void {
    if (this.#isInMessage) this.#hasher.lineFeed();
  }
}

function hashOf(content: string | Uint8Array): string {
  return Bun.hash.xxHash64(content).toString(16).padStart(16, "0");
}
