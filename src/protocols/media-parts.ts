// Which media a request holds, in whichever format: all that have parts name the kind of each by its type. Ollama's has
// pictures beside texts, as base64.

import type { Medium } from "../generation/intake.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

const MEDIUM_OF_TYPE: ReadonlyMap<unknown, Medium> = new Map([
  ["image", "image"],
  ["image_url", "image"],
  ["input_image", "image"],
  ["audio_url", "audio"],
  ["input_audio", "audio"],
  ["video", "video"],
  ["video_url", "video"],
  ["input_video", "video"],
]);

/** Of messages with parts, whose parts may be results of tools with parts of their own. */
const MAX_DEPTH = 3;

const NONE: readonly Medium[] = [];

export function mediaIn({ messages, input, images }: JsonObject): readonly Medium[] {
  const found = new Set<Medium>();
  if (arePictures(images)) found.add("image");
  look(Array.isArray(messages) ? messages : input, MAX_DEPTH, found);
  return found.size === 0 ? NONE : [...found];
}

function look(parts: unknown, depth: number, found: Set<Medium>): void {
  if (!Array.isArray(parts)) return;
  for (const part of parts) {
    if (!isObject(part)) continue;
    const medium = MEDIUM_OF_TYPE.get(part.type);
    if (arePictures(part.images)) found.add("image");
    if (medium !== undefined) found.add(medium);
    else if (depth > 0) look(part.content ?? part.output, depth - 1, found);
  }
}

function arePictures(images: unknown): boolean {
  return Array.isArray(images) && typeof images[0] === "string";
}
