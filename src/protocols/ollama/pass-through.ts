// What is known of Ollama requests besides their translation: no backend is asked in this format.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { MarkedWatch } from "../marked-watch.ts";
import { markersOf } from "../markers.ts";
import type { PromptReader } from "../prompt-reader.ts";
import type { PassThrough } from "../protocol.ts";
import { objectsOf, textOf, textsOf } from "../reading.ts";
import { formOf } from "./form.ts";

const END = markersOf('"done":true');

export const ollamaPassThrough: PassThrough = {
  readPrompt,
  preamble: new Set(),
  watch: () => new MarkedWatch({ end: END, counts: END, countsIn: () => undefined, decodeCounts: () => undefined }),
};

function readPrompt(body: JsonObject, reader: PromptReader): void {
  if (formOf(body) === "chat") {
    for (const message of objectsOf(body.messages)) readMessage(message, reader);
    return;
  }
  if (textOf(body.system) !== "") readMessage({ role: "system", content: body.system }, reader);
  readMessage({ role: "user", content: body.prompt, images: body.images }, reader);
}

function readMessage({ role, content, images, tool_calls }: JsonObject, reader: PromptReader): void {
  reader.message(textOf(role));
  for (const image of textsOf(images)) reader.base64(image);
  reader.text(textOf(content));
  for (const call of objectsOf(tool_calls)) if (isObject(call.function)) reader.text(JSON.stringify(call.function));
}
