// Ollama requests that pass, to backends of Ollama's own, with keep_alive, num_ctx and whatever else they know; and what a
// model reads of a request.

import type { Usage } from "../../generation/usage.ts";
import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { Verdict } from "../answer-reader.ts";
import { mergeSystem, type PromptMerge } from "../inject-prompt.ts";
import { hasMarker, markersOf } from "../markers.ts";
import type { PromptReader } from "../prompt-reader.ts";
import type { PassThrough, StreamWatch } from "../protocol.ts";
import { objectsOf, textOf, textsOf } from "../reading.ts";
import { eventData } from "../sse.ts";
import { formOf } from "./form.ts";
import { LineEvents } from "./line-events.ts";
import { decodeUsage } from "./usage.ts";

export const ollamaPassThrough: PassThrough = {
  pathOf: (body) => (formOf(body) === "chat" ? "/api/chat" : "/api/generate"),
  unframe: () => new LineEvents(),
  injectPrompt(body, prompt, merge) {
    if (formOf(body) === "generate") return { system: mergeSystem(body.system, prompt, merge) };
    return { messages: withPrompt(objectsOf(body.messages), prompt, merge) };
  },
  readPrompt,
  usageOf: decodeUsage,
  preamble: new Set(),
  watch: () => new LineWatch(),
};

/** Instructions come first; later ones belong to their place in the conversation and stay. */
function withPrompt(messages: readonly JsonObject[], prompt: string, merge: PromptMerge): JsonObject[] {
  const firstTurn = messages.findIndex(({ role }) => role !== "system");
  const leading = firstTurn < 0 ? messages.length : firstTurn;
  const place = merge.strategy === "append" ? leading - 1 : 0;
  const message = leading === 0 ? undefined : messages[place];
  if (message === undefined) return [{ role: "system", content: prompt }, ...messages];
  const changed = { ...message, content: mergeSystem(message.content, prompt, merge) };
  return merge.strategy === "replace" ? [changed, ...messages.slice(leading)] : messages.with(place, changed);
}

/** Arguments of a call may have the same member: the object itself is looked at then. */
const END = markersOf('"done":true');

class LineWatch implements StreamWatch {
  /** Every complete stream has its last object. */
  readonly endMarker = undefined;
  readonly itemIds = [];
  isDone = false;
  usage: Usage | undefined;
  reported: JsonObject | undefined;
  #last: Uint8Array | undefined;

  push(events: Uint8Array): Uint8Array {
    this.#last = events;
    if (hasMarker(events, END)) {
      const end = objectsIn(events).find(({ done }) => done === true);
      this.isDone = end !== undefined;
      this.usage = end && decodeUsage(end);
    }
    return events;
  }

  verdict(): Verdict {
    if (this.isDone) return "done";
    const last = this.#last && objectsIn(this.#last).at(-1);
    if (last === undefined || !isPresent(last.error)) return "incomplete";
    this.reported = last;
    return "reported";
  }
}

const decoder = new TextDecoder();

function objectsIn(events: Uint8Array): JsonObject[] {
  return objectsOf(eventData(decoder.decode(events)).map(parseObject));
}

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
