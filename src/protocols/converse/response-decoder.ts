// A whole answer of Converse -> neutral result: read as the stream that says the same, so that both ways mean the same.

import { Collector } from "../../generation/collect.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import { ConverseDecoder } from "./stream-decoder.ts";

export function decodeResponse(body: JsonObject): GenerationResult {
  const { message } = objectOf(body.output);
  if (!isObject(message)) throw new DecodeError("has no message");
  const decoder = new ConverseDecoder();
  const collector = new Collector();
  const collect = (events: readonly GenerationEvent[]) => {
    for (const event of events) collector.push(event);
  };
  collect(decoder.pushEvent("messageStart", message));
  for (const [index, block] of objectsOf(message.content).entries()) {
    for (const [name, event] of eventsOf(block)) {
      collect(decoder.pushEvent(name, { ...event, contentBlockIndex: index }));
    }
    collect(decoder.pushEvent("contentBlockStop", { contentBlockIndex: index }));
  }
  collect(decoder.pushEvent("messageStop", { stopReason: textOf(body.stopReason) }));
  collect(decoder.pushEvent("metadata", { usage: body.usage }));
  if (collector.failure !== undefined) throw new AnswerFailed(collector.failure);
  const result = collector.result();
  if (result === undefined) throw new DecodeError("is no complete answer");
  return result;
}

type NamedEvent = [name: string, event: JsonObject];

function eventsOf(block: JsonObject): NamedEvent[] {
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (typeof text === "string") return [delta({ text })];
  if (isObject(toolUse)) {
    const input = JSON.stringify(toolUse.input ?? {});
    return [["contentBlockStart", { start: { toolUse } }], delta({ toolUse: { input } })];
  }
  if (isObject(reasoningContent)) {
    const { reasoningText, redactedContent } = reasoningContent;
    return [delta({ reasoningContent: isObject(reasoningText) ? reasoningText : { redactedContent } })];
  }
  if (!isObject(citationsContent)) return [];
  const { content, citations } = citationsContent;
  return [...objectsOf(content).map(delta), ...objectsOf(citations).map((citation) => delta({ citation }))];
}

function delta(value: JsonObject): NamedEvent {
  return ["contentBlockDelta", { delta: value }];
}
