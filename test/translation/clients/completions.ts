// A small client of the legacy completions format.

import {
  type AskTurn,
  emptyReading,
  type JsonObject,
  objects,
  type Reading,
  text,
  type WireClient,
  type WireEvent,
} from "../ask.ts";
import { readChatUsage, readOpenAiError } from "./chat.ts";

export const completionsClient: WireClient = {
  name: "completions",
  path: "/v1/completions",
  headers: {},
  finishes: {
    stop: "stop",
    "stop-sequence": "stop",
    length: "length",
    "tool-calls": "stop",
    "content-filter": "content_filter",
  },
  write: (ask, model, stream) => ({
    model,
    prompt: ask.turns.flatMap(textsOf).join("\n"),
    ...(stream && { stream: true, ...(ask.usage !== false && { stream_options: { include_usage: true } }) }),
    ...(ask.maxTokens !== undefined && { max_tokens: ask.maxTokens }),
    ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    ...(ask.topP !== undefined && { top_p: ask.topP }),
    ...(ask.stop && { stop: ask.stop }),
    ...ask.more,
  }),
  follow: (body) => body,
  readWhole(body) {
    const reading = emptyReading();
    const [choice] = objects(body.choices);
    if (body.object !== "text_completion") reading.offences.push(`object is ${body.object}`);
    reading.end = "whole";
    reading.finish = text(choice?.finish_reason);
    addText(reading, text(choice?.text));
    return withHead(reading, body);
  },
  readStream: readCompletionStream,
  readError: readOpenAiError,
};

function textsOf({ parts }: AskTurn): string[] {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
}

function addText(reading: Reading, piece: string): void {
  const [part] = reading.parts;
  if (part?.type === "text") part.text += piece;
  else if (piece !== "") reading.parts.push({ type: "text", text: piece, citations: [] });
}

function withHead(reading: Reading, body: JsonObject): Reading {
  reading.model = text(body.model);
  const usage = readChatUsage(body.usage);
  if (usage !== undefined) reading.usage = usage;
  return reading;
}

function readCompletionStream(events: readonly WireEvent[]): Reading {
  const reading = emptyReading();
  for (const { data } of events) {
    if (data === "[DONE]") {
      if (reading.finish === "") reading.offences.push("[DONE] without a finish reason");
      reading.end = reading.error === undefined ? "whole" : "error";
      continue;
    }
    const chunk = JSON.parse(data) as JsonObject;
    if (chunk.error !== undefined) {
      reading.error = readOpenAiError(chunk);
      reading.end = "error";
      continue;
    }
    if (chunk.object !== "text_completion") reading.offences.push(`object is ${chunk.object}`);
    for (const choice of objects(chunk.choices)) {
      addText(reading, text(choice.text));
      if (typeof choice.finish_reason === "string") reading.finish = choice.finish_reason;
    }
    withHead(reading, chunk);
  }
  return reading;
}
