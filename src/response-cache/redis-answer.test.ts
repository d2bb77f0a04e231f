// What is written for a question is read for that question alone, and nothing else is ever read as an answer.

import { expect, test } from "bun:test";
import fc from "fast-check";
import type { CachedAnswer } from "./cache.ts";
import { decodeAnswer, encodeAnswer, isAnswerName, nameOf, namesOfModel } from "./redis-answer.ts";

const key = (question: string) => ({ question });

function answer(body: Uint8Array, more: Partial<CachedAnswer> = {}): CachedAnswer {
  return { form: "plain", model: "m", contentType: "application/json", body, ...more };
}

test("an answer comes back as it was", () => {
  const answers = fc.record({
    form: fc.constantFrom<CachedAnswer["form"]>("plain", "stream"),
    model: fc.string(),
    contentType: fc.string(),
    body: fc.uint8Array({ maxLength: 2_000 }),
  });
  fc.assert(
    fc.property(fc.string(), answers, (question, written) => {
      const read = decodeAnswer(key(question), written.model, encodeAnswer(key(question), written));
      expect(read).toEqual({ ...written, body: new Uint8Array(written.body) });
    }),
  );
});

test("of another question, another model, or with any byte changed, it is none", () => {
  const body = Uint8Array.from({ length: 300 }, (_, index) => index % 256);
  const written = encodeAnswer(key("q"), answer(body));
  expect(decodeAnswer(key("p"), "m", written)).toBeUndefined();
  expect(decodeAnswer(key("q"), "n", written)).toBeUndefined();
  for (let at = 0; at < written.length; at++) {
    const changed = written.slice();
    changed[at] = (changed[at] as number) ^ (1 << (at % 8));
    expect(decodeAnswer(key("q"), "m", changed)).toBeUndefined();
    expect(decodeAnswer(key("q"), "m", written.subarray(0, at))).toBeUndefined();
  }
  expect(decodeAnswer(key("q"), "m", new Uint8Array([...written, 0]))).toBeUndefined();
});

test("random bytes are none", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      expect(decodeAnswer(key("q"), "m", bytes)).toBeUndefined();
    }),
  );
});

test("names tell question, model and form apart, and nothing of what they are made of", () => {
  const names = ["q", "p"].flatMap((question) =>
    ["m", "n"].flatMap((model) => {
      const name = nameOf(key(question), model);
      return [name("plain"), name("stream"), name("stream+usage")];
    }),
  );
  expect(new Set(names).size).toBe(12);
  for (const name of names) expect(isAnswerName(name)).toBe(true);
  expect(nameOf(key("q"), "m")("plain").startsWith(namesOfModel("m"))).toBe(true);
  for (const other of ["check", "", `${names[0]}x`, `x${names[0]}`]) expect(isAnswerName(other)).toBe(false);
});
