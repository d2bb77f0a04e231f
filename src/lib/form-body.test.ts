// Forms as bodies of requests: what they say, and that a change leaves all else as the client wrote it.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BOUNDARY, type FormPart, formOf, type ReadForm, readForm } from "../../test/support/multipart-forms.ts";
import { FormBody } from "./form-body.ts";
import type { JsonObject } from "./json.ts";
import { boundaryOf } from "./multipart-head.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bodyOf = (parts: readonly FormPart[]) => FormBody.read(formOf(parts), BOUNDARY);

/** What a server reads that is sent the body. */
function sent(body: FormBody): FormBody {
  return FormBody.read(body.bytes(), boundaryOf(body.contentType) as string);
}

const filesOf = ({ files }: FormBody) => files.map((file) => ({ ...file, bytes: text(file.bytes) }));

const PNG = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10, 0, 255);
const EDIT: readonly FormPart[] = [
  { name: "model", content: "gpt-image-1" },
  { name: "image", filename: "one.png", contentType: "image/png", content: PNG },
  { name: "prompt", contentType: "text/plain; charset=utf-8", content: "a grüner Zug 🚂" },
  { name: "tag", content: "1" },
  { name: "tag", content: "" },
];

describe("a form", () => {
  test("says its texts and has its files, in views of its bytes", () => {
    const bytes = formOf(EDIT);
    const body = FormBody.read(bytes, BOUNDARY);
    expect(body.value).toEqual({ model: "gpt-image-1", prompt: "a grüner Zug 🚂", tag: ["1", ""] });
    expect(body.files).toEqual([{ name: "image", filename: "one.png", contentType: "image/png", bytes: PNG }]);
    expect(body.files[0]?.bytes.buffer).toBe(bytes.buffer);
    expect(body.bytes()).toBe(bytes);
    expect(body.contentType).toBe(`multipart/form-data; boundary=${BOUNDARY}`);
    expect(body.letValueGo()).toBe(false);
  });

  test("may be empty, and its boundary may need quotes", () => {
    const body = FormBody.read(formOf([], "a b:c"), "a b:c");
    expect(body.value).toEqual({});
    expect(body.contentType).toBe('multipart/form-data; boundary="a b:c"');
    expect(sent(body.with({ model: "m" })).value).toEqual({ model: "m" });
  });

  test("may use names of objects' own", () => {
    const { value } = bodyOf([
      { name: "__proto__", content: "1" },
      { name: "constructor", content: "2" },
    ]);
    expect(Object.entries(value)).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    const changed = bodyOf(EDIT).with(JSON.parse('{"__proto__":"x"}') as JsonObject);
    expect(Object.entries(sent(changed).value).at(-1)).toEqual(["__proto__", "x"]);
    expect(Object.entries(changed.value).at(-1)).toEqual(["__proto__", "x"]);
  });

  test("tells what memory its texts take before they are made", () => {
    const taken: number[] = [];
    FormBody.read(formOf(EDIT), BOUNDARY, (byteCount) => taken.push(byteCount));
    expect(taken).toEqual([11, 18, 1, 0]);
  });

  test("is refused where a part is neither a file nor a text", () => {
    expect(() => bodyOf([{ name: "image", content: PNG }])).toThrow("image: is neither a file");
  });
});

