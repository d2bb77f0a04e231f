// A cached answer as an object of a bucket: a line of JSON that says what it is, and the answer's bytes behind it. What is
// not exactly that is no answer: objects may be cut off, belong to another program or be garbage.

import { parseObject } from "../lib/json.ts";
import type { AnswerForm, CachedAnswer } from "./cache.ts";

export interface StoredAnswer {
  /** The SHA-256 of the whole question. */
  questionDigest: string;
  /** The form of the key; it tells streams with usage from others. */
  keyForm: AnswerForm;
  answer: CachedAnswer;
  /** Unix milliseconds. */
  expiresAtMs: number;
}

const VERSION = 1;
const LINE_FEED = 10;
const BEGINNING = `{"signalbox_cached_answer":${VERSION},`;

/** Of the line; names of models and types of contents have room in it. */
export const MAX_HEAD_BYTES = 8 * 1024;

const FORMS: readonly unknown[] = ["plain", "stream", "stream+usage"];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeStored({ questionDigest, keyForm, answer, expiresAtMs }: StoredAnswer): Uint8Array | undefined {
  const { model, contentType, body } = answer;
  const head = {
    ...{ signalbox_cached_answer: VERSION, question: questionDigest, form: keyForm, model, content_type: contentType },
    ...{ expires_at: expiresAtMs, bytes: body.length, body: digestOf(body) },
  };
  const line = encoder.encode(`${JSON.stringify(head)}\n`);
  if (line.length > MAX_HEAD_BYTES) return undefined;
  const object = new Uint8Array(line.length + body.length);
  object.set(line);
  object.set(body, line.length);
  return object;
}

/** True if an object may hold an answer, judged by its first bytes. */
export function beginsAsStored(bytes: Uint8Array): boolean {
  const length = Math.min(bytes.length, BEGINNING.length);
  for (let at = 0; at < length; at++) if (bytes[at] !== BEGINNING.charCodeAt(at)) return false;
  return true;
}

export function decodeStored(object: Uint8Array): StoredAnswer | undefined {
  const end = object.subarray(0, MAX_HEAD_BYTES).indexOf(LINE_FEED);
  const head = end < 0 ? undefined : parseObject(decoder.decode(object.subarray(0, end)));
  if (head?.signalbox_cached_answer !== VERSION) return undefined;
  const { question, form, model, content_type, expires_at, bytes, body: digest } = head;
  const body = object.slice(end + 1);
  const isWhole = bytes === body.length && digest === digestOf(body);
  if (!isWhole || !FORMS.includes(form) || typeof expires_at !== "number") return undefined;
  if (typeof question !== "string" || typeof model !== "string" || typeof content_type !== "string") return undefined;
  return {
    questionDigest: question,
    keyForm: form as AnswerForm,
    answer: { form: form === "plain" ? "plain" : "stream", model, contentType: content_type, body },
    expiresAtMs: expires_at,
  };
}

/** In hexadecimal digits, so that it can be the name of an object. */
export function digestOf(content: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}
