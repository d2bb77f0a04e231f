// What is kept of streams of chunks and of answers with choices, as of chat and text completions: whether they are whole,
// and what joins their chunks.

import { isObject, isPresent, type JsonObject, parseObject } from "../lib/json.ts";
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
  return Array.isArray(event.choices) && event.choices.some((choice) => choice?.finish_reason === "error");
}

/** What the chunks of a stream say besides their choices. */
interface ChunkEnvelope {
  members: JsonObject;
  usage: unknown;
}

/**
 * Goes through the chunks of a stream, joining what stands around their choices. Undefined when something is no chunk, or
 * `joinChoice` does not know how to add a choice.
 */
export function joinChunks(events: string, joinChoice: (choice: unknown) => boolean): ChunkEnvelope | undefined {
  let members: JsonObject = {};
  let usage: unknown;
  for (const data of eventData(events)) {
    if (data.trim() === "[DONE]") break;
    const chunk = parseObject(data);
    if (chunk === undefined || !Array.isArray(chunk.choices)) return undefined;
    const { choices, usage: chunkUsage, ...rest } = chunk;
    // Azure opens its streams with a chunk that has empty ids; later values fill them.
    for (const [key, value] of Object.entries(rest)) {
      if (!isPresent(members[key]) || members[key] === "" || members[key] === 0) members = { ...members, [key]: value };
    }
    if (isPresent(chunkUsage)) usage = chunkUsage;
    for (const choice of choices as unknown[]) if (!joinChoice(choice)) return undefined;
  }
  return { members, usage };
}

/** Lists of tokens, one after the other; null where something else than a list is in them. */
export function joinLists(known: JsonObject, more: JsonObject): JsonObject | null {
  const joined = { ...known };
  for (const [key, value] of Object.entries(more)) {
    const before = joined[key];
    if (!isPresent(value)) joined[key] ??= null;
    else if (!Array.isArray(value)) return null;
    else joined[key] = Array.isArray(before) ? [...before, ...value] : value;
  }
  return joined;
}
