// What the document says of requests for images: valid schemas, which agree with what is read.

import { describe, expect, test } from "bun:test";
import { SchemaChecks } from "../../test/support/openapi.ts";
import { ref } from "../openapi/json-schema.ts";
import { imageModelsThat, rulesOfImageModel } from "../protocols/images/model-rules.ts";
import { readImageRequest } from "../protocols/images/read-request.ts";
import { IMAGE_SCHEMAS } from "./image-schemas.ts";

const checks = new SchemaChecks({ paths: {}, components: { schemas: IMAGE_SCHEMAS, responses: {} } });
const problems = (name: string, value: unknown) => checks.problems(ref(name), value);

function isRead(body: Record<string, unknown>): boolean {
  try {
    readImageRequest(body);
    return true;
  } catch {
    return false;
  }
}

describe("ImageRequest", () => {
  const good = { model: "gpt-image-1", prompt: "a fox" };
  const changes = [
    ...[{}, { model: undefined }, { prompt: null }, { prompt: 1 }, { prompt: "" }, { unknown: {} }],
    ...[{ n: null }, { n: 0 }, { n: 1.5 }, { n: "1" }, { size: 1 }, { size: null }, { quality: 1 }],
    ...[{ stream: "yes" }, { stream: true, partial_images: 2 }, { partial_images: "2" }, { user: 1 }],
    ...[{ background: "transparent" }, { output_format: 1 }, { output_compression: 2.5 }, { moderation: false }],
  ];
  test.each(changes)("agrees with what is read: %j", (change) => {
    const body = JSON.parse(JSON.stringify({ ...good, ...change }));
    expect(problems("ImageRequest", body).length === 0).toBe(isRead(body));
  });

  test("names the sizes of every model", () => {
    const told = JSON.stringify(IMAGE_SCHEMAS.ImageRequest);
    for (const name of imageModelsThat(() => true)) {
      for (const size of rulesOfImageModel(name)?.drawings.images?.sizes ?? []) expect(told).toContain(size);
    }
  });
});

test("forms need their image", () => {
  expect(problems("ImageEditRequest", { prompt: "a hat", image: "" })).toEqual([]);
  expect(problems("ImageEditRequest", { prompt: "a hat", "image[]": ["", ""] })).toEqual([]);
  expect(problems("ImageEditRequest", { prompt: "a hat" })).not.toEqual([]);
  expect(problems("ImageEditRequest", { image: "" })).not.toEqual([]);
  expect(problems("ImageVariationRequest", { image: "", n: 2 })).toEqual([]);
  expect(problems("ImageVariationRequest", {})).not.toEqual([]);
});

test("answers and events", () => {
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
  expect(problems("ImagesResponse", { created: 1, data: [{ url: "https://img.example/1.png" }] })).toEqual([]);
  expect(problems("ImagesResponse", { created: 1, data: [{ b64_json: "aGk=", revised_prompt: "x" }], usage })).toEqual(
    [],
  );
  expect(problems("ImagesResponse", { data: [] })).not.toEqual([]);
  const partial = { type: "image_generation.partial_image", partial_image_index: 0, b64_json: "aGk=", created: 1 };
  expect(problems("ImageEvent", partial)).toEqual([]);
  for (const type of ["image_generation.complete", "image_edit.completed", "image_generation.usage", "done"]) {
    expect(problems("ImageEvent", { type, usage })).toEqual([]);
  }
  expect(problems("ImageEvent", { type: "image.done" })).not.toEqual([]);
});
