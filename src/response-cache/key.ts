// The key of a request: equal only for requests that a backend would answer alike, for the same owner.

import type { Operation } from "../backends/kinds.ts";
import type { JsonObject } from "../protocols/fields.ts";

/** Headers of the client that reach the backend and may change its answer. */
export const KEYED_HEADERS = ["openai-organization", "openai-project", "openai-beta"] as const;

/** Fields of the body that do not change the output. Any other field, known or not, is part of the key. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "user",
  "metadata",
  "safety_identifier",
  "store",
  "prompt_cache_key",
  "prompt_cache_retention",
]);

/** How the answer is sent; parts of the form, not of what is asked. */
const FORM_FIELDS: ReadonlySet<string> = new Set(["stream", "stream_options"]);

/**
 * Fields below which the order of keys means nothing. Everywhere else it may reach the model: a structured answer
 * follows the order of its schema, and chat templates print tools as they are written. The order of the request's own
 * keys never matters.
 */
const ORDER_FREE: ReadonlySet<string> = new Set(["messages", "logit_bias", "tool_choice", "reasoning", "thinking"]);

/** Written with or without a fraction, as clients' languages have it. */
const FLOAT_FIELDS: ReadonlySet<string> = new Set(["temperature", "top_p", "frequency_penalty", "presence_penalty"]);

/** Deeper bodies are not walked: their keys are made of the bytes as they are. */
const MAX_DEPTH = 200;

const QUOTE = 34;
const COMMA = 44;
const OPENING_BRACKET = 91;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;
const OPENING_BRACE = 123;

const REPLACEMENT_CHARACTER = "\uFFFD";
const decoder = new TextDecoder();

export interface KeyedRequest {
  operation: Operation;
  /** The wire format that the client speaks: answers are kept in it. */
  protocol: string;
  /** Whose answers these are: see ownerOf. */
  owner: string;
  /** The body as it came, known to be a JSON object. */
  bytes: Uint8Array;
  /** The same, parsed. */
  body: JsonObject;
  headers: Headers;
}

export interface RequestKeys {
  /** Of the answer in the form that is asked for. Also the key of de-duplication. */
  own: string;
  /** Of the same answer in the other form, if it can be made of it; see replay.ts. */
  other: string | undefined;
}

/** Callers of one organisation share answers; without one, each key has its own; all without a key are one caller. */
export function ownerOf(caller: { keyId: string; organizationId: string | undefined } | undefined): string {
  if (caller === undefined) return "anonymous";
  return caller.organizationId === undefined ? `key:${caller.keyId}` : `organization:${caller.organizationId}`;
}

/**
 * Both forms of an answer share a digest and differ in what follows it:
 * `:plain`, `:stream`, `:stream+usage`, or `:stream+<hash of other stream options>`, because options show in the bytes.
 */
export function requestKeys({ operation, protocol, owner, bytes, body, headers }: KeyedRequest): RequestKeys {
  const text = decoder.decode(bytes);
  const context = JSON.stringify([operation, protocol, owner, ...KEYED_HEADERS.map((name) => headers.get(name))]);
  const members = new CanonicalJson(text).requestMembers();
  if (members === undefined) return { own: `${digestOf(`${context}\n`, bytes)}:as-is`, other: undefined };
  let canonical = `${context}\n`;
  for (const name of [...members.keys()].sort()) {
    if (!WITHOUT_EFFECT.has(name) && !FORM_FIELDS.has(name))
      canonical += `${JSON.stringify(name)}:${members.get(name)}\n`;
  }
  // Bytes that are no UTF-8 have all become the same character, but the backend gets them as they are.
  const digest = digestOf(canonical, text.includes(REPLACEMENT_CHARACTER) ? bytes : undefined);
  const plain = `${digest}:plain`;
  const withUsage = `${digest}:stream+usage`;
  if (body.stream !== true) return { own: plain, other: withUsage };
  switch (usageOption(body.stream_options)) {
    case true:
      return { own: withUsage, other: plain };
    case false:
      return { own: `${digest}:stream`, other: plain };
    case undefined: {
      const options = digestOf(members.get("stream_options") ?? "", undefined);
      return { own: `${digest}:stream+${options}`, other: undefined };
    }
  }
}

function digestOf(text: string, bytes: Uint8Array | undefined): string {
  // In one call, which is cheaper than an object that is told piece by piece.
  if (bytes === undefined) return Bun.SHA256.hash(text, "hex");
  return new Bun.SHA256().update(text).update(bytes).digest("hex");
}

/** Whether a usage chunk is asked for; undefined when other options shape the stream too. */
function usageOption(options: unknown): boolean | undefined {
  if (options === undefined || options === null) return false;
  const { include_usage, ...others } = options as JsonObject;
  if (Object.keys(others).length > 0) return undefined;
  if (include_usage === undefined || include_usage === null) return false;
  return typeof include_usage === "boolean" ? include_usage : undefined;
}

/**
 * Reads a JSON text that JSON.parse has accepted, without turning numbers into doubles: 9007199254740993 and
 * 9007199254740992 are different seeds. Names that occur twice are both kept, since parsers differ in which one counts.
 * Every request that may be kept or shared passes here: what needs no change is one slice of the text.
 */
class CanonicalJson {
  readonly #text: string;
  /** Whether any character may be spelled in two ways; told of the text as a whole, so that most strings need no look. */
  readonly #hasSpellings: boolean;
  #at = 0;
  #depth = 0;
  /** The first backslash that is not read yet; at the end of the text when there is none. */
  #backslash = -1;
  /** How often what was read had to be written differently. */
  #changes = 0;

