// Forms that ask for edits and variations: which models take them, what the files have to be, and every refusal.

import { describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import { chunk, pngImage } from "../../../test/support/png-images.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { ImageForm } from "./check-sources.ts";
import { readImageEditRequest, readImageVariationRequest } from "./read-edit-request.ts";

const square = pngImage({ width: 4, height: 4, colourType: 2 });
const mask = pngImage({ width: 4, height: 4, colourType: 6 });
const wide = pngImage({ width: 8, height: 4 });

type File = ImageForm["files"][number];
const image: File = { name: "image", bytes: square };

function several(count: number): File[] {
  return Array.from({ length: count }, () => ({ name: "image[]", bytes: square }));
}

/** A valid image of just so many bytes: what programs may leave out fills it. */
function ofBytes(length: number): Uint8Array {
  const without = pngImage({ width: 4, height: 4 }).length;
  return pngImage({ width: 4, height: 4, before: [chunk("tEXt", new Uint8Array(length - without - 12))] });
}

function edit(more: JsonObject = {}, files: readonly File[] = [image]) {
  return readImageEditRequest({ value: { prompt: "add a hat", ...more }, files });
}

function vary(more: JsonObject = {}, files: readonly File[] = [image]) {
  return readImageVariationRequest({ value: more, files });
}

function refusal(action: () => unknown) {
  try {
    action();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect([error.status, error.type]).toEqual([400, "invalid_request_error"]);
    return { param: error.param, code: error.code, message: error.message };
  }
  throw new Error("nothing was refused");
}

const EDITORS = ["gpt-image-1", "gpt-image-1-mini", "gpt-image-1.5", "dall-e-2"];
const OTHERS = ["dall-e-3", "nano-banana", "nano-banana-pro"];
const STAND_INS: [string, string][] = [
  ["img-v1", "gpt-image-1"],
  ["img-v1-mini", "gpt-image-1-mini"],
  ["img-v1.5", "gpt-image-1.5"],
  ["img-legacy-2", "dall-e-2"],
];

describe("models", () => {
  test("without one, edits are for gpt-image-1 and variations for dall-e-2", () => {
    const { affinity, ...summary } = edit({ user: "u" });
    expect(summary).toEqual({ model: "gpt-image-1", stream: false, choices: 1, isDefaultModel: true, sources: 1 });
    expect(affinity({ user: "u" })).toBe("u");
    expect(vary()).toMatchObject({ model: "dall-e-2", stream: false, choices: 1, isDefaultModel: true });
  });

  test("edits: those of the table that can, by every name", () => {
    for (const model of EDITORS) expect(edit({ model })).toMatchObject({ model, isDefaultModel: false });
    for (const [model, name] of STAND_INS) expect(edit({ model }).model).toBe(name);
  });

  test.each([...OTHERS, "img-legacy-3", "img-alt", "img-alt-pro", "gemini-2.5-flash-image"])(
    "%s edits nothing and varies nothing",
    (model) => {
      expect(refusal(() => edit({ model }))).toMatchObject({ param: "model", code: "unsupported_model" });
      expect(refusal(() => vary({ model }))).toMatchObject({ param: "model", code: "unsupported_model" });
    },
  );

  test("variations are dall-e-2's alone", () => {
    expect(vary({ model: "img-legacy-2" }).model).toBe("dall-e-2");
    for (const model of EDITORS.slice(0, 3)) {
      expect(refusal(() => vary({ model }))).toEqual({
        param: "model",
        code: "unsupported_model",
        message: `model: ${model} cannot make variations of images; ask dall-e-2.`,
      });
    }
    expect(refusal(() => edit({ model: "dall-e-3" })).message).toBe(
      "model: dall-e-3 cannot edit images; ask dall-e-2, gpt-image-1, gpt-image-1.5 or gpt-image-1-mini.",
    );
  });

  test("models of other names are their backend's affair, but for the files", () => {
    const more = { model: "qwen-image-edit", size: "640x480", n: "40", quality: "best", strength: "0.4" };
    expect(edit(more, several(16))).toMatchObject({ model: "qwen-image-edit", choices: 40 });
    expect(vary(more)).toMatchObject({ model: "qwen-image-edit", choices: 40 });
    expect(refusal(() => edit(more, [{ name: "image", bytes: wide }])).code).toBe("image_not_square");
    expect(refusal(() => edit(more, several(17))).message).toBe("image: an edit takes at most 16 images, got 17.");
  });
});

describe("fields", () => {
  const GPT_SIZES = ["1024x1024", "1536x1024", "1024x1536", "auto"];
  const SQUARES = ["256x256", "512x512", "1024x1024"];
  const all = [...new Set([...GPT_SIZES, ...SQUARES, "1792x1024", "64x64"])];

  function taken(read: (more: JsonObject) => unknown, model: string): string[] {
    return all.filter((size) => {
      try {
        read({ model, size });
        return true;
      } catch {
        expect(refusal(() => read({ model, size })).param).toBe("size");
        return false;
      }
    });
  }

  test("sizes by model", () => {
    for (const model of EDITORS) {
      expect(taken(edit, model).toSorted()).toEqual((model === "dall-e-2" ? SQUARES : GPT_SIZES).toSorted());
    }
    expect(taken(vary, "dall-e-2").toSorted()).toEqual(SQUARES.toSorted());
  });

  test("one to ten images", () => {
    for (const model of EDITORS) {
      for (let n = 1; n <= 10; n++) expect(edit({ model, n: String(n) }).choices).toBe(n);
      for (const n of ["0", "11", "-1", "1.5", "two", "", "1e1", "9".repeat(30)]) {
        expect([n, refusal(() => edit({ model, n })).param]).toEqual([n, "n"]);
      }
    }
    expect(vary({ n: "10" }).choices).toBe(10);
    expect(refusal(() => vary({ n: "11" })).message).toBe("n: dall-e-2 takes an integer from 1 to 10, got 11.");
  });

  test("streams of the gpt-image family", () => {
    expect(edit({ stream: "true", partial_images: "2" }).stream).toBe(true);
    expect(edit({ stream: "false" }).stream).toBe(false);
    expect(refusal(() => edit({ model: "dall-e-2", stream: "true" })).param).toBe("stream");
    expect(refusal(() => edit({ stream: "yes" })).param).toBe("stream");
    expect(refusal(() => edit({ partial_images: "2" })).param).toBe("partial_images");
    expect(edit({ model: "flux", stream: "true" }).stream).toBe(true);
  });

  test("answers as an address or in base64", () => {
    for (const response_format of ["url", "b64_json"]) {
      edit({ model: "dall-e-2", response_format });
      vary({ response_format });
    }
    edit({ response_format: "b64_json" });
    expect(refusal(() => edit({ response_format: "url" })).param).toBe("response_format");
    expect(refusal(() => vary({ response_format: "png" })).param).toBe("response_format");
  });

  test("how true an edit stays to its image is known to all of the family but the small one", () => {
    for (const model of ["gpt-image-1", "gpt-image-1.5"]) edit({ model, input_fidelity: "high" });
    for (const model of ["gpt-image-1-mini", "dall-e-2"]) {
      expect(refusal(() => edit({ model, input_fidelity: "high" })).param).toBe("input_fidelity");
    }
  });

  const cases: [action: () => unknown, param: string, message: string][] = [
    [() => edit({ prompt: undefined }), "prompt", "prompt is required: a text that says what to draw."],
    [() => edit({ prompt: "" }), "prompt", "prompt: must not be empty."],
    [() => edit({ prompt: ["a", "b"] }), "prompt", "prompt: expected a string, got an array."],
    [() => edit({}, [image, { name: "prompt", bytes: square }]), "prompt", "prompt: expected a text, got a file."],
    [() => edit({}, [image, { name: "model", bytes: square }]), "model", "model: expected a text, got a file."],
    [() => vary({}, [image, { name: "n", bytes: square }]), "n", "n: expected a text, got a file."],
    [() => edit({ model: "" }), "model", "model: must not be empty; GET /v1/models lists the models."],
    [() => edit({ model: ["dall-e-2", "flux"] }), "model", "model: expected a string, got an array."],
    [() => edit({ n: ["1", "2"] }), "n", "n: expected an integer, got an array."],
    [() => edit({ size: ["auto", "auto"] }), "size", "size: expected a string, got an array."],
    [() => vary({ user: ["a", "b"] }), "user", "user: expected a string, got an array."],
    [() => edit({}, []), "image", "image is required: a square PNG file of less than 4 MB."],
    [
      () => vary({}, [{ name: "picture", bytes: square }]),
      "image",
      "image is required: a square PNG file of less than 4 MB.",
    ],
    [() => edit({ image: "file-1" }, []), "image", "image: expected a file, got a text."],
    [() => edit({ "image[]": "file-1" }), "image", "image: expected a file, got a text."],
    [() => edit({ mask: "file-1" }), "mask", "mask: expected a file, got a text."],
    [() => edit({ model: "dall-e-2" }, several(2)), "image", "image: dall-e-2 takes one image, got 2."],
    [() => vary({}, [image, image]), "image", "image: dall-e-2 takes one image, got 2."],
    [() => vary({}, several(1)), "image", "image: dall-e-2 takes one image, in a field of the name image."],
    [() => edit({}, several(17)), "image", "image: gpt-image-1 takes at most 16 images, got 17."],
    [
      () => edit({}, [image, { name: "mask", bytes: mask }, { name: "mask", bytes: mask }]),
      "mask",
      "mask: expected one file, got 2.",
    ],
  ];
  test.each(cases)("%# is refused at %s", (action, param, message) => {
    expect(refusal(action)).toMatchObject({ param, message });
  });
});

describe("files", () => {
  test("several images with a mask for the first one", () => {
    const first = { name: "image[]", bytes: pngImage({ width: 5, height: 5 }) };
    const forFirst = { name: "mask", bytes: pngImage({ width: 5, height: 5 }) };
    expect(edit({}, [first, ...several(15), forFirst]).sources).toBe(16);
    expect(refusal(() => edit({}, [...several(2), first, forFirst])).code).toBe("dimension_mismatch");
  });

  test("the largest image has one byte less than 4 MB", () => {
    const limit = 4 * 1024 * 1024;
    const ofLimit = ofBytes(limit);
    expect(ofLimit.length).toBe(limit);
    expect(edit({}, [{ name: "image", bytes: ofBytes(limit - 1) }]).model).toBe("gpt-image-1");
    for (const length of [limit, limit + 1]) {
      expect(refusal(() => vary({}, [{ name: "image", bytes: ofBytes(length) }]))).toEqual({
        param: "image",
        code: "image_too_large",
        message: `image: has ${length} bytes; an image must have less than 4194304 (4 MB).`,
      });
    }
    const files = [image, { name: "mask", bytes: ofLimit }];
    expect(refusal(() => edit({}, files))).toMatchObject({ param: "mask", code: "image_too_large" });
  });

  test("every image is looked at", () => {
    const bad = (bytes: Uint8Array) => refusal(() => edit({}, [...several(2), { name: "image[]", bytes }]));
    expect(bad(wide)).toEqual({
      param: "image",
      code: "image_not_square",
      message: "image: file 3 is 8x4; an image must be square.",
    });
    expect(bad(new Uint8Array(5))).toEqual({
      param: "image",
      code: "invalid_image",
      message: "image: file 3 is not a PNG image.",
    });
  });

  const bomb = pngImage({ width: 16_384, height: 16_384, rows: new Uint8Array(10) });
  const jpeg = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 0, 16, 74, 70, 73, 70);
  const cases: [what: string, bytes: Uint8Array, code: string][] = [
    ["nothing", new Uint8Array(0), "invalid_image"],
    ["a JPEG image", jpeg, "invalid_image"],
    ["a text", new TextEncoder().encode("not an image"), "invalid_image"],
    ["an image that is cut off", square.subarray(0, square.length - 5), "invalid_image"],
    ["more behind the end", Buffer.concat([square, deflateSync("more")]), "invalid_image"],
    ["a bomb", bomb, "invalid_image"],
    ["a wide image", wide, "image_not_square"],
  ];
  test.each(cases)("%s is refused as an image", (_, bytes, code) => {
    expect(refusal(() => edit({}, [{ name: "image", bytes }]))).toMatchObject({ param: "image", code });
    expect(refusal(() => vary({}, [{ name: "image", bytes }]))).toMatchObject({ param: "image", code });
  });

  const masks: [what: string, bytes: Uint8Array, code: string, message: string][] = [
    ["of another size", wide, "dimension_mismatch", "mask: is 8x4, but the image is 4x4; both must be of one size."],
    [
      "without alpha",
      square,
      "mask_without_alpha",
      "mask: has no alpha channel; what is to be edited has to be transparent in it.",
    ],
    ["that is no image", jpeg, "invalid_image", "mask: is not a PNG image."],
    ["that is cut off", mask.subarray(0, 40), "invalid_image", "mask: is a PNG image that is cut off."],
  ];
  test.each(masks)("a mask %s is refused", (_, bytes, code, message) => {
    expect(refusal(() => edit({}, [image, { name: "mask", bytes }]))).toEqual({ param: "mask", code, message });
  });
});
