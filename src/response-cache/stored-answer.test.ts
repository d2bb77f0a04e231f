// Answers as objects: what was written is read, and nothing else is taken for an answer.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodeStored, digestOf, encodeStored, MAX_HEAD_BYTES, type StoredAnswer } from "./stored-answer.ts";

const stored: StoredAnswer = {
  questionDigest: digestOf("question"),
  keyForm: "stream+usage",
  answer: {
    form: "stream",
    model: "m",
    contentType: "text/event-stream",
    body: new TextEncoder().encode("data: é\n\n"),
  },
  expiresAtMs: 1_790_000_000_000,
};
const object = encodeStored(stored) as Uint8Array;

test("what was written is read", () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.string({ unit: "binary", maxLength: 20 }), (body, text) => {
      const model = text.toWellFormed();
      const plain: StoredAnswer = {
        ...stored,
        keyForm: "plain",
        answer: { ...stored.answer, form: "plain", model, body },
      };
      expect(decodeStored(encodeStored(plain) as Uint8Array)).toEqual(plain);
    }),
  );
});

test("cut off anywhere, changed anywhere or longer it is no answer to anything else", () => {
  for (let length = 0; length < object.length; length++)
    expect(decodeStored(object.subarray(0, length))).toBeUndefined();
  expect(decodeStored(Buffer.concat([object, object]))).toBeUndefined();
  for (let at = object.length - 9; at < object.length; at++) {
    const changed = Uint8Array.from(object);
    changed[at]! ^= 1;
    expect(decodeStored(changed)).toBeUndefined();
  }
});

test("garbage is no answer", () => {
  for (const text of [
    "",
    "{}",
    "{}\n",
    "<Error/>\n",
    "null\n",
    `${" ".repeat(20_000)}\n`,
    '{"signalbox_cached_answer":2}\n',
  ]) {
    expect(decodeStored(new TextEncoder().encode(text))).toBeUndefined();
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => decodeStored(bytes) === undefined));
});

test("a model whose name is longer than its line is not written", () => {
  const model = "m".repeat(MAX_HEAD_BYTES);
  expect(encodeStored({ ...stored, answer: { ...stored.answer, model } })).toBeUndefined();
});
