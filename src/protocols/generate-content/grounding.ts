// What an answer names as its sources -> groundingMetadata, where clients look for them. Places count in bytes of UTF-8.

import type { Citation, SearchResultPart } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { parseObject } from "../../lib/json.ts";
import { nonEmptyText } from "../reading.ts";

/** Sources of one answer; those behind are left out. */
const MAX_SOURCES = 1_000;

/** One per answer. */
export class Grounding {
  readonly #chunks: JsonObject[] = [];
  readonly #places = new Map<string, number>();
  readonly #supports: JsonObject[] = [];
  readonly #queries: string[] = [];

  /** @param input - JSON text of a search's arguments */
  query(input: string): void {
    const query = nonEmptyText(parseObject(input)?.query);
    if (query !== undefined && this.#queries.length < MAX_SOURCES) this.#queries.push(query);
  }

  found({ results }: SearchResultPart): void {
    for (const { url, title } of results) this.#placeOf(url, title);
  }

  /**
   * @param text - of the part that the client gets
   * @param base - where in it the text begins that the citation speaks of
   */
  cite({ url, title, startIndex, endIndex }: Citation, text: string, base: number, partIndex = 0): void {
    if (url === undefined) return;
    const place = this.#placeOf(url, title);
    if (place === undefined || this.#supports.length >= MAX_SOURCES) return;
    const start = base + (startIndex ?? 0);
    const end = endIndex === undefined ? text.length : base + endIndex;
    const words = text.slice(start, end);
    if (words === "") return;
    const startBytes = Buffer.byteLength(text.slice(0, start), "utf8");
    const segment = {
      ...(partIndex > 0 && { partIndex }),
      startIndex: startBytes,
      endIndex: startBytes + Buffer.byteLength(words, "utf8"),
      text: words,
    };
    this.#supports.push({ segment, groundingChunkIndices: [place] });
  }

  /** Undefined where nothing was searched or cited. */
  get metadata(): JsonObject | undefined {
    if (this.#chunks.length === 0 && this.#queries.length === 0) return undefined;
    return {
      ...(this.#queries.length > 0 && { webSearchQueries: this.#queries }),
      groundingChunks: this.#chunks,
      ...(this.#supports.length > 0 && { groundingSupports: this.#supports }),
    };
  }

  #placeOf(uri: string, title: string | undefined): number | undefined {
    const known = this.#places.get(uri);
    if (known !== undefined) return known;
    if (this.#chunks.length >= MAX_SOURCES) return undefined;
    this.#places.set(uri, this.#chunks.length);
    return this.#chunks.push({ web: { uri, title: title ?? uri } }) - 1;
  }
}
