// PNG images: what is read from good ones, and that none of the others gets through.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fuzzPng } from "../../test/fuzz/png.ts";
import { seededRandom } from "../../test/simulation/seeded-random.ts";
import { chunk, headerChunk, type PngOptions, pngFile, pngImage } from "../../test/support/png-images.ts";
import { readPng } from "./png.ts";

const zeros = (length: number) => new Uint8Array(length);

/** Colour types and the depths of each. */
const FORMS: readonly (readonly [colourType: number, depths: readonly number[]])[] = [
  [0, [1, 2, 4, 8, 16]],
  [2, [8, 16]],
  [3, [1, 2, 4, 8]],
  [4, [8, 16]],
  [6, [8, 16]],
];

describe("facts", () => {
  test("size and transparency of images of every colour type", () => {
    for (const [colourType, depths] of FORMS) {
      for (const depth of depths) {
        expect(readPng(pngImage({ width: 300, height: 7, colourType, depth }))).toEqual({
          width: 300,
          height: 7,
          hasAlpha: colourType >= 4,
        });
      }
    }
  });

  test.each([
    [0, 2],
    [2, 6],
  ])("a colour of type %d that stands for nothing is transparency", (colourType, length) => {
    expect(readPng(pngImage({ colourType, before: [chunk("tRNS", zeros(length))] }))).toMatchObject({ hasAlpha: true });
  });

  test("palettes may have transparent entries", () => {
    const before = [chunk("PLTE", zeros(6)), chunk("tRNS", zeros(1))];
    expect(readPng(pngImage({ colourType: 3, before }))).toMatchObject({ hasAlpha: true });
    expect(readPng(pngImage({ colourType: 3, before: before.slice(0, 1) }))).toMatchObject({ hasAlpha: false });
  });

  test("what programs may leave out is passed over, with whatever checksum", () => {
    const text = chunk("tEXt", new TextEncoder().encode("Comment\0sample"));
    text[text.length - 1] = (text[text.length - 1] as number) ^ 1;
    expect(readPng(pngImage({ before: [text, chunk("gAMA", zeros(4))] }))).toMatchObject({ width: 4 });
  });

  test("data in several chunks, and an image that stands in a larger buffer", () => {
    const header = headerChunk({ colourType: 0 });
    const image = pngFile([header, chunk("IDAT", zeros(3)), chunk("IDAT"), chunk("IDAT", zeros(9)), chunk("IEND")]);
    expect(readPng(image)).toEqual({ width: 4, height: 3, hasAlpha: false });
    const larger = new Uint8Array(image.length + 20);
    larger.set(image, 7);
    expect(readPng(larger.subarray(7, 7 + image.length))).toEqual({ width: 4, height: 3, hasAlpha: false });
  });

  test("large images of one colour are small files", () => {
    const size = { width: 4096, height: 4096, colourType: 2 };
    expect(readPng(pngImage(size))).toEqual({ width: 4096, height: 4096, hasAlpha: false });
    expect(readPng(pngImage({ width: 16_384, height: 1, colourType: 0 }))).toMatchObject({ width: 16_384 });
  });

  test("interlaced images of any size", () => {
    for (let width = 1; width < 12; width++) {
      for (let height = 1; height < 12; height++) {
        expect(readPng(pngImage({ width, height, interlace: 1 }))).toEqual({ width, height, hasAlpha: true });
      }
    }
  });
});

