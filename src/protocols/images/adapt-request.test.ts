// Bodies for the model that is really asked: qualities in its words, stand-ins asked only for what they can do.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { adaptImageBody } from "./adapt-request.ts";
import { checkImageValues, formValues } from "./check-values.ts";
import { rulesOfImageModel } from "./model-rules.ts";
import { readImageRequest } from "./read-request.ts";

function adapt(value: JsonObject, model: string, askedModel = model) {
  return adaptImageBody("images", value, { model, askedModel });
}

function refusedAt(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect([error.status, error.type]).toEqual([400, "invalid_request_error"]);
    return error.param;
  }
  throw new Error("nothing was refused");
}

describe("the model that was named", () => {
  const cases: [model: string, quality: string, sent: string | undefined][] = [
    ...["gpt-image-1", "img-v1.5", "gpt-image-1-mini"].flatMap((model): [string, string, string][] => [
      [model, "standard", "medium"],
      [model, "hd", "high"],
      [model, "low", "low"],
      [model, "medium", "medium"],
      [model, "high", "high"],
      [model, "auto", "auto"],
    ]),
    ["dall-e-3", "low", "standard"],
    ["dall-e-3", "medium", "standard"],
    ["img-legacy-3", "auto", "standard"],
    ["dall-e-3", "standard", "standard"],
    ["dall-e-3", "high", "hd"],
    ["dall-e-3", "hd", "hd"],
    ["dall-e-2", "standard", "standard"],
    ["dall-e-2", "auto", undefined],
    ["nano-banana", "hd", undefined],
    ["gemini-3-pro-image", "low", undefined],
    ["flux", "ultra", "ultra"],
  ];
  test.each(cases)("%s asked for quality %s gets %p", (model, quality, sent) => {
    const adapted = adapt({ quality, size: "1024x1024" }, model);
    if (quality === sent) expect(adapted).toBeUndefined();
    else expect(adapted?.members).toEqual({ quality: sent });
  });

  test("b64_json is not sent to a gpt-image model, which refuses to be asked for it", () => {
    expect(adapt({ response_format: "b64_json" }, "gpt-image-1")).toEqual({ members: { response_format: undefined } });
    expect(adapt({ response_format: "b64_json" }, "dall-e-3")).toBeUndefined();
  });

  test.each(["dall-e-2", "dall-e-3", "gpt-image-1", "nano-banana", "flux"])("%s gets all else as it is", (model) => {
    const body = { prompt: "x", size: "1024x1024", n: 1, stream: false, style: null, quality: null, seed: 1 };
    expect(adapt(body, model)).toBeUndefined();
  });

  test("another spelling of it is no stand-in", () => {
    expect(adapt({ moderation: "low" }, "img-v1", "gpt-image-1")).toBeUndefined();
    expect(adapt({ partial_images: 0 }, "gemini-2.5-flash-image", "img-alt")).toBeUndefined();
  });
});

