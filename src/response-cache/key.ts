// The key of a request: equal only for requests that a backend would answer alike, for the same owner.

import type { Operation } from "../backends/operations.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import type { RequestBody } from "../lib/request-body.ts";
import type { KeptAnswers } from "../protocols/kept-answers.ts";
import { WITHOUT_EFFECT } from "../protocols/kept-chunks.ts";
import type { AnswerForm, RequestKey } from "./cache.ts";

/** Headers of the client that reach the backend and may change its answer. */
export const KEYED_HEADERS = [
  "openai-organization",
  "openai-project",
  "openai-beta",
  "anthropic-version",
  "anthropic-beta",
] as const;

/** How the answer is sent; parts of the form, not of what is asked. */
const FORM_FIELDS: ReadonlySet<string> = new Set(["stream", "stream_options"]);

/** A double holds any number of 15 digits; a point may stand among them. */
const LONG_NUMBER_LENGTH = 16;

/** At least 1e100; what is too large for a double is read as infinite, and written as null. */
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;

/**
 * Writing what nests ten times as deep takes the runtime seconds, and fails. Opening brackets are counted instead of
 * walking the body: those in strings count too, which only means that a few more bodies are compared as written.
 */
const MAX_BRACKETS = 5000;

/** In JSON without blanks: an object with a name like "12". Such names are always put in the order of their numbers. */
const NUMERIC_NAME = /\{"\d/;

const DIGIT_ZERO = 48;
const DIGIT_NINE = 57;
const POINT = 46;
const OPENING_BRACKET = 91;
const OPENING_BRACE = 123;

/** How many characters of a text, at its end and before that, a sketch looks at. */
const SKETCHED_CHARACTERS = 8;

const decoder = new TextDecoder();

export interface KeyedRequest {
  operation: Operation;
  /** The format of the answer, where it is not the one of the operation. */
  client?: { name: string };
  /** The model's name as the client wrote it, which the answer may repeat. */
  askedModel: string;
  stream: boolean;
  body: RequestBody;
}

/** Rules of a format for its requests. */
export type Keying = Pick<KeptAnswers, "withoutEffect" | "countsWhenAsked">;

/** Of formats whose answers are shared while they are made, but never kept. */
const USUAL: Keying = { withoutEffect: WITHOUT_EFFECT, countsWhenAsked: true };

/**
 * Reads the body and the headers when the key is asked for what it needs of them.
 * @param promptsDigest - of the prompts that are put into requests: other prompts are other questions
 */
export function requestKey(
  request: KeyedRequest,
  owner: string,
  headers: Headers,
  promptsDigest: string,
  keying: Keying = USUAL,
): RequestKey {
  return new Key(request, owner, headers, promptsDigest, keying);
}

class Key implements RequestKey {
  readonly form: AnswerForm;
  readonly otherForm: AnswerForm | undefined;
  readonly #request: KeyedRequest;
  readonly #owner: string;
  readonly #headers: Headers;
  readonly #promptsDigest: string;
  readonly #keying: Keying;
  #question: string | undefined;

  constructor(request: KeyedRequest, owner: string, headers: Headers, promptsDigest: string, keying: Keying) {
    this.#request = request;
    this.#owner = owner;
    this.#headers = headers;
    this.#promptsDigest = promptsDigest;
    this.#keying = keying;
    if (request.stream) {
      const usage = usageOf(request.body.value.stream_options, keying);
      this.form = usage === true ? "stream+usage" : "stream";
      this.otherForm = usage === undefined ? undefined : "plain";
    } else {
      this.form = "plain";
      this.otherForm = "stream+usage";
    }
  }

  get question(): string {
    this.#question ??= questionOf(this.#request, this.#owner, this.#headers, this.#promptsDigest, this.#keying);
    return this.#question;
  }

  /** Of the owner, the number of messages (or whatever a format calls them) and the text of the last one. */
  sketch(seed: number): number {
    const { messages, input, prompt, contents } = this.#request.body.value;
    const asked = messages ?? input ?? prompt ?? contents;
    const sketch = Bun.hash.xxHash32(this.#owner, seed);
    if (typeof asked === "string") return sketchText(sketch, asked);
    if (!Array.isArray(asked)) return sketch;
    return sketchText(mix(sketch, asked.length), lastText(asked.at(-1)));
  }
}

/**
 * The question is JSON that the runtime writes of the parsed body: that is cheaper than walking the text, and makes
 * blanks and the spelling of characters equal. The members stay in the client's order, and of a name that occurs twice
 * the last value counts.
 */
function questionOf(
  request: KeyedRequest,
  owner: string,
  headers: Headers,
  promptsDigest: string,
  keying: Keying,
): string {
  const { operation, client, askedModel, stream, body } = request;
  const { value } = body;
  const { withoutEffect } = keying;
  const parts: unknown[] = [operation, client?.name ?? 0, owner, askedModel, promptsDigest];
  for (const name of KEYED_HEADERS) parts.push(headers.get(name) ?? 0);
  const context = parts.length;
  // Other options show in the bytes of the stream.
  parts.push(stream && usageOf(value.stream_options, keying) === undefined ? value.stream_options : 0);
  for (const name of Object.keys(value)) {
    if (!withoutEffect.has(name) && !FORM_FIELDS.has(name)) parts.push(name, value[name]);
  }
  return written(parts, context, body.bytes(), withoutEffect);
}

/** The first `context` parts are not of the body. */
function written(parts: unknown[], context: number, body: Uint8Array, withoutEffect: Keying["withoutEffect"]): string {
  if (hasManyBrackets(body)) return JSON.stringify(parts.slice(0, context)) + asWritten(body, withoutEffect);
  const question = JSON.stringify(parts);
  return losesMeaning(body, question) ? question + asWritten(body, withoutEffect) : question;
}

/** The body's own text, without the members that have no effect. */
function asWritten(body: Uint8Array, withoutEffect: Keying["withoutEffect"]): string {
  const cut: JsonObject = { stream: undefined };
  for (const name of withoutEffect) cut[name] = undefined;
  return decoder.decode(withMembers(body, cut));
}

/** True if bodies with different meanings to a backend may have become the same JSON. */
function losesMeaning(body: Uint8Array, json: string): boolean {
  if (hasLongNumber(body) || NUMERIC_NAME.test(json)) return true;
  return json.includes("null") && LARGE_EXPONENT.test(decoder.decode(body));
}

function hasManyBrackets(body: Uint8Array): boolean {
  if (body.length < MAX_BRACKETS) return false;
  let count = 0;
  for (const bracket of [OPENING_BRACKET, OPENING_BRACE]) {
    for (let at = body.indexOf(bracket); at >= 0; at = body.indexOf(bracket, at + 1)) {
      if (++count > MAX_BRACKETS) return true;
    }
  }
  return false;
}

/** So many digits in a row include one at a multiple of their number: most bytes need no look. */
function hasLongNumber(body: Uint8Array): boolean {
  for (let at = LONG_NUMBER_LENGTH - 1; at < body.length; at += LONG_NUMBER_LENGTH) {
    if (!isNumeric(body[at])) continue;
    let start = at;
    let end = at + 1;
    while (isNumeric(body[start - 1])) start--;
    while (isNumeric(body[end])) end++;
    if (end - start >= LONG_NUMBER_LENGTH) return true;
  }
  return false;
}

function isNumeric(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= DIGIT_ZERO && byte <= DIGIT_NINE) || byte === POINT);
}

