// Going on with a stream of a chat client: which answers can be continued, and what is asked for.

import type { JsonObject } from "../../lib/json.ts";
import { readSentChunks, type SentChunks } from "../chunks.ts";
import { isSet } from "../joined-chunks.ts";
import { prefillOf } from "../seam.ts";
import type { SseEvent } from "../sse.ts";
import {
  askInTurns,
  limitsLeft,
  type SentAnswer,
  type StreamJoin,
  splitAtErrorMember,
  turnsBehind,
} from "../stream-join.ts";
import { ChatStreamEncoder } from "./stream-encoder.ts";

export const chatJoin: StreamJoin = { readSent, splitAtError: splitAtErrorMember, askForRest: askInTurns };

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const sent = readSentChunks(events, "delta");
  if (sent === undefined) return undefined;
  const { text, thought, pieces, identity, hasRole } = sent;
  const hasBegun = hasRole || text !== "" || thought !== "" || identity.id !== undefined;
  return {
    text,
    pieces,
    openText: text.length,
    hidesThoughts: thought !== "" || text !== "",
    askToGoOn: (request) => askToGoOn(request, sent),
    encoder: hasBegun ? (context) => new ChatStreamEncoder(context, { identity, hasRole, text }) : undefined,
  };
}

function askToGoOn(request: JsonObject, { text, thought, pieces }: SentChunks): JsonObject | undefined {
  const prefill = prefillOf(text);
  const turn = { content: prefill, ...(thought !== "" && { reasoning_content: thought }) };
  const messages = turnsBehind(request.messages, turn, prefill, (last) => thought === "" && !isSet(last.tool_calls));
  return messages && { messages, ...limitsLeft(request, ["max_tokens", "max_completion_tokens"], pieces) };
}
