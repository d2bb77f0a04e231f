// The operations of backends: their formats, what stands in for one that a backend does not have, and what is known of each.

import type { ProtocolName } from "../generation/content.ts";

/** An operation of backends; each has an endpoint of its own. Those that generate have the name of their format. */
export type Operation =
  | ProtocolName
  | "count-tokens"
  | "count-content"
  | "invoke-count-tokens"
  | "embeddings"
  | "embed-content"
  | "embed-one-content"
  | "invoke-embeddings"
  | "rerank"
  | "embed-sparse"
  | "images"
  | "image-edits"
  | "image-variations"
  | "image-content"
  | "speech"
  | "transcriptions"
  | "translations"
  | "moderations";

/** The formats of operations that do not have the name of theirs. */
const FORMATS: ReadonlyMap<Operation, ProtocolName | undefined> = new Map([
  ["count-tokens", undefined],
  ["count-content", undefined],
  ["invoke-count-tokens", undefined],
  ["embeddings", undefined],
  ["embed-content", undefined],
  ["embed-one-content", undefined],
  ["invoke-embeddings", undefined],
  ["rerank", undefined],
  ["embed-sparse", undefined],
  ["moderations", undefined],
  ["images", "images"],
  ["image-edits", "images"],
  ["image-variations", "images"],
  ["image-content", "generate-content"],
  ["speech", "audio"],
  ["transcriptions", "audio"],
  ["translations", "audio"],
]);

/** The wire format of what a backend answers; undefined where no other operation has it. */
export function formatOf(operation: Operation): ProtocolName | undefined {
  return FORMATS.has(operation) ? FORMATS.get(operation) : operation;
}

const BROUGHT: ReadonlyMap<Operation, "image" | "audio"> = new Map([
  ["image-edits", "image"],
  ["image-variations", "image"],
  ["transcriptions", "audio"],
  ["translations", "audio"],
]);

/** What every request of the operation brings besides text. */
export function broughtBy(operation: Operation): "image" | "audio" | undefined {
  return BROUGHT.get(operation);
}

/** True if the answer consists of pictures, which take time to draw. */
export function drawsPictures(operation: Operation): boolean {
  return FORMATS.get(operation) === "images";
}

/** True if the answer is text, which a model writes token by token. */
export function writesText(operation: Operation): boolean {
  return !FORMATS.has(operation);
}

/** The formats whose headers and errors operations have that have no format of their own. */
const CONVENTIONS: ReadonlyMap<Operation, ProtocolName> = new Map([
  ["count-tokens", "messages"],
  ["count-content", "generate-content"],
  ["embed-content", "generate-content"],
  ["embed-one-content", "generate-content"],
]);

/** Operations that no vendor bills. */
const FREE: ReadonlySet<Operation> = new Set(["count-tokens", "count-content"]);

/** True if no vendor bills it. */
export function isFree(operation: Operation): boolean {
  return FREE.has(operation);
}

/** The format whose headers and errors an operation has, though it may have no format of its own. */
export function conventionsOf(operation: Operation): ProtocolName | undefined {
  return CONVENTIONS.get(operation) ?? formatOf(operation);
}

/** Operations that can be done by means of others, in order of preference, because their formats are translated. */
const STAND_INS: Readonly<Record<Operation, readonly Operation[]>> = {
  chat: ["messages", "generate-content", "responses", "converse"],
  responses: ["messages", "generate-content", "chat", "converse"],
  messages: ["generate-content", "chat", "responses", "converse"],
  "generate-content": ["messages", "chat", "responses", "converse"],
  "count-tokens": ["invoke-count-tokens"],
  embeddings: ["embed-content", "invoke-embeddings"],
  "embed-content": ["embeddings", "invoke-embeddings"],
  "embed-one-content": ["embeddings", "embed-content", "invoke-embeddings"],
  images: ["image-content"],
};

const NONE: readonly Operation[] = [];

/** The same for formats that few backends speak. */
const ANY_FORMAT: readonly Operation[] = ["chat", "messages", "generate-content", "responses", "converse"];

export type OperationPaths = Readonly<Partial<Record<Operation, string>>>;

/** The operation that a backend with these paths is asked for; undefined when it cannot do it, nor anything like it. */
export function servedBy(paths: OperationPaths, operation: Operation): Operation | undefined {
  if (paths[operation] !== undefined) return operation;
  const standIns = STAND_INS[operation] ?? (FORMATS.has(operation) ? NONE : ANY_FORMAT);
  return standIns.find((standIn) => paths[standIn] !== undefined);
}

/** True if a backend has a format for conversations. */
export function converses(backend: { paths: OperationPaths }): boolean {
  return conversationFormat(backend) !== undefined;
}

/** The format in which a backend is talked with by who has no format of its own. */
export function conversationFormat({ paths }: { paths: OperationPaths }): ProtocolName | undefined {
  const operation = servedBy(paths, "chat");
  return operation && formatOf(operation);
}
