// Messages requests and answers that pass.

import { isObject } from "../../lib/json.ts";
import { mergeContent } from "../inject-prompt.ts";
import { MarkedWatch, type Marks } from "../marked-watch.ts";
import { markersOf } from "../markers.ts";
import type { PassThrough } from "../protocol.ts";
import { objectOf, objectsOf } from "../reading.ts";
import { adaptMessagesBody } from "./adapt-body.ts";
import { rulesOf } from "./model-rules.ts";
import { readPrompt } from "./read-prompt.ts";
import { decodeUsage, mergeUsage } from "./usage.ts";

const MARKS: Marks = {
  end: markersOf('"message_stop"'),
  counts: markersOf('"message_delta"'),
  countsIn: ({ usage, message }, before) => mergeUsage(before, usage ?? objectOf(message).usage),
  decodeCounts: decodeUsage,
};

/** Whether a picture or a document stands behind an address. */
function hasExternalSource(content: unknown): boolean {
  return objectsOf(content).some(
    ({ source, content: inner }) => (isObject(source) && source.type === "url") || hasExternalSource(inner),
  );
}

export const messagesPassThrough: PassThrough = {
  mustTranslate: ({ messages }, _splitsThoughts, fetchesNothing) => fetchesNothing && hasExternalSource(messages),
  adapt(body, { model, askedModel }) {
    const members = adaptMessagesBody(body, model, askedModel);
    return members && { members };
  },
  injectPrompt: ({ system }, prompt, merge) => ({ system: mergeContent(system, prompt, merge) }),
  readPrompt,
  headers: ["anthropic-version", "anthropic-beta"],
  goesOn: (model) => rulesOf(model).prefill,
  usageOf: ({ usage }) => decodeUsage(usage),
  preamble: new Set(["message_start", "ping"]),
  watch: (options) => new MarkedWatch(MARKS, options),
};