/** True if the stream reports its token counts; undefined when its options shape it in another way, too. */
function usageOf(options: unknown, { countsWhenAsked }: Keying): boolean | undefined {
  if (countsWhenAsked) return usageOption(options);
  return isObject(options) && Object.keys(options).length > 0 ? undefined : true;
}

/** True if a usage chunk is requested; undefined when other options shape the stream too. */
function usageOption(options: unknown): boolean | undefined {
  if (options === undefined || options === null) return false;
  const { include_usage, ...others } = options as JsonObject;
  if (Object.keys(others).length > 0) return undefined;
  if (include_usage === undefined || include_usage === null) return false;
  return typeof include_usage === "boolean" ? include_usage : undefined;
}

/** The text of a message, or the last one of its parts. */
function lastText(message: unknown): string {
  const content = isObject(message) ? (message.content ?? message.parts) : message;
  if (typeof content === "string") return content;
  const text = Array.isArray(content) ? content.findLast((part) => typeof part?.text === "string")?.text : undefined;
  return text ?? "";
}

/** Its length, its last characters, and as many of all the others at equal distances. */
function sketchText(seed: number, text: string): number {
  let sketch = mix(seed, text.length);
  const tail = Math.max(0, text.length - SKETCHED_CHARACTERS);
  for (let at = tail; at < text.length; at++) sketch = mix(sketch, text.charCodeAt(at));
  const step = Math.ceil(tail / SKETCHED_CHARACTERS);
  for (let at = 0; at < tail; at += step) sketch = mix(sketch, text.charCodeAt(at));
  return sketch;
}

function mix(sketch: number, value: number): number {
  const product = Math.imul(sketch ^ value, 0x9e3779b1);
  return product ^ (product >>> 15);
}
