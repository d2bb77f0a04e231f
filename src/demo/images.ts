// POST /v1/images/generations of the demo backend: the same picture for every prompt, whole or streamed.

import type { DemoContext } from "./answer.ts";
import { pacedEventStream } from "./paced-stream.ts";
import { imageRequestSchema, readRequest } from "./requests.ts";
import { countTokens } from "./tokens.ts";

/** A signal: PNG, 64 x 64 dots in two colours. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEUUMkrysTR4QmYPAAAATklEQVR42mNgoAuQ/wFl1P+D0Iz//zeAGcz//x8AM9j" +
  "//3+AyuD///8DRPf//z9wMOz///9DAQOPyXDbMR0GdzPcF3B/IXzK/mA4MAgBAHtmXh5lno0wAAAAAElFTkSuQmCC";
const SIZE = "64x64";
const TOKENS_PER_PICTURE = 4;

export async function answerImages(request: Request, { clock, wordDelayMs }: DemoContext): Promise<Response> {
  const { prompt, n, stream, partial_images, response_format } = await readRequest(request, imageRequestSchema);
  const images = n ?? 1;
  const created = Math.floor(clock.wallTime() / 1_000);
  if (stream === true) {
    const steps = eventSteps(prompt, images, partial_images ?? 0, created);
    return new Response(pacedEventStream(steps, { delayMs: wordDelayMs, signal: request.signal }), {
      headers: { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache" },
    });
  }
  const shown = response_format === "b64_json" ? { b64_json: PICTURE } : { url: `data:image/png;base64,${PICTURE}` };
  return Response.json({ created, data: Array<object>(images).fill(shown), usage: countsOf(prompt, images) });
}

function* eventSteps(prompt: string, images: number, partials: number, created: number): Generator<string, void> {
  const about = { b64_json: PICTURE, created_at: created, size: SIZE, quality: "low", background: "opaque" };
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...about, output_format: "png", ...more })}\n\n`;
  for (let index = 0; index < images; index++) {
    for (let partial = 0; partial < partials; partial++) {
      yield event("image_generation.partial_image", { partial_image_index: partial });
    }
    // Of several images the first counts what all were asked with.
    yield event("image_generation.completed", { usage: countsOf(index === 0 ? prompt : "", 1) });
  }
}

function countsOf(prompt: string, images: number): object {
  const input = countTokens(prompt);
  const output = images * TOKENS_PER_PICTURE;
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens_details: { text_tokens: 0, image_tokens: output },
  };
}
