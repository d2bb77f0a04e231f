// Going on with a stream of an Ollama client: which answers can be continued, and what is asked for. A prompt of
// /api/generate becomes a conversation, whose last turn can be gone on with.

import { isPresent, type JsonObject } from "../../lib/json.ts";
import { objectOf, textOf } from "../reading.ts";
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
import { formOf } from "./form.ts";
import { type JoinedAnswer, readEvents } from "./read-events.ts";
import { OllamaStreamEncoder } from "./stream-encoder.ts";

export const ollamaJoin: StreamJoin = {
  readSent,
  splitAtError: splitAtErrorMember,
  askForRest: (request, text, prompt) => ({ ...NO_PROMPT, ...askInTurns(asChat(request), text, prompt) }),
};

/** Members of a prompt that stand in its conversation. */
const NO_PROMPT = { prompt: undefined, system: undefined, images: undefined };

function readSent(events: readonly SseEvent[]): SentAnswer | undefined {
  const sent = readEvents(events.map(({ data }) => data));
  if (sent === undefined || sent.calls.length > 0 || sent.end !== undefined) return undefined;
  const { form, text, thought, pieces } = sent;
  return {
    text,
    pieces,
    openText: text.length,
    hidesThoughts: text !== "" || thought !== "",
    askToGoOn: (request) => askToGoOn(request, sent),
    encoder: events.length > 0 ? (context) => new OllamaStreamEncoder(context, form) : undefined,
  };
}

function askToGoOn(request: JsonObject, { text, thought, pieces }: JoinedAnswer): JsonObject | undefined {
  const prefill = prefillOf(text);
  const turn = { content: prefill, ...(thought !== "" && { thinking: thought }) };
  const isText = ({ tool_calls }: JsonObject) => thought === "" && !isPresent(tool_calls);
  const messages = turnsBehind(asChat(request).messages, turn, prefill, isText);
  const options = objectOf(request.options);
  // 0 and less are no limits.
  const limits = Number(options.num_predict) > 0 ? limitsLeft(options, ["num_predict"], pieces) : {};
  return messages && { ...NO_PROMPT, messages, options: { ...options, ...limits } };
}

/** The request as a conversation. */
function asChat(request: JsonObject): JsonObject {
  if (formOf(request) === "chat") return request;
  const { prompt, system, images } = request;
  const instructions = textOf(system) === "" ? [] : [{ role: "system", content: system }];
  return {
    messages: [...instructions, { role: "user", content: textOf(prompt), ...(isPresent(images) && { images }) }],
  };
}
