// Forms in every cut: what is told of them, and which of them are refused.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fuzzMultipart } from "../../test/fuzz/multipart.ts";
import { seededRandom } from "../../test/simulation/seeded-random.ts";
import { BOUNDARY, cutAt, type FormPart, formOf, type ReadForm, readForm } from "../../test/support/multipart-forms.ts";
import { MultipartReader } from "./multipart.ts";
import { MultipartFault } from "./multipart-fault.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const read = (body: string) => readForm([encode(body)]);
const contents = (form: ReadForm | MultipartFault) =>
  form instanceof MultipartFault ? form.message : form.parts.map(({ name, content }) => [name, text(content)]);

const HEAD = 'Content-Disposition: form-data; name="a"\r\n\r\n';

/** Lines that begin as a boundary line does, among what is in forms. */
const piece = fc.oneof(
  fc.constantFrom("\r", "\n", "\r\n", "-", "--", `\r\n--${BOUNDARY}`, `\r\n--${BOUNDARY.slice(0, -1)}`, " ", "\r\r\n"),
  fc.string({ unit: "binary", maxLength: 5 }),
);
const content = fc
  .array(piece, { maxLength: 8 })
  .map((pieces) => pieces.join("x").replaceAll(BOUNDARY, `${BOUNDARY}x`))
  .map((text) => (text.endsWith("\r") ? `${text}.` : text));
const part: fc.Arbitrary<FormPart> = fc.record({
  name: fc.constantFrom("model", "image[]", "ü", "__proto__"),
  filename: fc.option(fc.constantFrom("a.png", "文.txt", ""), { nil: undefined }),
  contentType: fc.option(fc.constantFrom("image/png", "text/plain; charset=utf-8"), { nil: undefined }),
  content,
});

describe("what was written is read", () => {
  test("from any cut of any form", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), fc.array(fc.nat(400), { maxLength: 6 }), (parts, offsets) => {
        const bytes = formOf(parts);
        const whole = readForm([bytes]) as ReadForm;
        expect(
          whole.parts.map(({ name, filename, contentType, content }) => [name, filename, contentType, text(content)]),
        )
          // The bytes of a text, as a text: half a surrogate pair is none.
          .toEqual(parts.map((each) => [each.name, each.filename, each.contentType, text(Buffer.from(each.content))]));
        expect(text(bytes.subarray(whole.closedAt))).toBe(`--${BOUNDARY}--\r\n`);
        const cuts = offsets.map((offset) => Math.min(offset, bytes.length)).sort((one, other) => one - other);
        expect(readForm(cutAt(bytes, cuts))).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });

  test("at every single cut, at every pair of cuts, and byte by byte", () => {
    const bytes = encode(
      `before\r\n--${BOUNDARY} \r\n${HEAD}1\r\n--${BOUNDARY}x\r\n--${BOUNDARY}-\r\r\n--${BOUNDARY}\r\n${HEAD}\r\n--${BOUNDARY}--\t`,
    );
    const whole = readForm([bytes]);
    expect(contents(whole)).toEqual([
      ["a", `1\r\n--${BOUNDARY}x\r\n--${BOUNDARY}-\r`],
      ["a", ""],
    ]);
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        if (!Bun.deepEquals(readForm(cutAt(bytes, [first, second])), whole, true))
          throw new Error(`${first}, ${second}`);
      }
    }
    expect(
      readForm(
        cutAt(
          bytes,
          Array.from(bytes, (_, index) => index),
        ),
      ),
    ).toEqual(whole);
  });

  test("offsets name the bytes of the body", () => {
    const bytes = formOf([
      { name: "a", content: "one" },
      { name: "b", content: "two" },
    ]);
    const { parts } = readForm([bytes]) as ReadForm;
    expect(parts.map((each) => text(bytes.subarray(each.contentStart, each.contentEnd)))).toEqual(["one", "two"]);
    for (const { begin } of parts) expect(text(bytes.subarray(begin)).startsWith(`--${BOUNDARY}\r\n`)).toBe(true);
  });
});