  constructor(text: string) {
    this.#text = text;
    // Every character has one short spelling; only these two escapes are further ones.
    this.#hasSpellings = text.includes("\\u") || text.includes("\\/");
  }

  /** The canonical texts of the request's own members, by name; undefined when they nest too deeply. */
  requestMembers(): Map<string, string> | undefined {
    const members = new Map<string, string>();
    this.#skipBlanks();
    this.#at++; // {
    while (this.#isAtMember()) {
      const nameText = this.#memberName();
      const name = nameOf(nameText);
      const value = FLOAT_FIELDS.has(name) ? plainNumber(this.#value(false)) : this.#value(ORDER_FREE.has(name));
      const previous = members.get(name);
      members.set(name, previous === undefined ? value : `${previous},${nameText}:${value}`);
    }
    return this.#depth > MAX_DEPTH ? undefined : members;
  }

  #value(orderFree: boolean): string {
    this.#skipBlanks();
    const text = this.#text;
    const start = this.#at;
    const first = text.charCodeAt(start);
    if (first === QUOTE) return this.#string();
    if (first === OPENING_BRACE || first === OPENING_BRACKET) {
      this.#depth++;
      if (this.#depth > MAX_DEPTH) {
        this.#at = text.length; // ends every loop that is open; the depth is left as it is
        return "";
      }
      const value = first === OPENING_BRACE ? this.#object(orderFree) : this.#array(orderFree);
      if (this.#depth <= MAX_DEPTH) this.#depth--;
      return value;
    }
    while (this.#at < text.length && !isDelimiter(text.charCodeAt(this.#at))) this.#at++;
    return text.slice(start, this.#at);
  }

  #object(orderFree: boolean): string {
    const start = this.#at++;
    const changesBefore = this.#changes;
    const members: Member[] = [];
    let isSorted = true;
    let previousName = "";
    while (this.#isAtMember()) {
      const nameText = this.#memberName();
      const name = orderFree ? nameOf(nameText) : "";
      if (name < previousName) isSorted = false;
      previousName = name;
      members.push({ name, text: `${nameText}:${this.#value(orderFree)}` });
    }
    if (!isSorted) {
      this.#changes++;
      // The sort is stable, so that of two members with one name the first stays the first.
      members.sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
    }
    if (this.#changes === changesBefore) return this.#text.slice(start, this.#at);
    let joined = "";
    for (const { text } of members) joined += joined === "" ? text : `,${text}`;
    return `{${joined}}`;
  }

  #array(orderFree: boolean): string {
    const start = this.#at++;
    const changesBefore = this.#changes;
    let joined = "";
    for (;;) {
      this.#skipBlanks();
      const next = this.#text.charCodeAt(this.#at);
      if (next === COMMA) {
        joined += ",";
        this.#at++;
      } else if (next === CLOSING_BRACKET || !(this.#at < this.#text.length)) {
        this.#at++;
        return this.#changes === changesBefore ? this.#text.slice(start, this.#at) : `[${joined}]`;
      } else {
        joined += this.#value(orderFree);
      }
    }
  }

  /** Goes on to the next member's name; false at the end of the object, which is read then. */
  #isAtMember(): boolean {
    this.#skipBlanks();
    if (this.#text.charCodeAt(this.#at) === COMMA) {
      this.#at++;
      this.#skipBlanks();
    }
    if (this.#text.charCodeAt(this.#at) === QUOTE) return true;
    this.#at++; // }
    return false;
  }

  /** Reads a name with its quotes, and the colon. */
  #memberName(): string {
    const nameText = this.#string();
    this.#skipBlanks();
    this.#at++; // :
    return nameText;
  }

  /** The string with its quotes; one spelling for each, whichever characters were escaped. */
  #string(): string {
    const text = this.#text;
    const start = this.#at;
    let end = text.indexOf('"', start + 1);
    if (this.#backslash < start) this.#backslash = this.#nextBackslash(start);
    if (this.#backslash > end) {
      this.#at = end + 1;
      return text.slice(start, this.#at);
    }
    while (this.#isEscaped(end)) end = text.indexOf('"', end + 1);
    this.#at = end + 1;
    const string = text.slice(start, this.#at);
    if (!this.#hasSpellings || !(string.includes("\\u") || string.includes("\\/"))) return string;
    this.#changes++;
    return JSON.stringify(JSON.parse(string));
  }

  #nextBackslash(from: number): number {
    const found = this.#text.indexOf("\\", from);
    return found < 0 ? this.#text.length : found;
  }

  #isEscaped(quote: number): boolean {
    let before = quote - 1;
    while (this.#text.charCodeAt(before) === BACKSLASH) before--;
    return (quote - before) % 2 === 0;
  }

  #skipBlanks(): void {
    const start = this.#at;
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at++;
    if (this.#at > start) this.#changes++;
  }
}

interface Member {
  /** Read only where members are put into order. */
  name: string;
  text: string;
}

function nameOf(nameText: string): string {
  return nameText.includes("\\") ? (JSON.parse(nameText) as string) : nameText.slice(1, -1);
}

function plainNumber(text: string): string {
  const value = Number(text);
  return /^-?[\d.]{1,12}$/.test(text) && Number.isFinite(value) ? String(value) : text;
}

function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

function isDelimiter(code: number): boolean {
  return code === 44 || code === 93 || code === 125 || isBlank(code); // , ] }
}
