// A whole generateContent answer -> neutral result: read as a stream of one chunk, so that both ways mean the same.

import { Collector } from "../../generation/collect.ts";
import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { AnswerDecoder } from "./stream-decoder.ts";

/** @param body - an answer object; or the list of a stream without alt=sse, which must say why it ended */
export function decodeResponse(body: JsonObject | readonly unknown[]): GenerationResult {
  const decoder = new AnswerDecoder();
  const collector = new Collector();
  for (const event of decoder.push(body)) collector.push(event);
  for (const event of decoder.end(!Array.isArray(body))) collector.push(event);
  if (collector.failure !== undefined) throw new AnswerFailed(collector.failure);
  const result = collector.result();
  if (result === undefined) throw new DecodeError("is no complete answer: it has no candidate that ended");
  return result;
}