describe("a stand-in", () => {
  test("of a gpt-image model is asked for base64, which clients of such a model read", () => {
    for (const model of ["dall-e-2", "dall-e-3", "nano-banana", "flux"]) {
      expect(adapt({}, model, "gpt-image-1")).toEqual({ members: { response_format: "b64_json" } });
      expect(adapt({ response_format: "b64_json" }, model, "gpt-image-1")).toBeUndefined();
    }
    expect(adapt({}, "gpt-image-1-mini", "gpt-image-1")).toBeUndefined();
    expect(adapt({}, "dall-e-2", "dall-e-3")).toBeUndefined();
  });

  test("that cannot stream is asked for the whole picture", () => {
    expect(adapt({ stream: true, partial_images: 2, response_format: "b64_json" }, "dall-e-3", "gpt-image-1")).toEqual({
      members: { stream: undefined, partial_images: undefined },
      lost: ["partial_images"],
    });
    expect(adapt({ stream: true, partial_images: 2 }, "gpt-image-1.5", "gpt-image-1")).toBeUndefined();
    expect(adapt({ stream: true, response_format: "b64_json" }, "flux", "gpt-image-1")).toBeUndefined();
  });

  test("is not asked for what it does anyway, and nothing is lost by that", () => {
    const value = {
      size: "auto",
      background: "opaque",
      output_format: "png",
      output_compression: 100,
      moderation: "auto",
      quality: "auto",
    };
    expect(adapt(value, "dall-e-2", "gpt-image-1")).toEqual({
      members: {
        response_format: "b64_json",
        ...{ size: undefined, background: undefined, output_format: undefined, output_compression: undefined },
        ...{ moderation: undefined, quality: undefined },
      },
    });
    expect(adapt({ size: "auto" }, "nano-banana", "gpt-image-1")?.members).toEqual({ response_format: "b64_json" });
  });

  test("loses what hardly changes the picture, and that is told", () => {
    expect(adapt({ moderation: "low", quality: "high", response_format: "url" }, "dall-e-2", "flux")).toEqual({
      members: { moderation: undefined, quality: undefined },
      lost: ["moderation", "quality"],
    });
  });

  test("is asked for a quality in its own words", () => {
    expect(adapt({ quality: "hd" }, "gpt-image-1", "dall-e-3")).toEqual({ members: { quality: "high" } });
    expect(adapt({ quality: "high", response_format: "url" }, "dall-e-3", "gpt-image-1")?.members.quality).toBe("hd");
  });

  const refused: [value: JsonObject, model: string, askedModel: string, param: string][] = [
    [{ size: "1536x1024" }, "dall-e-3", "gpt-image-1", "size"],
    [{ size: "256x256" }, "gpt-image-1", "dall-e-2", "size"],
    [{ size: "4096x4096" }, "nano-banana", "nano-banana-pro", "size"],
    [{ size: "640x480" }, "dall-e-2", "flux", "size"],
    [{ n: 2 }, "dall-e-3", "dall-e-2", "n"],
    [{ n: 5 }, "nano-banana", "dall-e-2", "n"],
    [{ background: "transparent" }, "dall-e-3", "gpt-image-1", "background"],
    [{ output_format: "webp" }, "dall-e-2", "gpt-image-1", "output_format"],
    [{ output_format: "jpeg", output_compression: 40 }, "nano-banana", "gpt-image-1", "output_format"],
    [{ response_format: "url" }, "gpt-image-1", "dall-e-3", "response_format"],
    [{ style: "vivid" }, "gpt-image-1", "dall-e-3", "style"],
    [{ style: "natural" }, "dall-e-2", "dall-e-3", "style"],
  ];
  test.each(refused)("refuses %j as %s for %s, at %s", (value, model, askedModel, param) => {
    expect(refusedAt(() => adapt(value, model, askedModel))).toBe(param);
  });

  test("that cannot edit or vary is named as the fault", () => {
    for (const model of ["dall-e-3", "nano-banana", "nano-banana-pro"]) {
      const target = { model, askedModel: "gpt-image-1" };
      expect(refusedAt(() => adaptImageBody("image-edits", {}, target))).toBe("model");
    }
    const target = { model: "gpt-image-1", askedModel: "dall-e-2" };
    expect(refusedAt(() => adaptImageBody("image-variations", {}, target))).toBe("model");
  });

  test("takes no more source images than it knows", () => {
    const target = { model: "dall-e-2", askedModel: "gpt-image-1", sources: 2 };
    expect(refusedAt(() => adaptImageBody("image-edits", {}, target))).toBe("image");
    expect(adaptImageBody("image-edits", {}, { ...target, sources: 1 })?.members).toEqual({
      response_format: "b64_json",
    });
  });
});