describe("lines that look like a boundary", () => {
  test.each([
    ["longer", `--${BOUNDARY}X`],
    ["with one dash", `--${BOUNDARY}-`],
    ["with dashes and more", `--${BOUNDARY}--x`],
    ["with words behind spaces", `--${BOUNDARY}  x`],
    ["ended by a line feed alone", `--${BOUNDARY}\nx`],
    ["ended by a carriage return alone", `--${BOUNDARY}\rx`],
    ["with more spaces than anybody sends", `--${BOUNDARY}${" ".repeat(257)}`],
    ["shorter", `--${BOUNDARY.slice(0, -1)}`],
  ])("%s: data", (_name, line) => {
    expect(contents(read(`--${BOUNDARY}\r\n${HEAD}${line}\r\n${line}\r\n--${BOUNDARY}--`))).toEqual([
      ["a", `${line}\r\n${line}`],
    ]);
  });

  test("a carriage return at the end of one begins the next", () => {
    expect(contents(read(`--${BOUNDARY}\r\n${HEAD}1\r\n--${BOUNDARY}\r\r\n--${BOUNDARY}--`))).toEqual([
      ["a", `1\r\n--${BOUNDARY}\r`],
    ]);
  });

  test("a page full of them is handed on in few pieces", () => {
    const body = encode(`--${BOUNDARY}\r\n${HEAD}${`\r\n--${BOUNDARY}x`.repeat(1_000)}\r\n--${BOUNDARY}--`);
    let pieces = 0;
    const reader = new MultipartReader(BOUNDARY, { part() {}, data: () => pieces++, partEnd() {} });
    reader.push(body);
    reader.end();
    expect(pieces).toBe(1);
  });
});

test("content is handed on as views of what was pushed", () => {
  const body = formOf([{ name: "a", content: "x".repeat(10_000) }]);
  const reader = new MultipartReader(BOUNDARY, {
    part() {},
    data: ({ buffer }) => expect(buffer).toBe(body.buffer),
    partEnd() {},
  });
  reader.push(body.subarray(0, 5_000));
  reader.push(body.subarray(5_000));
  reader.end();
  expect.assertions(2);
});

describe("forms that are refused", () => {
  const cases: [title: string, body: string, trouble: string][] = [
    ["nothing", "", "boundaryNotFound"],
    ["another boundary", "--x\r\n\r\n--x--", "boundaryNotFound"],
    ["no final boundary", `--${BOUNDARY}\r\n${HEAD}abc\r\n`, "cutOff"],
    ["a final boundary without its dashes", `--${BOUNDARY}\r\n${HEAD}abc\r\n--${BOUNDARY}\r\n`, "cutOff"],
    ["a final boundary with one dash", `--${BOUNDARY}\r\n${HEAD}abc\r\n--${BOUNDARY}-`, "cutOff"],
    ["a head without an end", `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n`, "cutOff"],
    ["101 parts", `${`--${BOUNDARY}\r\n${HEAD}\r\n`.repeat(101)}--${BOUNDARY}--`, "tooManyParts"],
    ["a large head", `--${BOUNDARY}\r\nX: ${"x".repeat(16_400)}\r\n${HEAD}\r\n--${BOUNDARY}--`, "headTooLarge"],
    ["an endless head", `--${BOUNDARY}\r\nX: ${"x".repeat(40_000)}`, "headTooLarge"],
    ["much before it", `${"x".repeat(70_000)}\r\n--${BOUNDARY}--`, "boundaryNotFound"],
    ["much behind it", `--${BOUNDARY}--\r\n${"x".repeat(70_000)}`, "tooMuchOutside"],
    ["an empty head", `--${BOUNDARY}\r\n\r\nabc\r\n--${BOUNDARY}--`, "noName"],
  ];
  test.each(cases)("%s", (_title, body, trouble) => {
    expect(read(body)).toMatchObject({ trouble });
    const bytes = encode(body);
    expect(
      readForm(
        cutAt(
          bytes,
          Array.from(bytes, (_, index) => index),
        ),
      ),
    ).toMatchObject({ trouble });
  });

  test("100 parts and a head at the limit are not", () => {
    const filler = "x".repeat(16 * 1024 - HEAD.length - "X: \r\n".length);
    expect(contents(read(`--${BOUNDARY}\r\nX: ${filler}\r\n${HEAD}1\r\n--${BOUNDARY}--`))).toEqual([["a", "1"]]);
    expect(contents(read(`${`--${BOUNDARY}\r\n${HEAD}\r\n`.repeat(100)}--${BOUNDARY}--`))).toHaveLength(100);
    expect(contents(read(`--${BOUNDARY}--`))).toEqual([]);
  });
});

test("random changes of forms are read or refused, and alike at every cut", () => {
  const random = seededRandom(1).next;
  const seen = new Set<string>();
  for (let count = 0; count < 2_000; count++) seen.add(fuzzMultipart(random));
  expect([...seen].sort()).toContain("form: read");
  expect(seen.size).toBeGreaterThan(5);
});

test("random bytes, and random changes of one byte, are no more than faults", () => {
  const form = formOf([{ name: "a", filename: "b", contentType: "c/d", content: "e" }]);
  const random = seededRandom(2).next;
  for (let count = 0; count < 10_000; count++) {
    const bytes = form.slice();
    for (let left = count % 3; left >= 0; left--) bytes[Math.floor(random() * bytes.length)] = random() * 256;
    readForm([bytes]);
  }
});
