// Tokens of what nobody has counted yet: of a request before it is sent, and of a stream that broke off.

import type { JsonObject } from "../lib/json.ts";

/** Most texts have more bytes per token; those of Chinese and Japanese have about these. */
const FEWEST_BYTES_PER_TOKEN = 3;
const USUAL_BYTES_PER_TOKEN = 4;
/** A picture, a sound or a document in base64, however large. */
const DATA_TOKENS = 3_000;
const LONGEST_NAME = 4_096;
/** Texts of this length that look like base64 are data. */
const SHORTEST_DATA = 1_024;
/** Where data stands. A prompt that only looks like it is text: it could be as long as its sender likes. */
const DATA_MEMBERS: ReadonlySet<string> = new Set(["url", "image_url", "data", "file_data", "image", "b64_json"]);
const MAX_DEPTH = 64;

/** About the most tokens that a model may count in a request; more than it will for most of them. */
export function mostTokensOfBody(body: JsonObject): number {
  return mostTokens(body, 0);
}

/** @param name - of the member that has the value; its items have it too */
function mostTokens(value: unknown, depth: number, name = ""): number {
  if (typeof value === "string") return mostTokensOfText(value, name);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return 1;
  let tokens = 1;
  if (Array.isArray(value)) for (const item of value) tokens += mostTokens(item, depth + 1, name);
  else for (const member in value) tokens += 1 + mostTokens((value as JsonObject)[member], depth + 1, member);
  return tokens;
}

function mostTokensOfText(text: string, name: string): number {
  if (text.length >= SHORTEST_DATA && DATA_MEMBERS.has(name) && isData(text)) return DATA_TOKENS;
  return Math.ceil(Buffer.byteLength(text) / FEWEST_BYTES_PER_TOKEN);
}

function isData(text: string): boolean {
  return text.startsWith("data:") || /^[A-Za-z0-9+/_-]+={0,2}$/.test(text.slice(0, LONGEST_NAME));
}

const LINE_FEED = 10;

/** Counts a stream of events as it passes: an event is a token at least, and what is longer than the first may be several. */
export class TextCount {
  #bytes = 0;
  #events = 0;
  /** Bytes around the text of an event. */
  #frameBytes = 0;

  /** Whole events. */
  add(events: Uint8Array): void {
    let count = 0;
    // Two line ends close an event; a single event, the usual case, ends with the piece.
    for (
      let at = events.indexOf(LINE_FEED);
      at >= 0 && at < events.length - 1;
      at = events.indexOf(LINE_FEED, at + 1)
    ) {
      if (events[at + 1] === LINE_FEED) count++;
    }
    count = Math.max(1, count);
    if (this.#events === 0) this.#frameBytes = events.length / count;
    this.#events += count;
    this.#bytes += events.length;
  }

  get tokens(): number {
    const textBytes = Math.max(0, this.#bytes - this.#events * this.#frameBytes);
    return Math.max(this.#events, Math.ceil(textBytes / USUAL_BYTES_PER_TOKEN));
  }
}