describe("faults", () => {
  const image = (options: PngOptions, ...chunks: Uint8Array[]) => pngFile([headerChunk(options), ...chunks]);
  const data = chunk("IDAT", zeros(100));
  const end = chunk("IEND");
  const wrong = (of: Uint8Array) => of.map((byte, index) => (index === of.length - 1 ? byte ^ 1 : byte));
  const cases: [title: string, bytes: Uint8Array, problem: string][] = [
    ["nothing", zeros(0), "is not a PNG image"],
    ["a JPEG", Uint8Array.of(255, 216, 255, 224, 0, 16, 74, 70, 73, 70), "is not a PNG image"],
    ["a signature alone", pngFile([]), "cut off"],
    ["no IHDR", pngFile([data, end]), "IHDR"],
    ["a wrong checksum of IHDR", pngFile([wrong(headerChunk({})), data, end]), "IHDR is wrong"],
    ["no width", image({ width: 0 }, data, end), "width"],
    ["no height", image({ height: 0 }, data, end), "width"],
    ["a width that is none", image({ width: 2 ** 31 }, data, end), "width"],
    ["a bomb", image({ width: 2 ** 31 - 1, height: 2 ** 31 - 1 }, data, end), "larger than 16384"],
    ["one column too many", image({ width: 16_385 }, data, end), "larger than 16384"],
    ["a bomb of few bytes", image({ width: 16_384, height: 16_384 }, data, end), "cannot be those of 16384 x 16384"],
    ["colour type 1", image({ colourType: 1 }, data, end), "colour type"],
    ["colour type 7", image({ colourType: 7 }, data, end), "colour type"],
    ["an unknown interlacing", image({ interlace: 2 }, data, end), "methods"],
    ["no data", image({}, end), "no image data"],
    ["empty data", image({}, chunk("IDAT"), end), "no image data"],
    ["no end", image({}, data), "cut off"],
    ["more behind the end", image({}, data, end, zeros(1)), "behind its end"],
    ["two headers", image({}, headerChunk({}), data, end), "no program knows"],
    ["data in two places", image({}, data, chunk("tEXt", zeros(3)), data, end), "together"],
    ["wrong data", image({}, wrong(data), end), "IDAT is wrong"],
    ["an unknown chunk that is needed", image({}, chunk("ABCD"), data, end), "no program knows"],
    ["a chunk without a name", image({}, chunk("1234"), data, end), "chunks cannot be read"],
    ["no palette", image({ colourType: 3 }, data, end), "no palette"],
    ["half a palette entry", image({ colourType: 3 }, chunk("PLTE", zeros(4)), data, end), "palette"],
    [
      "a palette larger than its depth",
      image({ colourType: 3, depth: 1 }, chunk("PLTE", zeros(9)), data, end),
      "palette",
    ],
    ["a palette in grey", image({ colourType: 0 }, chunk("PLTE", zeros(3)), data, end), "palette"],
    ["transparency where there is alpha", image({}, chunk("tRNS", zeros(2)), data, end), "tRNS"],
    ["transparency of a wrong size", image({ colourType: 0 }, chunk("tRNS", zeros(3)), data, end), "tRNS"],
    ["wrong transparency", image({ colourType: 0 }, wrong(chunk("tRNS", zeros(2))), data, end), "tRNS is wrong"],
    ["transparency behind the data", image({ colourType: 0 }, data, chunk("tRNS", zeros(2)), end), "tRNS"],
  ];
  test.each(cases)("%s", (_title, bytes, problem) => {
    expect(readPng(bytes)).toEqual({ problem: expect.stringContaining(problem) });
  });

  test("a depth that its colour type does not have", () => {
    for (const [colourType, depths] of FORMS) {
      for (let depth = 0; depth < 33; depth++) {
        if (depths.includes(depth)) continue;
        expect(readPng(image({ colourType, depth }, data, end))).toHaveProperty("problem");
      }
    }
  });

  test("every truncation, and every change of a bit outside of what may be left out", () => {
    const whole = pngImage({ colourType: 0, before: [chunk("tRNS", zeros(2))] });
    for (let length = 0; length < whole.length; length++) {
      expect(readPng(whole.subarray(0, length))).toHaveProperty("problem");
    }
    for (let bit = 0; bit < 8 * whole.length; bit++) {
      const changed = whole.slice();
      const at = bit >> 3;
      changed[at] = (changed[at] as number) ^ (1 << (bit & 7));
      // A letter in small makes a chunk one that may be left out.
      const read = readPng(changed);
      if (!("problem" in read)) expect(read).toEqual({ width: 4, height: 3, hasAlpha: false });
    }
  });
});

test("random bytes behind a signature are never more than a fault", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(readPng(pngFile([bytes]))).toHaveProperty("problem");
      expect(readPng(bytes)).toHaveProperty("problem");
    }),
  );
});

test("random changes of images are read or refused", () => {
  const random = seededRandom(1).next;
  const seen = new Set<string>();
  for (let count = 0; count < 10_000; count++) seen.add(fuzzPng(random));
  expect([...seen]).toContain("png: read");
  expect(seen.size).toBeGreaterThan(10);
});
