// Data URLs with base64 (RFC 2397): what they hold, checked without decoding or copying the payload.

import { refused } from "./media-types.ts";

interface DataUrl {
  /** Lower case, without parameters; "" when the URL names none. */
  mediaType: string;
  /** The payload in the standard alphabet, padded, without blanks. */
  base64: string;
  decodedBytes: number;
}

const SCHEME = "data:";
const BASE64_MARK = /; *base64$/;
/** A longer head is no media type. */
const MAX_HEAD_LENGTH = 256;
const NOT_BASE64 = /[^A-Za-z0-9+/]/;
const BLANK = /[\t\n\r ]/;

export function isDataUrl(text: string): boolean {
  return text.slice(0, SCHEME.length).toLowerCase() === SCHEME;
}

/** A data URL of which nothing but the beginning was looked at. */
interface DataUrlParts {
  /** Lower case, without parameters; "" when the URL names none. */
  mediaType: string;
  isBase64: boolean;
  /** The text behind the comma, as it is written. */
  payload: string;
}

/** Undefined when the text is no data URL. */
export function splitDataUrl(text: string): DataUrlParts | undefined {
  if (!isDataUrl(text)) return undefined;
  const comma = text.slice(0, MAX_HEAD_LENGTH).indexOf(",");
  if (comma < 0) return undefined;
  const head = text.slice(SCHEME.length, comma).toLowerCase().trimEnd();
  const isBase64 = BASE64_MARK.test(head);
  const [mediaType = ""] = head.split(";", 1);
  return { mediaType: mediaType.trim(), isBase64, payload: text.slice(comma + 1) };
}

/** Undefined when the text is no data URL with a base64 payload. */
export function parseDataUrl(text: string): DataUrl | undefined {
  const parts = splitDataUrl(text);
  if (parts?.isBase64 !== true) return undefined;
  const base64 = normalizeBase64(parts.payload);
  return base64 && { mediaType: parts.mediaType, ...base64 };
}

/**
 * Base64 as strict servers want it: blanks of line-wrapping encoders removed, padding added where it was left out.
 * Undefined for any other character, the URL-safe alphabet included. The usual text comes back as it is.
 */
export function normalizeBase64(text: string): { base64: string; decodedBytes: number } | undefined {
  const whole = BLANK.test(text) ? text.replaceAll(/[\t\n\r ]+/g, "") : text;
  const padding = whole.endsWith("==") ? 2 : whole.endsWith("=") ? 1 : 0;
  const length = whole.length - padding;
  const isWrongLength = length % 4 === 1 || (padding > 0 && whole.length % 4 !== 0);
  if (isWrongLength || NOT_BASE64.test(whole.slice(0, length))) return undefined;
  const missing = padding > 0 ? 0 : (4 - (length % 4)) % 4;
  return { base64: whole + "=".repeat(missing), decodedBytes: Math.floor((length * 3) / 4) };
}

/** The data URL in a field of the request; throws a 400 that names the field for anything else. */
export function readDataUrl(text: string, param: string): DataUrl {
  const parsed = parseDataUrl(text);
  if (parsed !== undefined) return parsed;
  throw refused(param, "expected a data URL with base64, such as data:application/pdf;base64,JVBERi0…");
}
