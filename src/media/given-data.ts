// Files that stand in the request itself: their beginning is compared with what they are said to be. The rest of them is
// not looked at; its reader will judge it.

import { normalizeBase64, splitDataUrl } from "./data-url.ts";
import {
  checkMedia,
  documentType,
  isUnknownType,
  mediaTypeRule,
  normalizeMediaType,
  refused,
  sniffBase64,
} from "./media-types.ts";

interface GivenData {
  place: "image" | "document" | "other";
  /** A data URL, or base64 where `mediaType` is given. */
  value: string;
  mediaType?: string;
  /** The field's name in errors. */
  param: string;
}

const WITH_TEXT = { plainText: true } as const;
/** Characters of base64 in which the beginning is looked for, and of which one text is. */
const HEAD_LENGTH = 1024;

/** Throws a 400 that names the field. Sound, video and types of pictures that are not listed pass. */
export function checkGivenData({ place, value, mediaType, param }: GivenData): void {
  if (place === "other") return;
  const url = mediaType === undefined ? splitDataUrl(value) : { mediaType, isBase64: true, payload: value };
  if (url === undefined) throw refused(param, "is no valid data: URL.");
  const declared = documentType(normalizeMediaType(url.mediaType));
  // Engines read pictures of many types, and are the better judges of those that are not listed.
  if (place === "image" && mediaTypeRule(declared, WITH_TEXT) === undefined) return;
  if (!url.isBase64) throw refused(param, "expected base64, such as data:application/pdf;base64,JVBERi0…");
  const head = url.payload.slice(0, HEAD_LENGTH).replaceAll(/[\t\n\r ]+/g, "");
  const sniffed = sniffBase64(head);
  const found = checkMedia(
    { declared, sniffed, sizeBytes: sizeOf(url.payload, declared), isText: () => isTextAtStart(head) },
    param,
    WITH_TEXT,
  );
  // The data is passed on unchanged, and backends refuse a picture under another type's name.
  if (!isUnknownType(declared) && found !== declared) {
    throw refused(param, `the file is said to be ${declared}, but its content is ${found}.`);
  }
}

/** Of base64 without blanks, its length says it; only what seems to be too large is looked at as a whole. */
function sizeOf(base64: string, mediaType: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  const bytes = Math.floor((base64.length * 3) / 4) - padding;
  const rule = mediaTypeRule(mediaType, WITH_TEXT);
  return rule === undefined || bytes <= rule.maxBytes ? bytes : (normalizeBase64(base64)?.decodedBytes ?? bytes);
}

function isTextAtStart(base64: string): boolean {
  return !Buffer.from(base64, "base64").includes(0);
}
