// Requests for images: the table of the specification row by row, and every refusal with the field that it names.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { spellingsOfModel } from "../../names.ts";
import { readImageRequest } from "./read-request.ts";

const GPT = ["gpt-image-1", "gpt-image-1.5", "gpt-image-1-mini"] as const;
const GPT_SIZES = ["1024x1024", "1536x1024", "1024x1536", "auto"];
const SQUARES = ["256x256", "512x512", "1024x1024"];
const NANO = [...SQUARES, "1536x1024", "1024x1536", "1024x1792", "1792x1024", "auto"];
const SIZES = [...NANO, "2048x2048", "4096x4096", "640x480", "1024X1024", "", "1x1"];
const QUALITIES = ["standard", "hd", "low", "medium", "high", "auto"];

const TABLE = [
  { model: "dall-e-2", sizes: SQUARES, most: 10, qualities: ["standard", "auto"] },
  { model: "dall-e-3", sizes: ["1024x1024", "1792x1024", "1024x1792"], most: 1, qualities: QUALITIES },
  ...GPT.map((model) => ({ model, sizes: GPT_SIZES, most: 1, qualities: QUALITIES })),
  { model: "nano-banana", sizes: NANO, most: 4, qualities: [...QUALITIES, "ultra"] },
  { model: "nano-banana-pro", sizes: [...NANO, "2048x2048", "4096x4096"], most: 4, qualities: [...QUALITIES, "ultra"] },
] as const;

function read(more: JsonObject) {
  return readImageRequest({ prompt: "a red fox", ...more });
}

/** What was refused; undefined when nothing was. */
function refusal(more: JsonObject): { param: string | undefined; message: string } | undefined {
  try {
    read(more);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect([error.status, error.type]).toEqual([400, "invalid_request_error"]);
    return { param: error.param, message: error.message };
  }
  return undefined;
}

describe.each(TABLE)("$model", ({ model, sizes, most, qualities }) => {
  test("is known by every spelling, and named by one", () => {
    for (const spelling of spellingsOfModel(model)) expect(read({ model: spelling }).model).toBe(model);
  });

  test("takes its sizes alone, and says which", () => {
    const taken = SIZES.filter((size) => refusal({ model, size }) === undefined);
    expect(taken.toSorted()).toEqual([...sizes].toSorted());
    const refused = refusal({ model, size: "640x480" });
    expect(refused?.param).toBe("size");
    for (const size of sizes) expect(refused?.message).toContain(size);
  });

  test("takes as many images as it draws at once", () => {
    for (let n = 1; n <= most; n++) expect(read({ model, n }).choices).toBe(n);
    for (const n of [0, -1, most + 1, 1.5, "1", true]) expect([n, refusal({ model, n })?.param]).toEqual([n, "n"]);
    expect(refusal({ model, n: most + 1 })?.message).toContain(most === 1 ? "only 1" : `from 1 to ${most}`);
  });

  test("takes its qualities", () => {
    const asked = [...QUALITIES, "ultra"];
    const taken = asked.filter((quality) => refusal({ model, quality }) === undefined);
    expect(taken.toSorted()).toEqual([...qualities].toSorted());
    expect(refusal({ model, quality: 3 })?.param).toBe("quality");
  });

  test("takes a style if it has one", () => {
    const isStyled = model === "dall-e-3";
    for (const style of ["vivid", "natural"]) {
      expect(refusal({ model, style })?.param).toBe(isStyled ? undefined : "style");
    }
    expect(refusal({ model, style: "bold" })?.param).toBe("style");
  });

  test("knows what only the gpt-image family knows, or refuses it", () => {
    const expected = model.startsWith("gpt-image") ? undefined : "refused";
    const cases: [string, JsonObject][] = [
      ["output_format", { output_format: "png" }],
      ["output_format", { output_format: "webp" }],
      ["output_compression", { output_compression: 0, output_format: "jpeg" }],
      ["output_compression", { output_compression: 100 }],
      ["background", { background: "transparent" }],
      ["background", { background: "transparent", output_format: "webp" }],
      ["background", { background: "auto", output_format: "jpeg" }],
      ["moderation", { moderation: "low" }],
      ["stream", { stream: true }],
      ["partial_images", { stream: true, partial_images: 3 }],
    ];
    for (const [field, more] of cases) {
      const refused = refusal({ model, ...more });
      expect([field, refused && "refused"]).toEqual([field, expected as undefined]);
      if (refused !== undefined)
        expect(refused.message).toContain("ask gpt-image-1, gpt-image-1.5 or gpt-image-1-mini");
    }
    expect(refusal({ model, stream: false, partial_images: 0 })).toBeUndefined();
  });

  test("answers in the forms it can", () => {
    expect(refusal({ model, response_format: "b64_json" })).toBeUndefined();
    expect(refusal({ model, response_format: "url" })?.param).toBe(
      model.startsWith("gpt-image") ? "response_format" : undefined,
    );
    expect(refusal({ model, response_format: "json" })?.param).toBe("response_format");
  });

  test("nulls count as left out, unknown fields pass", () => {
    const nulls = { size: null, n: null, quality: null, style: null, background: null, stream: null, user: null };
    const summary = read({ model, ...nulls, output_compression: null, partial_images: null, seed: 5 });
    expect({ ...summary, affinity: summary.affinity({ user: "u" }) }).toEqual({
      model,
      stream: false,
      choices: 1,
      affinity: "u",
    });
  });
});

