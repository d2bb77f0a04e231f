// What is kept of streams of chunks and of answers with choices, as of chat and text completions: whether they are whole.

import { isObject, isPresent, type JsonObject, parseObject } from "../lib/json.ts";
import { joinChunks } from "./joined-chunks.ts";
import { eventData } from "./sse.ts";

/** Members of a request that change nothing of an answer with choices. */
export const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  "user",
  "metadata",
  "safety_identifier",
  "store",
  "prompt_cache_key",
  "prompt_cache_retention",
]);

/** The backend is to keep the answer for the client to fetch later. */
export function isStored(body: JsonObject): boolean {
  return body.store === true;
}

export function storingNothing(body: JsonObject): JsonObject | undefined {
  return isStored(body) ? { store: false } : undefined;
}

/** It has choices, and each of them was finished without error. */
export function hasFinishedChoices({ error, choices }: JsonObject): boolean {
  return !isPresent(error) && Array.isArray(choices) && choices.length > 0 && choices.every(isFinishedWell);
}

function isFinishedWell(choice: unknown): boolean {
  const reason = isObject(choice) ? choice.finish_reason : undefined;
  return typeof reason === "string" && reason !== "error";
}

/** Nothing in it tells of an error, and its last event is [DONE]. */
export function isWholeChunkStream(events: string): boolean {
  if (!/(?:^|[\r\n])data: ?\[DONE\]\s*$/.test(events.slice(-64))) return false;
  // Only events that hold the word can tell of an error, so most streams are not parsed at all.
  if (!events.includes('"error"')) return true;
  return eventData(events).every((data) => !data.includes('"error"') || !tellsOfError(data));
}

function tellsOfError(data: string): boolean {
  const event = parseObject(data);
  if (event === undefined || isPresent(event.error)) return true;
  return joinChunks([data], "delta").choices.some(({ fields }) => fields.finish_reason === "error");
}
