// Requests for images, and what answers them, as JSON Schema. What holds for single models stands in words: any other
// model may take more.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import {
  anyObject,
  count,
  described,
  flag,
  integer,
  lenientRequest,
  list,
  oneOfTexts,
  open,
  orNull,
  type Properties,
  type Schemas,
  text,
  unixTime,
} from "../openapi/json-schema.ts";

const filledText: JsonSchema = { type: "string", minLength: 1 };
/** A file in a form. */
const png: JsonSchema = { type: "string", contentMediaType: "image/png" };
const source = described(png, "A square PNG file of less than 4 MB.");

const model = described(filledText, "Id of a model, see GET /v1/models.");
const prompt = described(filledText, "What to draw.");
const amount: JsonSchema = { type: "integer", minimum: 1 };
const stream = described(flag, "Answer with an event stream; of the models of the table gpt-image only.");
const responseFormat = described(text, "url or b64_json; gpt-image models always answer in b64_json.");

/** Properties that requests and edits share. */
const drawing: Properties = {
  size: described(
    text,
    "Width and height such as 1024x1024, or auto. dall-e-2: 256x256, 512x512, 1024x1024. dall-e-3: 1024x1024, " +
      "1792x1024, 1024x1792. gpt-image-1, gpt-image-1.5, gpt-image-1-mini: 1024x1024, 1536x1024, 1024x1536, auto. " +
      "nano-banana: 256x256, 512x512, 1024x1024, 1536x1024, 1024x1536, 1024x1792, 1792x1024, auto; nano-banana-pro " +
      "also 2048x2048, 4096x4096.",
  ),
  quality: described(
    text,
    "gpt-image: low, medium, high, auto; standard and hd stand for medium and high. dall-e-3: standard, hd; high " +
      "stands for hd, and low, medium and auto for standard. nano-banana: ignored.",
  ),
  response_format: responseFormat,
  output_format: described(text, "gpt-image only: png, jpeg, webp."),
  output_compression: described(integer, "gpt-image only: 0 to 100, with jpeg and webp."),
  background: described(text, "gpt-image only: transparent, opaque, auto; transparent needs png or webp."),
  moderation: described(text, "gpt-image only: low, auto."),
  stream,
  partial_images: described(integer, "gpt-image only, in streams: 0 to 3."),
  user: text,
};

export const IMAGE_SCHEMAS: Schemas = {
  ImageRequest: lenientRequest(
    { model, prompt },
    {
      ...drawing,
      n: described(amount, "How many images. dall-e-2: 1 to 10. dall-e-3, gpt-image: 1. nano-banana: 1 to 4."),
      style: described(text, "dall-e-3 only: vivid, natural."),
    },
  ),
  // Fields of a form are never null.
  ImageEditRequest: {
    ...open(
      { prompt },
      {
        ...drawing,
        image: source,
        "image[]": described(list(png), "Up to 16 such files, gpt-image only."),
        mask: described(
          png,
          "As large as the first image, with an alpha channel; what is transparent in it is edited.",
        ),
        model: described(filledText, "gpt-image-1 where left out. dall-e-3 and nano-banana models cannot edit."),
        n: described(amount, "How many images: 1 to 10."),
        input_fidelity: described(text, "gpt-image-1, gpt-image-1.5: low, high."),
      },
    ),
    anyOf: [{ required: ["image"] }, { required: ["image[]"] }],
  },
  ImageVariationRequest: open(
    { image: source },
    {
      model: described(filledText, "dall-e-2 where left out, the only one of the table that can."),
      n: described(amount, "How many images: 1 to 10."),
      size: described(text, "256x256, 512x512, 1024x1024."),
      response_format: responseFormat,
      user: text,
    },
  ),
  ImagesResponse: open(
    {
      created: unixTime,
      data: list(open({}, { url: orNull(text), b64_json: orNull(text), revised_prompt: orNull(text) })),
    },
    {
      background: orNull(text),
      output_format: orNull(text),
      quality: orNull(text),
      size: orNull(text),
      usage: orNull(open({}, { input_tokens: count, output_tokens: count, total_tokens: count })),
    },
  ),
  ImageEvent: open(
    {
      type: oneOfTexts(
        ...["image_generation", "image_edit"].flatMap((prefix) =>
          ["partial_image", "complete", "completed", "usage"].map((kind) => `${prefix}.${kind}`),
        ),
        "done",
        "error",
      ),
    },
    {
      partial_image_index: count,
      b64_json: text,
      created: unixTime,
      created_at: unixTime,
      usage: orNull(open({}, { input_tokens: count, output_tokens: count })),
      error: anyObject,
    },
  ),
};
