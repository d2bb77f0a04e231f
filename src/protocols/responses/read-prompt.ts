// What a model reads of a Responses request.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { type PromptReader, readContent, readMedia } from "../prompt-reader.ts";

export function readPrompt({ instructions, input }: JsonObject, reader: PromptReader): void {
  if (typeof instructions === "string" && instructions !== "") {
    reader.message("system");
    reader.text(instructions);
  }
  if (typeof input === "string") {
    reader.message("user");
    reader.text(input);
  } else if (Array.isArray(input)) {
    for (const item of input) if (isObject(item)) readItem(item, reader);
  }
}

function readItem({ role, content, output }: JsonObject, reader: PromptReader): void {
  if (typeof role === "string") {
    reader.message(role);
    readContent(content, reader, readPart);
  } else if (output !== undefined) {
    reader.message("tool");
    if (isObject(output)) readPart(output, reader);
    else readContent(output, reader, readPart);
  }
}

function readPart(part: JsonObject, reader: PromptReader): void {
  const { text, refusal, image_url: image, file_data: data, file_url: url, file_id: id, input_audio: sound } = part;
  if (typeof text === "string") reader.text(text);
  else if (typeof refusal === "string") reader.text(refusal);
  else if (isObject(sound) && typeof sound.data === "string") reader.base64(sound.data);
  else readMedia(reader, isObject(image) ? image.url : image, data, url, id);
}