describe("with()", () => {
  test("a field changes in its place, and nothing else does", () => {
    const before = Buffer.from(formOf(EDIT)).toString("latin1");
    const changed = bodyOf(EDIT).with({ model: "other" });
    expect(Buffer.from(changed.bytes()).toString("latin1")).toBe(before.replace("gpt-image-1", "other"));
  });

  test("a field goes with all its parts, and a new one stands at the end", () => {
    const changed = bodyOf(EDIT).with({ tag: undefined, n: 2, image: undefined });
    const expected = formOf([...EDIT.slice(0, 1), ...EDIT.slice(2, 3), { name: "n", content: "2" }]);
    expect(text(changed.bytes())).toBe(text(expected));
    expect(changed.files).toEqual([]);
    expect(changed.value).toEqual({ model: "gpt-image-1", prompt: "a grüner Zug 🚂", n: "2" });
  });

  test("a text takes the place of several, and of files", () => {
    const changed = bodyOf(EDIT).with({ tag: "x", image: "y" });
    expect(text(changed.bytes())).toBe(
      text(
        formOf([
          ...EDIT.slice(0, 1),
          ...EDIT.slice(2, 3),
          { name: "tag", content: "x" },
          { name: "image", content: "y" },
        ]),
      ),
    );
  });

  test("what comes back to what it was are the client's own bytes", () => {
    const body = bodyOf(EDIT);
    expect(body.with({}).bytes()).toBe(body.bytes());
    expect(body.with({ model: "gpt-image-1", absent: undefined }).bytes()).toBe(body.bytes());
    expect(body.with({ model: "x" }).with({ model: "gpt-image-1" }).bytes()).toBe(body.bytes());
  });

  test("a text that contains the boundary gets another boundary", () => {
    const prompt = `x\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\nstolen\r\n`;
    const changed = bodyOf(EDIT).with({ prompt });
    expect(changed.contentType).not.toContain(BOUNDARY);
    expect(sent(changed).value).toEqual({ model: "gpt-image-1", prompt, tag: ["1", ""] });
    expect(filesOf(sent(changed))).toEqual(filesOf(bodyOf(EDIT)));
    const twice = bodyOf(EDIT).with({ prompt, model: "signalbox-form-0" });
    expect(sent(twice).value).toEqual({ model: "signalbox-form-0", prompt, tag: ["1", ""] });
  });

  test("a length that a part says of itself is not kept for another text", () => {
    const form = text(formOf([{ name: "model", contentType: "text/plain\r\nContent-Length: 1", content: "m" }]));
    const changed = FormBody.read(new TextEncoder().encode(form), BOUNDARY).with({ model: "longer" });
    expect(text(changed.bytes())).toBe(text(formOf([{ name: "model", content: "longer" }])));
  });

  test("what stands around the parts is kept", () => {
    const form = text(formOf(EDIT.slice(0, 1)));
    const own = new TextEncoder().encode(`before\r\n${form.replace("\r\n", " \r\n")}behind`);
    const changed = FormBody.read(own, BOUNDARY).with({ model: "x" });
    expect(text(changed.bytes())).toBe(text(own).replace("gpt-image-1", "x"));
  });

  test("objects are no texts", () => {
    expect(() => bodyOf(EDIT).with({ model: {} })).toThrow(TypeError);
  });
});

const names = ["model", "prompt", "image", "n", "ü", "__proto__", 'a"b\\c'];
const value = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.constantFrom(BOUNDARY, `\r\n--${BOUNDARY}--\r\n`, `\r\n--${BOUNDARY}`, "\r\n", "signalbox-form-0", "🚂"),
);
const part: fc.Arbitrary<FormPart> = fc.record({
  name: fc.constantFrom(...names.slice(0, 6)),
  filename: fc.option(fc.constantFrom("a.png", ""), { nil: undefined, freq: 2 }),
  contentType: fc.option(fc.constant("text/plain"), { nil: undefined }),
  content: fc.string({ maxLength: 8 }),
});
const changes = fc
  .array(fc.tuple(fc.constantFrom(...names), fc.option(value, { nil: undefined })), { maxLength: 4 })
  .map((entries) => Object.fromEntries(entries) as JsonObject);

test("any changes read back as they were made, and the parts of other names keep their bytes", () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), fc.array(changes, { maxLength: 3 }), (parts, steps) => {
      const original = bodyOf(parts);
      let body = original;
      const expected = new Map(Object.entries(original.value));
      const changed = new Set<string>();
      for (const step of steps) {
        const before = body;
        const bytesBefore = text(before.bytes());
        body = body.with(step);
        expect(text(before.bytes())).toBe(bytesBefore);
        for (const [name, each] of Object.entries(step)) {
          changed.add(name);
          if (each === undefined) expected.delete(name);
          else expected.set(name, each);
        }
      }
      const wanted = [...expected].sort();
      const back = sent(body);
      expect(Object.entries(body.value).sort()).toEqual(wanted);
      expect(Object.entries(back.value).sort()).toEqual(wanted);
      expect(filesOf(back)).toEqual(filesOf(body));
      expect(filesOf(body)).toEqual(filesOf(original).filter(({ name }) => !changed.has(name)));
      const others = (each: FormBody) => partTexts(each).filter(([name]) => !changed.has(name));
      expect(others(body)).toEqual(others(original));
    }),
    { numRuns: 500 },
  );
});

/** Every part with its head and its content, without the line of its boundary. */
function partTexts(body: FormBody): [name: string, bytes: string][] {
  const bytes = body.bytes();
  const boundary = boundaryOf(body.contentType) as string;
  const { parts } = readForm([bytes], boundary) as ReadForm;
  return parts.map(({ name, begin, contentEnd }) => [
    name,
    Buffer.from(bytes.subarray(begin + 2 + boundary.length, contentEnd)).toString("latin1"),
  ]);
}
