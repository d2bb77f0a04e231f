// Thoughts with a proof of origin, for chat clients: message.reasoning_details, one entry per thought.
//
//   {type: "reasoning.text", format, text, signature}      readable, signed
//   {type: "reasoning.encrypted", format, text?, data, id?} sealed
//
// `format` names who made the proof. One of a format that no other protocol knows (xai-responses-v1) belongs to the chat
// engine that told it: the whole entry is the proof, and is given back to such engines as it was. In a stream of the gateway's the entry comes whole, in one delta, when the proof is
// known, with `proved_text` for `text`; routers stream entries in pieces.

import type { ProtocolName, ReasoningPart } from "../../generation/content.ts";
import { compact, type JsonObject, parseObject } from "../../lib/json.ts";
import { nonEmptyText, objectsOf, textOf } from "../reading.ts";

/** The names that clients of other routers know. */
const FORMATS: readonly (readonly [ProtocolName, string])[] = [
  ["messages", "anthropic-claude-v1"],
  ["responses", "openai-responses-v1"],
  ["generate-content", "google-gemini-v1"],
  ["converse", "amazon-converse-v1"],
];

/** Undefined for a thought without a proof: its text alone is said elsewhere. */
export function encodeReasoningDetail(part: Omit<ReasoningPart, "type">): JsonObject | undefined {
  if (part.origin === "chat") return encodeOwnDetail(part);
  const signature = nonEmptyText(part.signature);
  const data = nonEmptyText(part.sealed);
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

/** An entry that only chat engines understand; undefined where a client has changed it. */
export function encodeOwnDetail({ origin, text, signature, sealed }: Omit<ReasoningPart, "type">) {
  const entry = origin === "chat" ? parseObject(sealed ?? signature ?? "") : undefined;
  return entry && compact({ ...entry, text: sealed !== undefined && text === "" ? undefined : text });
}

/**
 * The same for a stream, in which the text came before, as reasoning_content: a client that joins both would show it
 * twice. Under another name it still stands beside its proof, for the way back.
 */
export function encodeStreamedDetail(part: Omit<ReasoningPart, "type">): JsonObject | undefined {
  const { text, ...detail } = encodeReasoningDetail(part) ?? {};
  return detail.type === undefined ? undefined : compact({ ...detail, proved_text: text });
}

/** The thoughts of an assistant's message: replayed by a client, or a chat engine's answer. */
export function decodeReasoning(message: JsonObject): ReasoningPart[] {
  const plain = reasoningText(message);
  const details = joinPieces(detailEntries(message)).flatMap(decodeDetail);
  // The details repeat the text they prove; text beside sealed details alone is a thought of its own.
  const isTold = details.some((part) => part.text !== "");
  if (plain === "" || isTold) return details;
  const isSigned = (part: ReasoningPart) => part.signature !== undefined;
  const [only, ...others] = details.filter(isSigned);
  const sealed = details.filter((part) => !isSigned(part));
  // One signature without words is that of the text beside it; of several it is not known which words they prove.
  const thought: ReasoningPart = { type: "reasoning", text: plain };
  return [only !== undefined && others.length === 0 ? { ...only, text: plain } : thought, ...sealed];
}

export function detailEntries({ reasoning_details: details }: JsonObject): JsonObject[] {
  return objectsOf(details);
}

export function detailText(entry: JsonObject): string {
  return nonEmptyText(entry.text) ?? nonEmptyText(entry.summary) ?? textOf(entry.proved_text);
}

/** Routers stream a readable thought in pieces of one index, its signature last. */
function joinPieces(entries: readonly JsonObject[]): JsonObject[] {
  const joined: JsonObject[] = [];
  for (const entry of entries) {
    const last = joined.at(-1);
    const isPiece = last !== undefined && typeof entry.index === "number" && entry.index === last.index;
    if (!isPiece || entry.data !== undefined || last.data !== undefined || last.signature !== undefined) {
      joined.push(entry);
      continue;
    }
    const text = detailText(last) + detailText(entry);
    joined[joined.length - 1] = { ...last, ...entry, text, summary: undefined, format: entry.format ?? last.format };
  }
  return joined;
}

/** The proof in an entry, if it has one. */
export function decodeProof(entry: JsonObject): Pick<ReasoningPart, "origin" | "signature" | "sealed" | "itemId"> {
  const signature = nonEmptyText(entry.signature);
  const sealed = nonEmptyText(entry.data);
  if (signature === undefined && sealed === undefined) return {};
  const origin = FORMATS.find(([, format]) => format === entry.format)?.[0];
  if (origin !== undefined) return compact({ origin, signature, sealed, itemId: nonEmptyText(entry.id) });
  const { text: _, summary: __, proved_text: ___, ...own } = entry;
  return { origin: "chat", [sealed === undefined ? "signature" : "sealed"]: JSON.stringify(own) };
}

function decodeDetail(entry: JsonObject): ReasoningPart[] {
  const part: ReasoningPart = { type: "reasoning", text: detailText(entry), ...decodeProof(entry) };
  return part.text === "" && part.origin === undefined ? [] : [part];
}

/**
 * What a message or delta tells of the model's thoughts in plain words; the names differ between engines and their
 * versions, and some write the same text under two of them.
 */
export function reasoningText(holder: JsonObject): string {
  return nonEmptyText(holder.reasoning_content) ?? nonEmptyText(holder.reasoning) ?? textOf(holder.thinking);
}
