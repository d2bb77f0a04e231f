// Which requests have the same key, and which must not.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../protocols/fields.ts";
import { type KeyedRequest, ownerOf, type RequestKeys, requestKeys } from "./key.ts";

const encoder = new TextEncoder();

function keysOf(text: string, more: Partial<KeyedRequest> = {}): RequestKeys {
  const bytes = encoder.encode(text);
  const body = JSON.parse(text) as JsonObject;
  const base = { operation: "chat", protocol: "chat", owner: "anonymous", headers: new Headers() } as const;
  return requestKeys({ ...base, bytes, body, ...more });
}

const MESSAGES = '"messages":[{"role":"user","content":"hi"}]';

describe("equal keys", () => {
  test.each([
    [`{"model":"m",${MESSAGES}}`, `{ ${MESSAGES} ,\n "model" :\t"m" }`],
    [
      '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
      '{"model":"m","messages":[{"content":"hi","role":"user"}]}',
    ],
    ['{"model":"m","a":"\\u0041/\\""}', '{"model":"m","a":"A\\/\\u0022"}'],
    ['{"model":"m","temperature":0}', '{"model":"m","temperature":0.0}'],
    [
      '{"model":"m"}',
      '{"model":"m","user":"u","metadata":{"a":[1,{}]},"safety_identifier":"s","prompt_cache_key":"k"}',
    ],
    ['{"model":"m"}', '{"model":"m","stream":false,"stream_options":null}'],
  ])("%s = %s", (left, right) => {
    expect(keysOf(left)).toEqual(keysOf(right));
  });
});

describe("different keys", () => {
  test.each([
    ['{"seed":9007199254740992}', '{"seed":9007199254740993}'],
    ['{"seed":1}', '{"seed":"1"}'],
    ['{"a":1e400}', '{"a":1e401}'],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":[[1],2]}', '{"a":[1,[2]]}'],
    ['{"a":null}', "{}"],
    ['{"a":1,"a":2}', '{"a":2}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['{"a":"\\ud800"}', '{"a":"\\ud801"}'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{"a":"\\\\","b":"c"}', '{"a":"\\\\\\",\\"b\\":\\"c"}'],
    ['{"metadata":{"x":1},"a":{"metadata":1}}', '{"metadata":{"x":1},"a":{"metadata":2}}'],
    // The order of a schema is the order of the answer that follows it.
    ['{"response_format":{"a":1,"b":2}}', '{"response_format":{"b":2,"a":1}}'],
    ['{"tools":[{"a":1,"b":2}]}', '{"tools":[{"b":2,"a":1}]}'],
  ])("%s and %s", (left, right) => {
    expect(keysOf(left).own).not.toBe(keysOf(right).own);
  });

  test("owner, operation, protocol and forwarded headers", () => {
    const text = '{"model":"m"}';
    const variants: Partial<KeyedRequest>[] = [
      {},
      { owner: "key:a" },
      { owner: ownerOf({ keyId: "a", organizationId: "a" }) },
      { operation: "completions" },
      { protocol: "messages" },
      { headers: new Headers({ "openai-beta": "x" }) },
      { headers: new Headers({ "openai-project": "x" }) },
    ];
    expect(new Set(variants.map((variant) => keysOf(text, variant).own)).size).toBe(variants.length);
  });

  test("bytes that are no UTF-8", () => {
    const bytes = encoder.encode('{"a":"?"}');
    const keys = [0xfe, 0xff].map((byte) => {
      const broken = bytes.slice();
      broken[6] = byte;
      return keysOf('{"a":"x"}', { bytes: broken }).own;
    });
    expect(keys[0]).not.toBe(keys[1]);
  });

  test("bodies that nest deeply", () => {
    const deep = (inside: string) => `{"a":${"[".repeat(5_000)}${inside}${"]".repeat(5_000)}}`;
    expect(keysOf(deep("1")).own).not.toBe(keysOf(deep("2")).own);
    expect(keysOf(deep("1")).own).toBe(keysOf(deep("1")).own);
  });
});

test("the forms of one answer know each other", () => {
  const plain = keysOf('{"model":"m"}');
  const stream = keysOf('{"model":"m","stream":true}');
  const withUsage = keysOf('{"model":"m","stream":true,"stream_options":{"include_usage":true}}');
  const without = keysOf('{"model":"m","stream":true,"stream_options":{"include_usage":false}}');
  const special = keysOf('{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}');
  expect(plain.other).toBe(withUsage.own);
  expect(stream.other).toBe(plain.own);
  expect(withUsage.other).toBe(plain.own);
  expect(without).toEqual(stream);
  expect(special.other).toBeUndefined();
  expect(new Set([plain, stream, withUsage, special].map(({ own }) => own)).size).toBe(4);
});

const body = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });

function reordered(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).reverse());
}

test("order of the request's keys and blanks never matter", () => {
  fc.assert(
    fc.property(body, (value) => {
      expect(keysOf(JSON.stringify(reordered(value), undefined, 2))).toEqual(keysOf(JSON.stringify(value)));
    }),
  );
});

test("two different bodies have different keys", () => {
  fc.assert(
    fc.property(body, body, (left, right) => {
      const [one, two] = [JSON.stringify(left), JSON.stringify(right)];
      fc.pre(!Bun.deepEquals(JSON.parse(one), JSON.parse(two), true));
      expect(keysOf(one).own).not.toBe(keysOf(two).own);
    }),
  );
});

test("any other field changes the key", () => {
  const ignored = new Set([
    "user",
    "metadata",
    "safety_identifier",
    "store",
    "prompt_cache_key",
    "prompt_cache_retention",
    "stream",
    "stream_options",
  ]);
  fc.assert(
    fc.property(body, fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 2 }), (value, name, added) => {
      fc.pre(!Object.hasOwn(value, name) && !ignored.has(name) && name !== "__proto__");
      expect(keysOf(JSON.stringify({ ...value, [name]: added })).own).not.toBe(keysOf(JSON.stringify(value)).own);
    }),
  );
});
