// The few shapes that the halves of the Messages format share (docs: the Messages API reference). Blocks stay loose on
// purpose: new block types appear faster than types can follow.

import { isObject, type JsonObject } from "../../lib/json.ts";

/** A content block: of a request, of an answer, or in the start of a stream's block. */
export type Block = JsonObject & { type: string };

export function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value.type === "string";
}

/** A count: never negative, 0 for anything that is none. */
export function countOf(value: unknown): number {
  return optionalCount(value) ?? 0;
}

export function optionalCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? Math.max(0, Math.trunc(value)) : undefined;
}

/** The text of plain text documents in their neutral form. */
export function utf8ToBase64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

export function base64ToUtf8(data: string): string {
  return Buffer.from(data, "base64").toString("utf8");
}

export function eventText(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
