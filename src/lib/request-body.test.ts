// Bodies of requests: bytes and value say the same, whatever is changed and whichever of them is made last.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "./json.ts";
import { JsonBody, type RequestBody } from "./request-body.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const parse = (body: RequestBody) => JSON.parse(decoder.decode(body.bytes())) as JsonObject;
const received = (text: string) => new JsonBody(encoder.encode(text), JSON.parse(text) as JsonObject);

const LONG = `{"model":"m", "text":"${"x".repeat(70_000)}", "n":1.0}`;

const name = fc.oneof(fc.constantFrom("model", "stream", "a b", "", "ü", "12"), fc.string({ maxLength: 6 }));
// JSON has no negative zero.
const value = fc.jsonValue({ maxDepth: 2 }).map((it) => JSON.parse(JSON.stringify(it)) as unknown);
const members = fc.dictionary(name, value, { maxKeys: 5 });
const changes = fc.dictionary(name, fc.option(value, { nil: undefined, freq: 3 }), { maxKeys: 4 });
const plain = (object: JsonObject) => JSON.parse(JSON.stringify(object)) as JsonObject;

describe("with()", () => {
  test("bytes and value say the same after any changes, of any body", () => {
    fc.assert(
      fc.property(
        members,
        fc.array(changes, { maxLength: 3 }),
        fc.boolean(),
        fc.boolean(),
        (own, steps, isLong, isWritten) => {
          const start = isLong ? { ...own, filler: "x".repeat(70_000) } : own;
          let body = isWritten ? JsonBody.written(start) : received(JSON.stringify(start, undefined, 1));
          let expected = start;
          for (const step of steps) {
            body = body.with(step);
            expected = { ...expected, ...step };
          }
          expect(plain(body.value)).toEqual(plain(expected));
          expect(parse(body)).toEqual(plain(expected));
          body.letValueGo();
          expect(plain(body.value)).toEqual(plain(expected));
        },
      ),
    );
  });

  test("keeps the spelling of all that is not changed, and the body itself", () => {
    const body = received('{ "model": "m", "n": 1.0, "seed":12345678901234567890 }');
    const changed = body.with({ model: "other" });
    expect(decoder.decode(changed.bytes())).toBe('{ "model": "other", "n": 1.0, "seed":12345678901234567890 }');
    expect(changed.bytes()).toBe(changed.bytes());
    expect(body.value.model).toBe("m");
    expect(decoder.decode(body.bytes())).toContain('"m"');
  });
});

test("a body that came is its own bytes and value", () => {
  const bytes = encoder.encode('{"a":1}');
  const content = { a: 1 };
  const body = new JsonBody(bytes, content);
  expect(body.bytes()).toBe(bytes);
  expect(body.value).toBe(content);
});

test("bytes may say less than the value", () => {
  const body = JsonBody.written({ a: 1, b: 2 }, { a: 1 });
  expect(body.value).toEqual({ a: 1, b: 2 });
  expect(parse(body)).toEqual({ a: 1 });
  expect(body.letValueGo()).toBe(false);
  expect(body.value).toEqual({ a: 1, b: 2 });
});

describe("letValueGo()", () => {
  test("the value of a large body is parsed anew, once for all who look at once", () => {
    const body = received(LONG);
    const { value: before } = body;
    expect(body.letValueGo()).toBe(true);
    expect(body.value).not.toBe(before);
    expect(body.value).toBe(body.value);
    expect(body.value).toEqual(before);
  });

  test("lets go of what the body was made of, too", () => {
    const body = received(LONG);
    const { value: before } = body;
    const changed = body.with({ model: "other" });
    expect(changed.letValueGo()).toBe(true);
    expect(body.value).not.toBe(before);
    expect(changed.value).toEqual({ ...before, model: "other" });
  });

  test("keeps small values", () => {
    const body = received('{"a":1}');
    const { value: before } = body;
    expect(body.letValueGo()).toBe(false);
    expect(body.with({ b: 2 }).letValueGo()).toBe(false);
    expect(body.value).toBe(before);
  });
});
