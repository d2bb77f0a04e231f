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
  const hash = new Bun.CryptoHasher("sha256");
  const context = [operation, protocol, owner, ...KEYED_HEADERS.map((name) => headers.get(name))];
  hash.update(`${JSON.stringify(context)}\n`);
  const members = new CanonicalJson(text).requestMembers();
  if (members === undefined) {
    hash.update(bytes);
    return { own: `${hash.digest("hex")}:as-is`, other: undefined };
  }
  let canonical = "";
  for (const name of [...members.keys()].sort()) {
    if (!WITHOUT_EFFECT.has(name) && !FORM_FIELDS.has(name))
      canonical += `${JSON.stringify(name)}:${members.get(name)}\n`;
  }
  hash.update(canonical);
  // Bytes that are no UTF-8 have all become the same character, but the backend gets them as they are.
  if (text.includes(REPLACEMENT_CHARACTER)) hash.update(bytes);
  const digest = hash.digest("hex");
  const plain = `${digest}:plain`;
  const withUsage = `${digest}:stream+usage`;
  if (body.stream !== true) return { own: plain, other: withUsage };
  switch (usageOption(body.stream_options)) {
    case true:
      return { own: withUsage, other: plain };
    case false:
      return { own: `${digest}:stream`, other: plain };
    case undefined: {
      const options = new Bun.CryptoHasher("sha256").update(members.get("stream_options") ?? "").digest("hex");
      return { own: `${digest}:stream+${options}`, other: undefined };
    }
  }
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
 */
class CanonicalJson {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The canonical texts of the request's own members, by name; undefined when they nest too deeply. */
  requestMembers(): Map<string, string> | undefined {
    const members = new Map<string, string>();
    this.#eachMember((name, nameText) => {
      const value = FLOAT_FIELDS.has(name) ? plainNumber(this.#value(false)) : this.#value(ORDER_FREE.has(name));
      const previous = members.get(name);
      members.set(name, previous === undefined ? value : `${previous},${nameText}:${value}`);
    });
    return this.#depth > MAX_DEPTH ? undefined : members;
  }

  #value(orderFree: boolean): string {
    this.#skipBlanks();
    const start = this.#text[this.#at];
    switch (start) {
      case "{":
      case "[": {
        this.#depth++;
        if (this.#depth > MAX_DEPTH) {
          this.#at = this.#text.length; // ends every loop that is open; the depth is left as it is
          return "";
        }
        const text = start === "{" ? this.#object(orderFree) : this.#array(orderFree);
        if (this.#depth <= MAX_DEPTH) this.#depth--;
        return text;
      }
      case '"':
        return this.#string();
      default: {
        const start = this.#at;
        while (this.#at < this.#text.length && !isDelimiter(this.#text.charCodeAt(this.#at))) this.#at++;
        return this.#text.slice(start, this.#at);
      }
    }
  }

  #object(orderFree: boolean): string {
    const members: { name: string; text: string }[] = [];
    this.#eachMember((name, nameText) => {
      members.push({ name, text: `${nameText}:${this.#value(orderFree)}` });
    });
    // The sort is stable, so that of two members with one name the first stays the first.
    if (orderFree) members.sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
    return `{${members.map(({ text }) => text).join(",")}}`;
  }

  #array(orderFree: boolean): string {
    const values: string[] = [];
    this.#at++;
    for (;;) {
      this.#skipBlanks();
      const next = this.#text[this.#at];
      if (next === undefined || next === "," || next === "]") {
        this.#at++;
        if (next !== ",") return `[${values.join(",")}]`;
      } else {
        values.push(this.#value(orderFree));
      }
    }
  }

  /** Calls back at the value of each member; the callback reads it. */
  #eachMember(readValue: (name: string, nameText: string) => void): void {
    this.#skipBlanks();
    this.#at++; // {
    for (;;) {
      this.#skipBlanks();
      const next = this.#text[this.#at];
      if (next === '"') {
        const nameText = this.#string();
        this.#skipBlanks();
        this.#at++; // :
        readValue(nameText.includes("\\") ? (JSON.parse(nameText) as string) : nameText.slice(1, -1), nameText);
      } else {
        this.#at++;
        if (next !== ",") return;
      }
    }
  }

  /** The string with its quotes; one spelling for each, whichever characters were escaped. */
  #string(): string {
    const start = this.#at;
    let end = this.#text.indexOf('"', start + 1);
    while (this.#isEscaped(end)) end = this.#text.indexOf('"', end + 1);
    this.#at = end + 1;
    const text = this.#text.slice(start, this.#at);
    // Every character has one short spelling; only these two escapes are further ones.
    return text.includes("\\u") || text.includes("\\/") ? JSON.stringify(JSON.parse(text)) : text;
  }

  #isEscaped(quote: number): boolean {
    let backslashes = 0;
    while (this.#text[quote - 1 - backslashes] === "\\") backslashes++;
    return backslashes % 2 === 1;
  }

  #skipBlanks(): void {
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at++;
  }
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
