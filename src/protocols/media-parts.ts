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

export function mediaIn({ messages, input, images, contents }: JsonObject): readonly Medium[] {
  const found = new Set<Medium>();
  if (arePictures(images)) found.add("image");
  look(Array.isArray(messages) ? messages : (input ?? contents), MAX_DEPTH, found);
  return found.size === 0 ? NONE : [...found];
}

function look(parts: unknown, depth: number, found: Set<Medium>): void {
  if (!Array.isArray(parts)) return;
  for (const part of parts) {
    if (!isObject(part)) continue;
    const medium = MEDIUM_OF_TYPE.get(part.type) ?? mediumOfFile(part);
    if (arePictures(part.images)) found.add("image");
    if (medium !== undefined) found.add(medium);
    else if (depth > 0) look(part.content ?? part.output ?? part.parts ?? resultIn(part), depth - 1, found);
  }
}

function arePictures(images: unknown): boolean {
  return Array.isArray(images) && typeof images[0] === "string";
}

/** A part without a type, as of Google's format, names the type of its file. */
function mediumOfFile(part: JsonObject): Medium | undefined {
  const file = part.inlineData ?? part.inline_data ?? part.fileData ?? part.file_data;
  if (!isObject(file)) return undefined;
  const [family] = String(file.mimeType ?? file.mime_type).split("/", 1);
  return family === "image" || family === "audio" || family === "video" ? family : undefined;
}

/** Of such a part that is the result of a function: its own parts. */
function resultIn(part: JsonObject): unknown {
  const result = part.functionResponse ?? part.function_response;
  return isObject(result) ? result.parts : undefined;
}
