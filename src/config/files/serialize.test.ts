// Documents as text and back in every format, and what is refused.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Mapping } from "../values/values.ts";
import { DOCUMENT_FORMATS, MAXIMUM_IMPORT_BYTES, parseDocument, serializeDocument } from "./serialize.ts";

const text = fc.string({ unit: "binary" }).filter((value) => value.isWellFormed());
const keyText = text.filter((value) => value !== "__proto__");
const leaf = fc.oneof(
  text,
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map((value) => (value === 0 ? 0 : value)),
  fc.constantFrom(
    "true",
    "null",
    "~",
    "1e3",
    "0x10",
    "- a",
    "a: b",
    "#c",
    "${VAR}",
    "1979-05-27",
    "line\nline\n",
    " x ",
    "\u0085\u2028",
  ),
);
const { value: valueArbitrary } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(keyText, tie("value"), { maxKeys: 4 }),
  ),
}));
const document = fc.dictionary(keyText, valueArbitrary, { maxKeys: 5 }) as fc.Arbitrary<Mapping>;

test.each([...DOCUMENT_FORMATS])("%s comes back as it went", async (format) => {
  await fc.assert(
    fc.asyncProperty(document, async (value) => {
      // JSON has no minus zero and no prototypes.
      const plain = JSON.parse(JSON.stringify(value)) as Mapping;
      const written = await serializeDocument(plain, format);
      expect(await parseDocument(written, format)).toEqual({ ok: true, document: plain });
    }),
  );
});

const DEEP = 10_000;

describe("refused", () => {
  test.each([
    ["json", '{"a": 1, "b": {"c": 1, "\\u0063": 2}}', "given twice"],
    ["yaml", "a: 1\na: 2", "given twice"],
    ["toml", "a = 1\na = 2", ""],
    ["json", '{"a": 1e400}', "too large"],
    ["json", '{"a": 9007199254740993}', "too large"],
    ["yaml", "a: 1e400", "too large"],
    ["yaml", "a: .nan", "too large"],
    ["toml", "a = 99999999999999999999", ""],
    ["toml", "a = inf", "too large"],
    ["json", `{"a":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}`, "nested too deeply"],
    ["yaml", `a: ${"[".repeat(DEEP)}${"]".repeat(DEEP)}`, "nested too deeply"],
    ["toml", `a = ${"[".repeat(DEEP)}${"]".repeat(DEEP)}`, "nested too deeply"],
    ["json", '{"a": "\ud800"}', "UTF-8"],
    ["json", '{"a": "\\ud800"}', "Unicode"],
    ["json", '{"__proto__": {"a": 1}}', "__proto__"],
    ["json", "[1]", "mapping"],
    ["json", '{"a": 1,}', "not valid JSON"],
    ["yaml", "just text", "mapping"],
  ] as const)("%s %#", async (format, content, message) => {
    const result = await parseDocument(content, format);
    if (result.ok) throw new Error("accepted");
    expect(result.problems[0]?.message).toContain(message);
    expect(result.tooLarge).toBe(false);
  });

  test("more than a mebibyte", async () => {
    const result = await parseDocument(`{"a": "${"x".repeat(MAXIMUM_IMPORT_BYTES)}"}`, "json");
    expect(result).toMatchObject({ ok: false, tooLarge: true });
    const largest = `{"a":"${"x".repeat(MAXIMUM_IMPORT_BYTES - 8)}"}`;
    expect((await parseDocument(largest, "json")).ok).toBe(true);
  });
});
