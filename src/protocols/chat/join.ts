// Going on with a stream of a chat client: which answers can be continued, and what is asked for.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { isSet, readChunks, type SentChunks } from "../chunks.ts";
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

/**
 * Undefined when nothing can be joined: a tool call was begun (its arguments could not be continued into valid JSON), a
 * refusal or audio was sent, several choices run, or the answer was finished.
 */
function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  let hasRole = false;
  const sent = readChunks(events, ({ delta }) => {
    if (!isObject(delta)) return { text: undefined };
    if (isSet(delta.role)) hasRole = true;
    const isOther = [delta.tool_calls, delta.function_call, delta.refusal, delta.audio].some(isSet);
    return isOther ? undefined : { text: delta.content, thought: thoughtOf(delta) };
  });
  if (sent === undefined) return undefined;
  const { text, thought, pieces, identity } = sent;
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

/** The same thought may stand in both members. */
function thoughtOf({ reasoning_content, reasoning }: JsonObject): string {
  if (typeof reasoning_content === "string" && reasoning_content !== "") return reasoning_content;
  return typeof reasoning === "string" ? reasoning : "";
}
