// What a model reads of a Messages request.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { type PromptReader, readContent, readMedia } from "../prompt-reader.ts";

export function readPrompt({ system, messages }: JsonObject, reader: PromptReader): void {
  if (system !== undefined && system !== null) {
    reader.message("system");
    readContent(system, reader, readBlock);
  }
  if (!Array.isArray(messages)) return;
  for (const message of messages) {
    if (!isObject(message)) continue;
    reader.message(typeof message.role === "string" ? message.role : "");
    readContent(message.content, reader, readBlock);
  }
}

function readBlock(block: JsonObject, reader: PromptReader): void {
  const { type, text, source, content } = block;
  if (type === "text") {
    if (typeof text === "string") reader.text(text);
  } else if (isObject(source)) readSource(source, reader);
  // What a tool gave, whose blocks hold no results of tools.
  else if (type === "tool_result") readContent(content, reader, readResultBlock);
}

function readResultBlock(block: JsonObject, reader: PromptReader): void {
  if (block.type !== "tool_result") readBlock(block, reader);
}

function readSource({ type, data, url, file_id: id, content }: JsonObject, reader: PromptReader): void {
  if (type === "text" && typeof data === "string") reader.text(data);
  else if (typeof data === "string") reader.base64(data);
  else if (content !== undefined) readContent(content, reader, readTextBlock);
  else readMedia(reader, url, id);
}

function readTextBlock({ text }: JsonObject, reader: PromptReader): void {
  if (typeof text === "string") reader.text(text);
}
