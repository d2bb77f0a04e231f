// Responses requests and answers that pass.

import { nestedEffort } from "../../generation/reasoning-effort.ts";
import { isObject, joined } from "../../lib/json.ts";
import { mergeSystem } from "../inject-prompt.ts";
import { MarkedWatch, type Marks } from "../marked-watch.ts";
import { markersOf } from "../markers.ts";
import type { PassThrough } from "../protocol.ts";
import { adaptResponsesBody } from "./adapt-body.ts";
import { readPrompt } from "./read-prompt.ts";
import { decodeUsage } from "./usage.ts";
import { outputItemIds } from "./vendor-ids.ts";

const END = markersOf('"response.completed"', '"response.incomplete"', '"response.failed"');

const MARKS: Marks = {
  end: END,
  counts: END,
  countsIn: ({ response }, before) => (isObject(response) && isObject(response.usage) ? response.usage : before),
  decodeCounts: (counts) => decodeUsage(counts, 0),
  itemIdsIn: ({ response }) => (isObject(response) ? outputItemIds(response) : undefined),
};

export const responsesPassThrough: PassThrough = {
  adapt(body, target) {
    const members = joined(adaptResponsesBody(body), nestedEffort(body, target));
    return members && { members };
  },
  injectPrompt: ({ instructions }, prompt, merge) => ({ instructions: mergeSystem(instructions, prompt, merge) }),
  readPrompt,
  usageOf: ({ usage }) => decodeUsage(usage, 0),
  itemIdsOf: outputItemIds,
  preamble: new Set(["response.created", "response.queued", "response.in_progress", "ping"]),
  hasFailed: ({ type, status, object }) => type === "response.failed" || (status === "failed" && object === "response"),
  watch: (options) => new MarkedWatch(MARKS, options),
};
