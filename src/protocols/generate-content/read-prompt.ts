// What a model reads of a generateContent request.

import { isObject, type JsonObject } from "../../lib/json.ts";
import type { PromptReader } from "../prompt-reader.ts";
import { textOf } from "../reading.ts";
import { either, listOf } from "./members.ts";

export function readPrompt(body: JsonObject, reader: PromptReader): void {
  const instruction = either(body, "systemInstruction", "system_instruction");
  if (instruction !== undefined && instruction !== null) {
    reader.message("system");
    if (typeof instruction === "string") reader.text(instruction);
    else readParts(instruction, reader);
  }
  for (const content of listOf(body.contents)) {
    if (!isObject(content)) continue;
    reader.message(textOf(content.role));
    readParts(content, reader);
  }
}

function readParts(holder: unknown, reader: PromptReader): void {
  if (!isObject(holder)) return;
  for (const part of listOf(holder.parts)) if (isObject(part)) readPart(part, reader);
}

function readPart(part: JsonObject, reader: PromptReader): void {
  if (typeof part.text === "string") {
    reader.text(part.text);
    return;
  }
  const data = either(part, "inlineData", "inline_data");
  if (isObject(data) && typeof data.data === "string") reader.base64(data.data);
  const file = either(part, "fileData", "file_data");
  if (isObject(file)) {
    const uri = either(file, "fileUri", "file_uri");
    if (typeof uri === "string") reader.media(uri);
  }
  const result = either(part, "functionResponse", "function_response");
  if (isObject(result)) {
    reader.text(JSON.stringify(result.response ?? {}));
    readParts(result, reader);
  }
}
