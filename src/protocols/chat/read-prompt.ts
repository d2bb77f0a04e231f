// What a model reads of a chat request.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { type PromptReader, readContent, readMedia } from "../prompt-reader.ts";

export function readPrompt({ messages }: JsonObject, reader: PromptReader): void {
  if (!Array.isArray(messages)) return;
  for (const message of messages) {
    if (!isObject(message)) continue;
    reader.message(typeof message.role === "string" ? message.role : "");
    readContent(message.content, reader, readPart);
  }
}

function readPart(part: JsonObject, reader: PromptReader): void {
  const { text, refusal, image_url: image, audio_url: audio, video_url: video, input_audio: sound, file } = part;
  if (typeof text === "string") reader.text(text);
  else if (typeof refusal === "string") reader.text(refusal);
  else if (isObject(sound) && typeof sound.data === "string") reader.base64(sound.data);
  else if (isObject(file)) readMedia(reader, file.file_data, file.file_id);
  else for (const holder of [image, audio, video]) readMedia(reader, isObject(holder) ? holder.url : holder);
}
