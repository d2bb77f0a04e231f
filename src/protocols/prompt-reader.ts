// How a format tells what a model reads of a request, piece by piece and in order, for the index of which prompts
// begin alike; and what the formats share in that.

import { isObject, type JsonObject } from "../lib/json.ts";

export interface PromptReader {
  /** What follows belongs to it. */
  message(role: string): void;
  text(text: string): void;
  /** A picture, a sound or a document by its address, a data URL among them, or by the id of a file. */
  media(address: string): void;
  /** The same by its content. */
  base64(data: string): void;
}

/** A text, or a list of parts of which the format knows the types. */
export function readContent(
  content: unknown,
  reader: PromptReader,
  readPart: (part: JsonObject, reader: PromptReader) => void,
): void {
  if (typeof content === "string") reader.text(content);
  else if (Array.isArray(content)) {
    for (const part of content) {
      if (isObject(part)) readPart(part, reader);
      else if (typeof part === "string") reader.text(part);
    }
  }
}

/** The first of them that is a text. */
export function readMedia(reader: PromptReader, ...addresses: readonly unknown[]): void {
  const address = addresses.find((each) => typeof each === "string");
  if (typeof address === "string") reader.media(address);
}
