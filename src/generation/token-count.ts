// Estimated tokens where no count exists yet: of a request before it is sent, and of a stream that broke off.

import type { JsonObject } from "../lib/json.ts";
import {
  bytesOfBase64,
  DOCUMENT_TOKENS,
  FEWEST_BYTES_PER_TOKEN,
  IMAGE_TOKENS,
  SOUND_TOKENS,
  USUAL_BYTES_PER_TOKEN,
} from "./token-facts.ts";

const LONGEST_NAME = 4_096;
/** Characters of base64 in which the kind of a file shows. */
const HEAD_LENGTH = 32;
/** Texts of this length that look like base64 are data. */
const SHORTEST_DATA = 1_024;
const SOUND = "input_audio";
/** Where data stands. A prompt that only looks like it is text: it could be as long as its sender likes. */
const DATA_MEMBERS: ReadonlySet<string> = new Set([
  "url",
  "image_url",
  "data",
  "file_data",
  "image",
  "b64_json",
  SOUND,
]);
const MAX_DEPTH = 64;

/** About the most tokens that a model may count in a request; more than it will for most of them. */
export function mostTokensOfBody(body: JsonObject, isPicture: IsPicture): number {
  return tokensOf(body, { isPicture, documentBytes: DOCUMENT_TOKENS.fewestBytes }, 0);
}

/** The same with documents as they usually are: of a request without a count. */
export function usualTokensOfBody(body: JsonObject, isPicture: IsPicture): number {
  return tokensOf(body, { isPicture, documentBytes: DOCUMENT_TOKENS.usualBytes }, 0);
}

/** Whether the first bytes of what is in base64 prove that it is a picture. */
type IsPicture = (base64: string) => boolean;

interface Counting {
  isPicture: IsPicture;
  /** Bytes of a document for each token. */
  documentBytes: number;
}

/** @param name - of the member that has the value; its items have it too */
function tokensOf(value: unknown, counting: Counting, depth: number, name = ""): number {
  if (typeof value === "string") return tokensOfText(value, counting, name);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return 1;
  let tokens = 1;
  if (Array.isArray(value)) for (const item of value) tokens += tokensOf(item, counting, depth + 1, name);
  else {
    for (const member in value) {
      // Its members are the sound, and short words.
      const called = name === SOUND ? name : member;
      tokens += 1 + tokensOf((value as JsonObject)[member], counting, depth + 1, called);
    }
  }
  return tokens;
}

function tokensOfText(text: string, counting: Counting, name: string): number {
  if (text.length >= SHORTEST_DATA && DATA_MEMBERS.has(name) && isData(text)) return tokensOfData(text, counting, name);
  return Math.ceil(Buffer.byteLength(text) / FEWEST_BYTES_PER_TOKEN);
}

/** By what it is: a picture of any size, a sound by its length; else a document. */
function tokensOfData(text: string, counting: Counting, name: string): number {
  const start = text.startsWith("data:") ? text.indexOf(",") + 1 : 0;
  if (name !== SOUND && counting.isPicture(text.slice(start, start + HEAD_LENGTH))) return IMAGE_TOKENS.most;
  const bytesPerToken = name === SOUND ? SOUND_TOKENS.fewestBytes : counting.documentBytes;
  return Math.max(DOCUMENT_TOKENS.least, Math.ceil(bytesOfBase64(text.length - start) / bytesPerToken));
}

function isData(text: string): boolean {
  return text.startsWith("data:") || /^[A-Za-z0-9+/_-]+={0,2}$/.test(text.slice(0, LONGEST_NAME));
}

const LINE_FEED = 10;
const COLON = 58;

/** Counts a stream of events as it passes: an event is a token at least, and what is longer than the first may be several. */
export class TextCount {
  #bytes = 0;
  #events = 0;
  /** Bytes around the text of an event. */
  #frameBytes = 0;

  /** Whole events. Comments are none: a short one at the begin would make the frame of each event look like text. */
  add(events: Uint8Array): void {
    let [count, bytes, start] = [0, 0, 0];
    // Two line ends close an event; a single event, the usual case, ends with the piece.
    for (
      let at = events.indexOf(LINE_FEED);
      at >= 0 && at < events.length - 1;
      at = events.indexOf(LINE_FEED, at + 1)
    ) {
      if (events[at + 1] !== LINE_FEED) continue;
      if (events[start] !== COLON) {
        count++;
        bytes += at + 2 - start;
      }
      start = at + 2;
    }
    if (start < events.length && events[start] !== COLON) {
      count = Math.max(1, count);
      bytes += events.length - start;
    }
    if (count === 0) return;
    if (this.#events === 0) this.#frameBytes = bytes / count;
    this.#events += count;
    this.#bytes += bytes;
  }

  get tokens(): number {
    const textBytes = Math.max(0, this.#bytes - this.#events * this.#frameBytes);
    return Math.max(this.#events, Math.ceil(textBytes / USUAL_BYTES_PER_TOKEN));
  }
}
