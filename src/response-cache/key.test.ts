// Which requests have the same key, and which must not.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../lib/json.ts";
import { JsonBody } from "../lib/request-body.ts";
import { WITHOUT_EFFECT } from "../protocols/kept-chunks.ts";
import type { RequestKey } from "./cache.ts";
import { KEYED_HEADERS, type KeyedRequest, type Keying, requestKey } from "./key.ts";

const encoder = new TextEncoder();

interface Variant extends Partial<KeyedRequest> {
  owner?: string;
  headers?: Record<string, string>;
  prompts?: string;
  keying?: Keying;
}

/** As chat says of itself. */
const CHAT: Keying = { withoutEffect: WITHOUT_EFFECT, countsWhenAsked: true };

interface Written extends Omit<RequestKey, "sketch"> {
  sketch: number;
}

function keyOf(
  text: string,
  { owner = "anonymous", headers = {}, prompts = "", keying = CHAT, ...more }: Variant = {},
): Written {
  const value = JSON.parse(text) as JsonObject;
  const request = { operation: "chat", askedModel: "m", stream: value.stream === true } as const;
  const body = new JsonBody(encoder.encode(text), value);
  const key = requestKey({ ...request, body, ...more }, owner, new Headers(headers), prompts, keying);
  const { form, otherForm } = key;
  // In this order: a cache asks for the question after it has seen the sketch.
  return { sketch: key.sketch(7), question: key.question, form, otherForm };
}

function sketchOf(value: unknown, owner?: string): number {
  return keyOf(JSON.stringify(value), owner === undefined ? {} : { owner }).sketch;
}

const MESSAGES = '"messages":[{"role":"user","content":"hi"}]';
const NESTED = (inside: string) => `{"a":${"[".repeat(200_000)}${inside}${"]".repeat(200_000)}}`;

describe("equal keys", () => {
  test.each([
    [`{"model":"m",${MESSAGES}}`, `{ "model" :\t"m" ,\n ${MESSAGES} }`],
    ['{"model":"m","a":"\\u0041/\\""}', '{"model":"m","a":"A\\/\\u0022"}'],
    ['{"model":"m","temperature":0}', '{"model":"m","temperature":0.0}'],
    ['{"a":100}', '{"a":1e2}'],
    ['{"a":2}', '{"a":1,"a":2}'],
    [
      '{"model":"m"}',
      '{"model":"m","user":"u","metadata":{"a":[1,{}]},"safety_identifier":"s","prompt_cache_key":"k"}',
    ],
    ['{"model":"m"}', '{"model":"m","stream":false,"stream_options":null}'],
    // Compared as they are written, but without what does not matter.
    ['{"seed":9007199254740993}', '{"user":"u","seed":9007199254740993}'],
    ['{"logit_bias":{"50256":-100}}', '{"logit_bias":{"50256":-100},"user":"u"}'],
  ])("%s = %s", (left, right) => {
    expect(keyOf(left)).toEqual(keyOf(right));
  });

  test("bodies that nest too deeply to be written", () => {
    expect(keyOf(NESTED("1"))).toEqual(keyOf(NESTED("1")));
  });
});

