// Going on with a stream of a text completion: the second backend goes on behind prompt and text.

import type { JsonObject } from "../../lib/json.ts";
import { readSentChunks, type SentChunks } from "../chunks.ts";
import { isSet } from "../joined-chunks.ts";
import { prefillOf } from "../seam.ts";
import type { SseEvent } from "../sse.ts";
import { limitsLeft, type SentAnswer, type StreamJoin, splitAtErrorMember } from "../stream-join.ts";
import { CompletionStreamEncoder } from "./stream-encoder.ts";

export const completionsJoin: StreamJoin = {
  readSent,
  splitAtError: splitAtErrorMember,
  askForRest: () => undefined, // the format has no turns
};

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const sent = readSentChunks(events, "text");
  if (sent === undefined) return undefined;
  const { identity, text, pieces } = sent;
  const hasBegun = text !== "" || Object.keys(identity).length > 0;
  return {
    text,
    pieces,
    openText: text.length,
    hidesThoughts: true, // the format has no place for them
    askToGoOn: (request) => askToGoOn(request, sent),
    encoder: hasBegun ? (context) => new CompletionStreamEncoder(context, identity) : undefined,
  };
}

/** What is more than one text, or ends behind the answer, cannot be prolonged. */
function askToGoOn(request: JsonObject, { text, pieces }: SentChunks): JsonObject | undefined {
  const { prompt, suffix, echo } = request;
  if (typeof prompt !== "string" || isSet(suffix) || echo === true) return undefined;
  return { prompt: prompt + prefillOf(text), ...limitsLeft(request, ["max_tokens"], pieces) };
}