test("fields of a form are read as what they say", () => {
  const target = { model: "gpt-image-1", askedModel: "dall-e-2" };
  expect(adaptImageBody("image-edits", { n: "10", size: "1024x1024" }, target)).toBeUndefined();
  for (const n of ["11", "0", "two", "1.5", ""]) {
    expect(refusedAt(() => adaptImageBody("image-edits", { n }, target))).toBe("n");
  }
  const streamed = { stream: "true", partial_images: "1", output_compression: "100", response_format: "b64_json" };
  expect(adaptImageBody("image-edits", streamed, { model: "dall-e-2", askedModel: "gpt-image-1" })).toEqual({
    members: { partial_images: undefined, output_compression: undefined, stream: undefined },
    lost: ["partial_images"],
  });
});

const MODELS = [
  "dall-e-2",
  "dall-e-3",
  "gpt-image-1",
  "gpt-image-1.5",
  "gpt-image-1-mini",
  "nano-banana",
  "img-alt-pro",
];
const FIELDS: Record<string, unknown[]> = {
  size: ["auto", "256x256", "1024x1024", "1536x1024", "1792x1024", "2048x2048", "x", 5],
  n: [1, 2, 4, 5, 10, 11, "2", null],
  quality: ["standard", "hd", "low", "medium", "high", "auto", "ultra", 1, null],
  style: ["vivid", "bold"],
  response_format: ["url", "b64_json", "json", null],
  output_format: ["png", "jpeg", "webp", "gif"],
  output_compression: [0, 100, 101, "100"],
  background: ["transparent", "opaque", "auto", "red"],
  moderation: ["low", "auto", "high"],
  input_fidelity: ["low", "high", 2],
  stream: [true, false],
  partial_images: [0, 1, 3, 4, "0"],
};
/** Of few fields, so that many of them can be drawn. */
const bodies = fc
  .array(
    fc.oneof(
      ...Object.entries(FIELDS).map(([field, values]) => fc.tuple(fc.constant(field), fc.constantFrom(...values))),
    ),
    {
      maxLength: 5,
    },
  )
  .map((members): JsonObject => Object.fromEntries(members));
const model = fc.constantFrom(...MODELS);
const asked = fc.constantFrom(...MODELS, "flux");

/** Undefined where it is refused, which has to be a 400 that names a field. */
function unlessRefused<Result>(action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect([error.status, typeof error.param]).toEqual([400, "string"]);
    return undefined;
  }
}

test("no adapted body is refused by the rules of the model that gets it", () => {
  let drawn = 0;
  const property = fc.property(bodies, model, asked, (more, model, askedModel) => {
    const body: JsonObject = { prompt: "a fox", ...more };
    const adapted = unlessRefused(() => {
      readImageRequest({ ...body, model: askedModel });
      return { ...body, ...adapt(body, model, askedModel)?.members };
    });
    if (adapted === undefined) return;
    readImageRequest({ ...adapted, model });
    // Nothing is left to change, whichever model is taken for the one that was named.
    expect(adapt(adapted, model)).toBeUndefined();
    drawn++;
  });
  fc.assert(property, { numRuns: 3000, seed: 13 });
  expect(drawn).toBeGreaterThan(500);
});

test("nor is an adapted form", () => {
  let edited = 0;
  const property = fc.property(bodies, model, asked, (more, model, askedModel) => {
    const form = Object.fromEntries(
      Object.entries(more).flatMap(([field, value]) => (value === null ? [] : [[field, String(value)]])),
    );
    const [rules, askedRules] = [rulesOfImageModel(model), rulesOfImageModel(askedModel)];
    const adapted = unlessRefused((): JsonObject => {
      if (askedRules !== undefined) checkImageValues(askedRules, "image-edits", formValues(form));
      return { ...form, ...adaptImageBody("image-edits", form, { model, askedModel })?.members };
    });
    if (adapted === undefined) return;
    if (rules !== undefined) checkImageValues(rules, "image-edits", formValues(adapted));
    for (const value of Object.values(adapted)) expect(["string", "undefined"]).toContain(typeof value);
    edited++;
  });
  fc.assert(property, { numRuns: 3000, seed: 31 });
  expect(edited).toBeGreaterThan(200);
});
