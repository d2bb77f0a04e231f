// Results of function calls. The API wants one functionResponse for each call of the turn before, in the same order.

import type { DocumentPart, ImagePart, ToolCallPart, ToolResultPart } from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { LOST_RESULT } from "../../generation/lost-results.ts";
import { type JsonObject, parseObject } from "../../lib/json.ts";
import { type FunctionNames, historicName } from "./function-names.ts";
import { encodeMedia } from "./media.ts";
import type { Part } from "./wire.ts";

export interface ResultContext {
  names: FunctionNames;
  /** Whether calls and results carry their ids; the Vertex variant refuses them. */
  callIds: boolean;
  mediaInResults: boolean;
  dropped: DropList;
}

/** More digits than a number can hold: parsed and written again it would be another one. */
const LONG_NUMBER = /\d{16}/;

export interface PairedResults {
  /** One for each call, in their order. */
  responses: Part[];
  /** Media of results, where they cannot stand inside. */
  media: Part[];
  /** Results of no call of the turn before. */
  orphans: ToolResultPart[];
}

export function pairResults(
  calls: readonly ToolCallPart[],
  results: readonly ToolResultPart[],
  context: ResultContext,
): PairedResults {
  const rest = [...results];
  const paired: PairedResults = { responses: [], media: [], orphans: rest };
  for (const call of calls) {
    const index = rest.findIndex(({ callId }) => callId === call.id);
    const [result] = index < 0 ? [] : rest.splice(index, 1);
    const base: JsonObject = { ...(context.callIds && { id: call.id }), name: historicName(call.name) };
    if (result === undefined) {
      context.dropped.add("tool_calls", "calls without a result were given an error as their result");
      paired.responses.push({ functionResponse: { ...base, response: { error: LOST_RESULT } } });
    } else {
      addResult(paired, base, result, context);
    }
  }
  return paired;
}

function addResult(paired: PairedResults, base: JsonObject, result: ToolResultPart, context: ResultContext): void {
  const media = result.parts.filter((part) => part.type !== "text").map(encodeMedia);
  const response: JsonObject = { ...base, response: encodeResponse(result) };
  if (result.cache !== undefined) context.dropped.add("cache_control");
  if (media.length > 0 && context.mediaInResults) response.parts = media;
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
export function orphanText(result: ToolResultPart, { names, dropped }: ResultContext): Part[] {
  dropped.add("tool result", "its call is not in the turn before; it is told as text");
  const outcome = result.isError === true ? "Error" : "Result";
  const title = `${outcome} of a call of ${names.nameOf(result.callId, result.name)}:`;
  const media = result.parts.filter((part): part is ImagePart | DocumentPart => part.type !== "text");
  return [{ text: `${title}\n${textOfResult(result.parts)}` }, ...media.map(encodeMedia)];
}
