// Ollama answers that are kept and given again. Their durations are those of the answer that was kept.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { mayLoseDigits } from "../../lib/json-digits.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { filled, objectOf, objectsOf, textOf } from "../reading.ts";
import { eventData } from "../sse.ts";
import { readEvents } from "./read-events.ts";

export const ollamaKept: KeptAnswers = {
  withoutEffect: new Set(["keep_alive"]),
  temperatureOf: ({ options }) => objectOf(options).temperature,
  hasSideEffect: () => false,
  isWhole: ({ error, done }) => done === true && !isPresent(error),
  isWholeStream: (events) => readEvents(eventData(events))?.end !== undefined,
  asStream,
  asWhole,
};

/** Thought, text and calls whole, then the end. Undefined where the arguments of a call would lose digits. */
function asStream(text: string): string | undefined {
  const answer = parseObject(text);
  if (answer === undefined || answer.done !== true) return undefined;
  const { model, created_at, message, response, thinking, ...end } = answer;
  const told = isObject(message) ? message : { content: response, thinking };
  const calls = objectsOf(told.tool_calls);
  if (calls.length > 0 && mayLoseDigits(text)) return undefined;
  const said = (content: string, more: JsonObject): JsonObject =>
    isObject(message) ? { message: { role: "assistant", content, ...more } } : { response: content, ...more };
  let events = "";
  const send = (members: JsonObject) => {
    events += `data: ${JSON.stringify({ model, created_at, ...members })}\n\n`;
  };
  if (textOf(told.thinking) !== "") send({ ...said("", { thinking: told.thinking }), done: false });
  if (textOf(told.content) !== "") send({ ...said(textOf(told.content), {}), done: false });
  if (calls.length > 0) send({ ...said("", { tool_calls: calls }), done: false });
  send({ ...said("", {}), ...end });
  return events;
}

function asWhole(events: string): string | undefined {
  const told = readEvents(eventData(events));
  if (told?.end === undefined) return undefined;
  const { form, text, thought, calls, end } = told;
  if (calls.length > 0 && mayLoseDigits(events)) return undefined;
  const { model, created_at, message: _message, response: _response, ...rest } = end;
  const thinking = thought === "" ? {} : { thinking: thought };
  const tool_calls = filled(calls);
  const said =
    form === "chat"
      ? { message: { role: "assistant", content: text, ...thinking, ...(tool_calls && { tool_calls }) } }
      : { response: text, ...thinking };
  return JSON.stringify({ model, created_at, ...said, ...rest });
}
