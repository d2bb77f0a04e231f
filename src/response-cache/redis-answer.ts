// An answer as a server keeps it for several gateways: under which name, and in which bytes. Whatever reads as one is one
// that a gateway has written for the very same question.

import { isObject, parseObject } from "../lib/json.ts";
import type { AnswerForm, CachedAnswer, RequestKey } from "./cache.ts";

/** Digests of one question for two uses: who knows one knows nothing of the other. */
const NAME_KEY = "signalbox response cache: name";
const PROOF_KEY = "signalbox response cache: proof";
const MODEL_KEY = "signalbox response cache: model";

const MODEL_LENGTH = 16;

/** Other bytes are another version's, and a miss. */
const MAGIC = new TextEncoder().encode("SBX1");
const CHECKSUM_BYTES = 8;
const PROOF_BYTES = 32;
const LENGTH_BYTES = 4;
const PROOF_AT = MAGIC.length + CHECKSUM_BYTES;
const LENGTH_AT = PROOF_AT + PROOF_BYTES;
const HEAD_AT = LENGTH_AT + LENGTH_BYTES;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The beginning of the names of all answers of a model. */
export function namesOfModel(model: string): string {
  return `${digest(MODEL_KEY, model).toHex().slice(0, MODEL_LENGTH)}:`;
}

/** The names of the forms in which a question may be answered. */
export function nameOf({ question }: Pick<RequestKey, "question">, model: string) {
  const end = digest(NAME_KEY, question).toHex();
  const start = namesOfModel(model);
  return (form: AnswerForm) => `${start}${form}:${end}`;
}

/** True for a name that nameOf() makes. */
export function isAnswerName(name: string): boolean {
  return /^[0-9a-f]{16}:(?:plain|stream|stream\+usage):[0-9a-f]{64}$/.test(name);
}

export function encodeAnswer({ question }: Pick<RequestKey, "question">, answer: CachedAnswer): Uint8Array {
  const { form, model, contentType, body } = answer;
  const head = encoder.encode(JSON.stringify({ form, model, contentType }));
  const bytes = new Uint8Array(HEAD_AT + head.length + body.length);
  bytes.set(MAGIC);
  bytes.set(digest(PROOF_KEY, question), PROOF_AT);
  new DataView(bytes.buffer).setUint32(LENGTH_AT, head.length);
  bytes.set(head, HEAD_AT);
  bytes.set(body, HEAD_AT + head.length);
  new DataView(bytes.buffer).setBigUint64(MAGIC.length, checksum(bytes));
  return bytes;
}

/** Undefined for anything that is not the whole answer to this question. */
export function decodeAnswer(
  { question }: Pick<RequestKey, "question">,
  model: string,
  bytes: Uint8Array,
): CachedAnswer | undefined {
  if (bytes.length < HEAD_AT || MAGIC.some((byte, index) => bytes[index] !== byte)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getBigUint64(MAGIC.length) !== checksum(bytes)) return undefined;
  const proof = digest(PROOF_KEY, question);
  if (proof.some((byte, index) => bytes[PROOF_AT + index] !== byte)) return undefined;
  const bodyAt = HEAD_AT + view.getUint32(LENGTH_AT);
  if (bodyAt > bytes.length) return undefined;
  const head = parseObject(decoder.decode(bytes.subarray(HEAD_AT, bodyAt)));
  if (!isObject(head) || head.model !== model || typeof head.contentType !== "string") return undefined;
  const { form, contentType } = head;
  if (form !== "plain" && form !== "stream") return undefined;
  return { form, model, contentType, body: bytes.subarray(bodyAt) };
}

function digest(key: string, text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256", key).update(text).digest();
}

function checksum(bytes: Uint8Array): bigint {
  return Bun.hash.xxHash64(bytes.subarray(PROOF_AT));
}