describe("different keys", () => {
  test.each([
    ['{"seed":9007199254740992}', '{"seed":9007199254740993}'],
    ['{"seed":12345678901234567890}', '{"seed":12345678901234567891}'],
    ['{"seed":-12345678901234567890}', '{"seed":-12345678901234567891}'],
    ['{"a":123456789.12345678901}', '{"a":123456789.12345678902}'],
    ['{"a":[1,1.00000000000000001]}', '{"a":[1.00000000000000001,1]}'],
    ['{"seed":1}', '{"seed":"1"}'],
    ['{"a":1e400}', '{"a":1E+401}'],
    ['{"a":1e400}', '{"a":null}'],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":[[1],2]}', '{"a":[1,[2]]}'],
    ['{"a":null}', "{}"],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['{"a":"\\ud800"}', '{"a":"\\ud801"}'],
    ['{"a":"\\ud800"}', '{"a":"\\ufffd"}'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{"a":{"__proto__":1}}', '{"a":{"__proto__":2}}'],
    ['{"a":{"toJSON":1}}', '{"a":{"toJSON":2}}'],
    ['{"a":"\\\\","b":"c"}', '{"a":"\\\\\\",\\"b\\":\\"c"}'],
    ['{"metadata":{"x":1},"a":{"metadata":1}}', '{"metadata":{"x":1},"a":{"metadata":2}}'],
    // The order of members may reach the model through schemas and tools, so that it always counts.
    ['{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['{"response_format":{"a":1,"b":2}}', '{"response_format":{"b":2,"a":1}}'],
    ['{"response_format":{"a":1,"2":2,"1":1}}', '{"response_format":{"a":1,"1":1,"2":2}}'],
    ['{"response_format":{"\\u0032":2,"1":1}}', '{"response_format":{"1":1,"\\u0032":2}}'],
  ])("%s and %s", (left, right) => {
    expect(keyOf(left).question).not.toBe(keyOf(right).question);
  });

  test("long numbers wherever they stand", () => {
    for (let blanks = 0; blanks < 40; blanks++) {
      const text = (digit: number) => `{"a":"${"x".repeat(blanks)}","seed":1234567890123456${digit}}`;
      expect(keyOf(text(0)).question).not.toBe(keyOf(text(1)).question);
    }
  });

  test("bodies that nest too deeply to be written", () => {
    expect(keyOf(NESTED("1")).question).not.toBe(keyOf(NESTED("2")).question);
    const options = (inside: string) => `{"stream":true,"stream_options":${NESTED(inside)}}`;
    expect(keyOf(options("1")).question).not.toBe(keyOf(options("2")).question);
  });

  test("owner, operation, format, model and forwarded headers", () => {
    const text = '{"model":"m"}';
    const variants: Variant[] = [
      {},
      { owner: "key:a" },
      { owner: "organization:a" },
      { operation: "completions" },
      { client: { name: "messages" } },
      { askedModel: "alias" },
      { prompts: "digest" },
      ...KEYED_HEADERS.map((name) => ({ headers: { [name]: "x" } })),
      ...KEYED_HEADERS.map((name) => ({ headers: { [name]: "0" } })),
    ];
    expect(new Set(variants.map((variant) => keyOf(text, variant).question)).size).toBe(variants.length);
  });
});

test("where the answers of a format repeat the request, every member counts", () => {
  const texts = ["{}", '{"user":"u"}', '{"metadata":{"a":"b"}}', '{"store":false}', '{"store":true}'];
  const keys = texts.map((text) => keyOf(text, { keying: { withoutEffect: new Set() } }));
  expect(new Set(keys.map(({ question }) => question)).size).toBe(texts.length);
});

test("streams that always tell their counts are the other form of a whole answer", () => {
  const keying: Keying = { withoutEffect: new Set() };
  const formsOf = (text: string) => {
    const { form, otherForm } = keyOf(text, { keying });
    return [form, otherForm];
  };
  expect(formsOf("{}")).toEqual(["plain", "stream+usage"]);
  for (const options of ["", ',"stream_options":null', ',"stream_options":{}']) {
    expect(formsOf(`{"stream":true${options}}`)).toEqual(["stream+usage", "plain"]);
  }
  const obfuscated = '{"stream":true,"stream_options":{"include_obfuscation":false}}';
  expect(formsOf(obfuscated)).toEqual(["stream", undefined]);
  expect(keyOf(obfuscated, { keying }).question).not.toBe(keyOf('{"stream":true}', { keying }).question);
});

test("the forms of one answer know each other", () => {
  const plain = keyOf('{"model":"m"}');
  const stream = keyOf('{"model":"m","stream":true}');
  const withUsage = keyOf('{"model":"m","stream":true,"stream_options":{"include_usage":true}}');
  const without = keyOf('{"model":"m","stream":true,"stream_options":{"include_usage":false}}');
  const { question, sketch } = plain;
  expect(plain).toEqual({ question, sketch, form: "plain", otherForm: "stream+usage" });
  expect(stream).toEqual({ question, sketch, form: "stream", otherForm: "plain" });
  expect(withUsage).toEqual({ question, sketch, form: "stream+usage", otherForm: "plain" });
  expect(without).toEqual(stream);
});

test("a stream with special options is a question of its own, in one form only", () => {
  const special = (option: string) => keyOf(`{"model":"m","stream":true,"stream_options":{${option}}}`);
  const questions = [
    keyOf('{"model":"m","stream":true}'),
    special('"include_obfuscation":false'),
    special('"include_obfuscation":true'),
    special('"x":12345678901234567890'),
    special('"x":12345678901234567891'),
  ].map((key) => key.question);
  expect(new Set(questions).size).toBe(questions.length);
  expect(special('"include_obfuscation":false')).toMatchObject({ form: "stream", otherForm: undefined });
});

const body = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });

