// POST /v1/images/generations of the demo backend: the prompt's first words as a small picture, whole or streamed.

import type { DemoContext } from "./answer.ts";
import { pacedEventStream } from "./paced-stream.ts";
import { drawPicture } from "./picture.ts";
import { type ImageRequest, imageRequestSchema, invalidField, readRequest } from "./requests.ts";
import { countTokens, splitTokens } from "./tokens.ts";

const DEFAULT_SIDE = 512;
const LEAST_SIDE = 16;
/** The longest side that a model of the public API draws. */
const LONGEST_SIDE = 1792;
/** So many dots are counted as one token. */
const DOTS_PER_TOKEN = 32 * 32;

interface Wish {
  prompt: string;
  width: number;
  height: number;
}

export async function answerImages(request: Request, { clock, wordDelayMs }: DemoContext): Promise<Response> {
  const body = await readRequest(request, imageRequestSchema);
  const wish = { prompt: body.prompt, ...readSize(body.size) };
  const images = body.n ?? 1;
  const created = Math.floor(clock.wallTime() / 1_000);
  if (body.stream === true) {
    const steps = eventSteps(wish, images, body.partial_images ?? 0, created);
    return new Response(pacedEventStream(steps, { delayMs: wordDelayMs, signal: request.signal }), {
      headers: { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" },
    });
  }
  const data = Array.from({ length: images }, (_, index) => shown(draw(wish, index), body.response_format));
  return Response.json({ created, data, usage: countsOf(wish, images, true) });
}

function readSize(size: string | null | undefined): { width: number; height: number } {
  if (size === undefined || size === null || size === "auto") return { width: DEFAULT_SIDE, height: DEFAULT_SIDE };
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number);
  if (Math.min(width, height) < LEAST_SIDE || Math.max(width, height) > LONGEST_SIDE) {
    throw invalidField("size", `expected auto or <width>x<height>, each from ${LEAST_SIDE} to ${LONGEST_SIDE}`);
  }
  return { width, height };
}

function shown(base64: string, format: ImageRequest["response_format"]): object {
  return format === "b64_json" ? { b64_json: base64 } : { url: `data:image/png;base64,${base64}` };
}

function draw({ prompt, width, height }: Wish, index: number, text = prompt): string {
  const variant = Bun.hash.crc32(prompt) + index;
  return Buffer.from(drawPicture({ width, height, text, variant })).toString("base64");
}

/** Image by image: the first words, more of them, and all. */
function* eventSteps(wish: Wish, images: number, partials: number, created: number): Generator<string, void> {
  const { prompt, width, height } = wish;
  const about = {
    ...{ created_at: created, size: `${width}x${height}`, quality: "low", background: "opaque", output_format: "png" },
  };
  const event = (type: string, b64_json: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, b64_json, ...about, ...more })}\n\n`;
  const tokens = splitTokens(prompt.slice(0, 1_000));
  for (let index = 0; index < images; index++) {
    for (let partial = 0; partial < partials; partial++) {
      const words = tokens.slice(0, Math.ceil((tokens.length * (partial + 1)) / (partials + 1))).join("");
      yield event("image_generation.partial_image", draw(wish, index, words), { partial_image_index: partial });
    }
    const usage = countsOf(wish, 1, index === 0);
    yield event("image_generation.completed", draw(wish, index), { usage });
  }
}

/** @param withPrompt - of several images in a stream the first counts what all were asked with */
function countsOf({ prompt, width, height }: Wish, images: number, withPrompt: boolean): object {
  const input = withPrompt ? countTokens(prompt) : 0;
  const output = images * Math.ceil((width * height) / DOTS_PER_TOKEN);
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens_details: { text_tokens: 0, image_tokens: output },
  };
}
