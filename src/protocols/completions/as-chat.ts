// A chunk of a text completion in chat's words, for readers of both: the text is what the assistant says.

import { isObject, parseObject } from "../../lib/json.ts";

/** The data of an event; unchanged where it is no chunk. */
export function asChatChunk(data: string): string {
  const chunk = parseObject(data);
  if (chunk === undefined || !Array.isArray(chunk.choices)) return data;
  const choices = chunk.choices
    .filter(isObject)
    .map(({ text, ...choice }) => ({ ...choice, delta: { content: text } }));
  return JSON.stringify({ ...chunk, choices });
}