/** Bodies that are compared as they are written have as many keys as spellings. */
function isPlain(text: string): boolean {
  return !/[\d.]{16}|"\d|\d[eE]/.test(text);
}

test("blanks never matter", () => {
  fc.assert(
    fc.property(body, (value) => {
      const text = JSON.stringify(value);
      fc.pre(isPlain(text));
      expect(keyOf(JSON.stringify(value, undefined, 2))).toEqual(keyOf(text));
    }),
  );
});

test("two different bodies have different keys", () => {
  fc.assert(
    fc.property(body, body, (left, right) => {
      const [one, two] = [JSON.stringify(left), JSON.stringify(right)];
      fc.pre(!Bun.deepEquals(JSON.parse(one), JSON.parse(two), true));
      expect(keyOf(one).question).not.toBe(keyOf(two).question);
    }),
  );
});

test("whole numbers of any size are told apart", () => {
  const whole = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
  const near = fc.tuple(whole, fc.bigInt({ min: 1n, max: 100n }));
  fc.assert(
    fc.property(near, fc.nat(20), ([number, more], blanks) => {
      const text = (seed: bigint) => `{"a":${" ".repeat(blanks)}[${seed}]}`;
      expect(keyOf(text(number)).question).not.toBe(keyOf(text(number + more)).question);
    }),
    { numRuns: 500 },
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
      expect(keyOf(JSON.stringify({ ...value, [name]: added })).question).not.toBe(
        keyOf(JSON.stringify(value)).question,
      );
    }),
  );
});

describe("sketches", () => {
  const messages = (...contents: unknown[]) => ({ messages: contents.map((content) => ({ role: "user", content })) });
  const parts = (...texts: string[]) => [...texts.map((text) => ({ type: "text", text })), { type: "image_url" }];

  test("tell texts, conversations, owners and seeds apart", () => {
    const long = "x".repeat(10_000);
    const texts = ["", "a", "b", "ab", "ba", long, `${long}y`, `y${long}`, `${long}z`, "x".repeat(9_999), "語", "🦊"];
    const bodies = [{}, messages(), messages("b", "a"), ...texts.map((text) => messages(text))];
    const sketches = bodies.flatMap((value) => [sketchOf(value), sketchOf(value, "key:a"), sketchOf(value, "key:b")]);
    expect(new Set(sketches).size).toBe(sketches.length);
    const key = requestKey(
      { operation: "chat", askedModel: "m", stream: false, body: JsonBody.written(messages("a")) },
      "anonymous",
      new Headers(),
      "",
      CHAT,
    );
    expect(new Set([1, 2, 3].map((seed) => key.sketch(seed))).size).toBe(3);
  });

  test("look at the last text of a message in parts", () => {
    expect(sketchOf(messages(parts("a", "b")))).toBe(sketchOf(messages("b")));
    for (const content of [undefined, null, 1, [], [null, 1, "a", { text: 1 }], {}]) {
      expect(sketchOf(messages(content))).toBe(sketchOf(messages("")));
    }
    expect(sketchOf({ messages: ["a"] })).toBe(sketchOf(messages("a")));
    for (const message of [null, 1, []]) expect(sketchOf({ messages: [message] })).toBe(sketchOf(messages("")));
  });

  test("look at the input of Responses and at the text of text completions", () => {
    for (const member of ["input", "prompt"]) {
      expect(sketchOf({ [member]: "a" })).not.toBe(sketchOf({ [member]: "b" }));
      expect(sketchOf({ [member]: messages("a").messages })).toBe(sketchOf(messages("a")));
    }
  });

  test("are equal where questions are, however they are spelled", () => {
    const escaped = (text: string) =>
      text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const content = fc.oneof(fc.string({ unit: "binary", maxLength: 60 }), fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(fc.array(content, { maxLength: 3 }), body, (contents, more) => {
        const value = { ...more, ...messages(...contents) };
        const spellings = [JSON.stringify(value), escaped(JSON.stringify(value)), JSON.stringify(value, undefined, 1)];
        expect(new Set(spellings.map((text) => keyOf(text).sketch)).size).toBe(1);
      }),
    );
  });
});
