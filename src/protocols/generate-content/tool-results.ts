// Results of function calls. The API wants one functionResponse for each call of the turn before, in the same order.

import type { DocumentPart, ImagePart, ToolCallPart, ToolResultPart } from "../../generation/content.ts";
import { LOST_RESULT } from "../../generation/lost-results.ts";
import { type JsonObject, parseObject } from "../../lib/json.ts";
import type { Encoding } from "./encoding.ts";
import { historicName } from "./function-names.ts";
import { encodeMedia } from "./media.ts";
import type { GeminiPart } from "./wire.ts";

/** For a result whose call is nowhere in the conversation. */
const UNKNOWN_NAME = "unknown_tool";

/** More digits than a number can hold: parsed and written again it would be another one. */
const LONG_NUMBER = /\d{16}/;

interface PairedResults {
  /** One for each call, in their order. */
  responses: GeminiPart[];
  /** Media of results, where they cannot stand inside. */
  media: GeminiPart[];
  /** Results of no call of the turn before. */
  orphans: ToolResultPart[];
}

export function pairResults(
  calls: readonly ToolCallPart[],
  results: readonly ToolResultPart[],
  context: Encoding,
): PairedResults {
  const rest = [...results];
  const paired: PairedResults = { responses: [], media: [], orphans: rest };
  for (const call of calls) {
    const index = rest.findIndex(({ callId }) => callId === call.id);
    const [result] = index < 0 ? [] : rest.splice(index, 1);
    const id = context.target.kind.isCloud ? {} : { id: call.id };
    const base: JsonObject = { ...id, name: historicName(call.name) };
    if (result === undefined) {
      context.dropped.add("tool_calls", "calls without a result were given an error as their result");
      paired.responses.push({ functionResponse: { ...base, response: { error: LOST_RESULT } } });
    } else {
      addResult(paired, base, result, context);
    }
  }
  return paired;
}

function addResult(paired: PairedResults, base: JsonObject, result: ToolResultPart, context: Encoding): void {
  const media = result.parts.filter((part) => part.type !== "text").map(encodeMedia);
  const response: JsonObject = { ...base, response: encodeResponse(result) };
  if (result.cache !== undefined) context.dropped.add("cache_control");
  if (media.length > 0 && context.rules.mediaInResults) response.parts = media;
  else if (media.length > 0) paired.media.push({ text: `Files that ${base.name} returned:` }, ...media);
  paired.responses.push({ functionResponse: response });
}

function encodeResponse({ parts, isError }: ToolResultPart): JsonObject {
  const text = textOfResult(parts);
  if (isError === true) return { error: text };
  return objectIn(text) ?? { output: text };
}

function textOfResult(parts: ToolResultPart["parts"]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** Undefined for any other text, and for an object that would not survive. */
function objectIn(text: string): JsonObject | undefined {
  return text.trimStart().startsWith("{") && !LONG_NUMBER.test(text) ? parseObject(text) : undefined;
}

/** A result without its call would be refused, for instance after the client has cut off its history. */
export function orphanText(result: ToolResultPart, { names, dropped }: Encoding): GeminiPart[] {
  dropped.add("tool result", "its call is not in the turn before; it is told as text");
  const outcome = result.isError === true ? "Error" : "Result";
  const name = historicName(names.get(result.callId) ?? result.name ?? UNKNOWN_NAME);
  const title = `${outcome} of a call of ${name}:`;
  const media = result.parts.filter((part): part is ImagePart | DocumentPart => part.type !== "text");
  return [{ text: `${title}\n${textOfResult(result.parts)}` }, ...media.map(encodeMedia)];
}
