// Grounding and citation metadata -> citations of the text. The metadata come once, mostly at the end of a stream, and
// count in bytes of UTF-8; a citation counts in UTF-16 code units of its part.

import type { Citation } from "../../generation/content.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf, nonEmptyText, objectOf, objectsOf } from "../reading.ts";
import { optionalCount } from "./wire.ts";

interface CitedClaim {
  url: string | undefined;
  title: string | undefined;
  /** The words of the answer that the source supports. */
  text: string | undefined;
  startByte: number;
  /** Undefined: the claim is about the whole answer. */
  endByte: number | undefined;
}

/** What is known of sources and not yet said. */
export class CitationList {
  #pending: CitedClaim[] = [];
  /** Streams repeat what they have said. */
  readonly #seen = new Set<string>();
  #queries = 0;

  /** How many searches the model made. */
  get searches(): number {
    return this.#queries;
  }

  read(candidate: JsonObject): void {
    if (isObject(candidate.groundingMetadata)) this.#readGrounding(candidate.groundingMetadata);
    if (isObject(candidate.citationMetadata)) this.#readCitations(candidate.citationMetadata);
  }

  /** The citations for a part that ends. Of claims about other words only the last part takes what is left. */
  take(text: string, isLast: boolean): Citation[] {
    if (this.#pending.length === 0) return [];
    const taken: Citation[] = [];
    const rest: CitedClaim[] = [];
    for (const claim of this.#pending) {
      const range = locate(text, claim);
      if (range !== undefined || isLast) taken.push(citationOf(claim, range));
      else rest.push(claim);
    }
    this.#pending = rest;
    return taken;
  }

  #readGrounding({ groundingChunks, groundingSupports, webSearchQueries }: JsonObject): void {
    this.#queries = Math.max(this.#queries, arrayOf(webSearchQueries).length);
    const sources = arrayOf(groundingChunks).map(sourceOf);
    const supports = objectsOf(groundingSupports);
    for (const support of supports) {
      const segment = objectOf(support.segment);
      for (const index of arrayOf(support.groundingChunkIndices)) {
        const source = typeof index === "number" ? sources[index] : undefined;
        if (source !== undefined) {
          this.#add({
            ...source,
            text: nonEmptyText(segment.text),
            startByte: optionalCount(segment.startIndex) ?? 0,
            endByte: optionalCount(segment.endIndex),
          });
        }
      }
    }
    if (supports.length > 0) return;
    for (const source of sources) {
      if (source !== undefined) this.#add({ ...source, text: undefined, startByte: 0, endByte: undefined });
    }
  }

  #readCitations(metadata: JsonObject): void {
    for (const entry of objectsOf(metadata.citations ?? metadata.citationSources)) {
      const url = nonEmptyText(entry.uri);
      const title = nonEmptyText(entry.title);
      if (url === undefined && title === undefined) continue;
      const startByte = optionalCount(entry.startIndex) ?? 0;
      this.#add({ url, title, text: undefined, startByte, endByte: optionalCount(entry.endIndex) });
    }
  }

  #add(claim: CitedClaim): void {
    const key = JSON.stringify([claim.url, claim.title, claim.startByte, claim.endByte, claim.text]);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#pending.push(claim);
  }
}

const SOURCE_KINDS = ["web", "retrievedContext", "maps", "image"] as const;

function sourceOf(chunk: unknown): Pick<CitedClaim, "url" | "title"> | undefined {
  if (!isObject(chunk)) return undefined;
  for (const kind of SOURCE_KINDS) {
    const source = chunk[kind];
    if (!isObject(source)) continue;
    const url = nonEmptyText(source.uri) ?? nonEmptyText(source.sourceUri);
    const title = nonEmptyText(source.title);
    return url === undefined && title === undefined ? undefined : { url, title };
  }
  return undefined;
}

interface Range {
  start: number;
  end: number;
}

/** Where the words stand; undefined when they are not in the text, or when the claim is about no words. */
function locate(text: string, { text: words, startByte, endByte }: CitedClaim): Range | undefined {
  if (words === undefined && endByte === undefined) return undefined;
  const range = endByte === undefined ? undefined : rangeOfBytes(text, startByte, endByte);
  if (words === undefined || (range !== undefined && text.slice(range.start, range.end) === words)) return range;
  // Offsets count from another beginning, for instance that of the answer.
  const start = text.indexOf(words);
  return start < 0 ? undefined : { start, end: start + words.length };
}

function rangeOfBytes(text: string, startByte: number, endByte: number): Range | undefined {
  const bytes = Buffer.from(text, "utf8");
  if (endByte > bytes.length || startByte >= endByte) return undefined;
  if (bytes.length === text.length) return { start: startByte, end: endByte };
  const start = bytes.toString("utf8", 0, startByte).length;
  return { start, end: start + bytes.toString("utf8", startByte, endByte).length };
}

function citationOf({ url, title, text }: CitedClaim, range: Range | undefined): Citation {
  return compact({ url, title, citedText: text, startIndex: range?.start, endIndex: range?.end });
}
