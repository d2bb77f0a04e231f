// Thoughts with a proof of origin, for chat clients: message.reasoning_details, one entry per thought.
//
//   {type: "reasoning.text", format, text, signature}      readable, signed
//   {type: "reasoning.encrypted", format, text?, data, id?} sealed
//
// `format` names who made the proof. In a stream the entry comes whole, in one delta, when the proof is known.

import type { ProtocolName, ReasoningPart } from "../../generation/content.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { compact, nonEmptyString } from "./wire.ts";

/** The names that clients of other routers know. */
const FORMATS: readonly (readonly [ProtocolName, string])[] = [
  ["messages", "anthropic-claude-v1"],
  ["responses", "openai-responses-v1"],
  ["generate-content", "google-gemini-v1"],
];

/** Undefined for a thought without a proof: its text alone is said elsewhere. */
export function encodeReasoningDetail(part: Omit<ReasoningPart, "type">): JsonObject | undefined {
  const signature = nonEmptyString(part.signature);
  const data = nonEmptyString(part.sealed);
  const format = FORMATS.find(([protocol]) => protocol === part.origin)?.[1];
  if (format === undefined || (signature === undefined && data === undefined)) return undefined;
  return compact({
    type: data === undefined ? "reasoning.text" : "reasoning.encrypted",
    format,
    text: data !== undefined && part.text === "" ? undefined : part.text,
    signature,
    data,
    id: part.itemId,
  });
}

/** The thoughts of a replayed assistant message. */
export function decodeReasoning(message: JsonObject): ReasoningPart[] {
  const plain = nonEmptyString(message.reasoning_content) ?? nonEmptyString(message.reasoning);
  const details = Array.isArray(message.reasoning_details) ? message.reasoning_details.flatMap(decodeDetail) : [];
  // The details repeat the text they prove; text beside sealed details alone is a thought of its own.
  const isTold = details.some((part) => part.text !== "");
  return plain === undefined || isTold ? details : [{ type: "reasoning", text: plain }, ...details];
}

function decodeDetail(entry: unknown): ReasoningPart[] {
  if (!isObject(entry)) return [];
  const text = nonEmptyString(entry.text) ?? nonEmptyString(entry.summary) ?? "";
  const part: ReasoningPart = { type: "reasoning", text };
  const origin = FORMATS.find(([, format]) => format === entry.format)?.[0];
  const signature = nonEmptyString(entry.signature);
  const sealed = nonEmptyString(entry.data);
  const itemId = nonEmptyString(entry.id);
  if (origin !== undefined && (signature !== undefined || sealed !== undefined)) {
    part.origin = origin;
    if (signature !== undefined) part.signature = signature;
    if (sealed !== undefined) part.sealed = sealed;
    if (itemId !== undefined) part.itemId = itemId;
  }
  return text === "" && part.origin === undefined ? [] : [part];
}