describe("what is refused, in which words", () => {
  const mini = { model: "gpt-image-1-mini" };
  const cases: [more: JsonObject, param: string, message: string][] = [
    [{}, "model", "model is required: the id of a model, see GET /v1/models."],
    [{ model: 3 }, "model", "model: expected a string, got a number."],
    [{ model: "x", prompt: undefined }, "prompt", "prompt is required: a text that says what to draw."],
    [{ model: "x", prompt: null }, "prompt", "prompt is required: a text that says what to draw."],
    [{ model: "x", prompt: ["a"] }, "prompt", "prompt: expected a string, got an array."],
    [{ model: "x", prompt: " \n" }, "prompt", "prompt: must not be empty."],
    [{ model: "x", stream: "true" }, "stream", "stream: expected true or false, got a string."],
    [{ model: "x", user: 5 }, "user", "user: expected a string, got a number."],
    [{ model: "dall-e-2", size: 5 }, "size", "size: expected a string, got a number."],
    [
      { model: "img-legacy-2", size: "auto" },
      "size",
      'size: dall-e-2 takes 256x256, 512x512 or 1024x1024, got "auto".',
    ],
    [{ model: "dall-e-3", n: 2 }, "n", "n: dall-e-3 takes only 1, got 2."],
    [{ model: "img-alt", n: 5 }, "n", "n: nano-banana takes an integer from 1 to 4, got 5."],
    [{ model: "dall-e-2", quality: "hd" }, "quality", 'quality: dall-e-2 takes standard or auto, got "hd".'],
    [{ ...mini, style: "vivid" }, "style", "style: gpt-image-1-mini takes no style; leave it out, or ask dall-e-3."],
    [
      { ...mini, response_format: "url" },
      "response_format",
      'response_format: gpt-image-1-mini takes b64_json, got "url".',
    ],
    [
      { ...mini, output_format: "gif" },
      "output_format",
      'output_format: gpt-image-1-mini takes png, jpeg or webp, got "gif".',
    ],
    [
      { ...mini, background: "transparent", output_format: "jpeg" },
      "background",
      "background: transparent needs the output_format png or webp, got jpeg.",
    ],
    [
      { ...mini, output_compression: 99 },
      "output_compression",
      "output_compression: needs the output_format jpeg or webp; png is never compressed with loss.",
    ],
    [
      { ...mini, output_compression: 101, output_format: "webp" },
      "output_compression",
      "output_compression: gpt-image-1-mini takes an integer from 0 to 100, got 101.",
    ],
    [{ ...mini, partial_images: 1 }, "partial_images", "partial_images: above 0 needs stream to be true."],
    [
      { ...mini, partial_images: 4, stream: true },
      "partial_images",
      "partial_images: gpt-image-1-mini takes an integer from 0 to 3, got 4.",
    ],
    [
      { model: "dall-e-3", stream: true },
      "stream",
      "stream: dall-e-3 takes no stream: true; leave it out, or ask gpt-image-1, gpt-image-1.5 or gpt-image-1-mini.",
    ],
    [
      { ...mini, size: "9".repeat(5000) },
      "size",
      `size: gpt-image-1-mini takes 1024x1024, 1536x1024, 1024x1536 or auto, got "${"9".repeat(40)}…".`,
    ],
  ];
  test.each(cases)("%j at %s", (more, param, message) => {
    expect(refusal(more)).toEqual({ param, message });
  });
});

test("what a model outside of the table takes is for its backend to say", () => {
  const model = "flux-dev";
  const more = { size: "640x480", n: 40, quality: "best", style: "oil", output_format: "gif", partial_images: 9 };
  expect(read({ model, stream: true, ...more })).toMatchObject({ model, stream: true, choices: 40 });
  expect(read({ model, n: "many", size: 5, output_compression: "x" })).toMatchObject({ model, choices: 1 });
});
