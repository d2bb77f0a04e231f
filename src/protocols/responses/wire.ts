// What the files of this format share: its media types and roles, data URLs and references to items.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { splitDataUrl } from "../../media/data-url.ts";
import { nonEmptyText } from "../reading.ts";

/** Media types that a file input may have. */
export const FILE_MEDIA_TYPES: readonly string[] = [
  "application/pdf",
  "image/jpeg",
  "image/png",
  "image/gif",
  "image/webp",
  "text/plain",
];

export const CONVERSATION_ROLES: readonly unknown[] = ["user", "assistant", "system", "developer"];

/** The url of an image part, in this format's form (a string) or in chat's ({url}). */
export function imageUrlOf(part: JsonObject): string | undefined {
  const { image_url: image } = part;
  return nonEmptyText(isObject(image) ? image.url : image);
}

export interface EncodedFile {
  mediaType: string;
  /** base64 */
  data: string;
}

/** Undefined for what is no base64 data URL. */
export function parseDataUrl(url: string): EncodedFile | undefined {
  const parts = splitDataUrl(url);
  return parts?.isBase64 === true ? { mediaType: parts.mediaType, data: parts.payload } : undefined;
}

export function toDataUrl(mediaType: string, data: string): string {
  return `data:${mediaType};base64,${data}`;
}

/** An item that only names another; its type may be left out. */
export function isItemReference({ type, role, id }: JsonObject): boolean {
  return type === "item_reference" || (!isPresent(type) && role === undefined && typeof id === "string");
}
