// Which files may stand in a request: media types, sizes, and what their first bytes must look like.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

const MEBIBYTE = 1024 * 1024;

interface MediaTypeRule {
  kind: "image" | "document";
  maxBytes: number;
}

const IMAGE: MediaTypeRule = { kind: "image", maxBytes: 20 * MEBIBYTE };
const DOCUMENT: MediaTypeRule = { kind: "document", maxBytes: 32 * MEBIBYTE };

const RULES: ReadonlyMap<string, MediaTypeRule> = new Map([
  ["application/pdf", DOCUMENT],
  ["image/jpeg", IMAGE],
  ["image/png", IMAGE],
  ["image/gif", IMAGE],
  ["image/webp", IMAGE],
  // Only where the target has plain text documents.
  ["text/plain", DOCUMENT],
]);

/** Servers send these for files of unknown type. */
const UNKNOWN_TYPES: ReadonlySet<string> = new Set(["", "application/octet-stream", "binary/octet-stream"]);

const SIGNATURES: readonly { mediaType: string; offset: number; bytes: string }[] = [
  { mediaType: "application/pdf", offset: 0, bytes: "%PDF-" },
  { mediaType: "image/jpeg", offset: 0, bytes: "\xff\xd8\xff" },
  { mediaType: "image/png", offset: 0, bytes: "\x89PNG\r\n\x1a\n" },
  { mediaType: "image/gif", offset: 0, bytes: "GIF87a" },
  { mediaType: "image/gif", offset: 0, bytes: "GIF89a" },
  { mediaType: "image/webp", offset: 8, bytes: "WEBP" },
];
/** Enough for every signature, and a multiple of 4 characters of base64. */
export const HEAD_BYTES = 24;

/** How sound begins, with its bytes as characters. MPEG audio begins with a tag or a frame, and no text does. */
const SOUNDS: ReadonlyMap<string, RegExp> = new Map([
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  ["audio/mpeg", /^(?:ID3[\x02-\x04]|\xff[\xe0-\xfd])/],
  ["audio/wav", /^(?:RIFF|RF64|BW64).{4}WAVE/s],
  ["audio/flac", /^fLaC/],
  ["audio/ogg", /^OggS/],
  ["audio/mp4", /^.{4}ftyp/s],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  ["audio/webm", /^\x1a\x45\xdf\xa3/],
]);

const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ["image/jpg", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["application/x-pdf", "application/pdf"],
  ["audio/mp3", "audio/mpeg"],
  ["audio/x-mp3", "audio/mpeg"],
  ["audio/x-mpeg", "audio/mpeg"],
  ["audio/wave", "audio/wav"],
  ["audio/x-wav", "audio/wav"],
  ["audio/vnd.wave", "audio/wav"],
  ["audio/x-flac", "audio/flac"],
  ["audio/opus", "audio/ogg"],
  ["audio/m4a", "audio/mp4"],
  ["audio/x-m4a", "audio/mp4"],
]);

export interface AcceptedMedia {
  /** Which kinds the field may hold; both when left out. */
  kinds?: readonly MediaTypeRule["kind"][];
  /** True if text/plain is accepted, too. */
  plainText?: boolean;
}

/** The rule of a type that is accepted here. */
export function mediaTypeRule(mediaType: string, accepted: AcceptedMedia = {}): MediaTypeRule | undefined {
  const rule = RULES.get(mediaType);
  if (rule === undefined || accepted.kinds?.includes(rule.kind) === false) return undefined;
  return mediaType === "text/plain" && !accepted.plainText ? undefined : rule;
}

export function acceptedTypes(accepted: AcceptedMedia = {}): string[] {
  return [...RULES.keys()].filter((mediaType) => mediaTypeRule(mediaType, accepted) !== undefined);
}

/** Most bytes that any accepted type may have. */
export function largestSize(accepted: AcceptedMedia = {}): number {
  return Math.max(0, ...acceptedTypes(accepted).map((mediaType) => RULES.get(mediaType)?.maxBytes ?? 0));
}

/** A Content-Type header, or a type as clients write it, in the one spelling that is compared. */
export function normalizeMediaType(text: string): string {
  const [mediaType = ""] = text.split(";", 1);
  const lower = mediaType.trim().toLowerCase();
  return OTHER_NAMES.get(lower) ?? lower;
}

/** Tables, markup and the like are plain text to whatever reads them. */
export function documentType(mediaType: string): string {
  return mediaType.startsWith("text/") || mediaType === "application/json" ? "text/plain" : mediaType;
}

export function isUnknownType(mediaType: string): boolean {
  return UNKNOWN_TYPES.has(mediaType);
}

/** The type that the first bytes prove; undefined when they prove none. */
export function sniffMediaType(bytes: Uint8Array): string | undefined {
  const head = headOf(bytes);
  const found = SIGNATURES.find(({ offset, bytes }) => head.startsWith(bytes, offset));
  return found?.mediaType === "image/webp" && !head.startsWith("RIFF") ? undefined : found?.mediaType;
}

function headOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, HEAD_BYTES)).toString("latin1");
}

/** As sniffMediaType(), for base64 of which only the beginning is decoded. */
export function sniffBase64(base64: string): string | undefined {
  return sniffMediaType(Buffer.from(base64.slice(0, (HEAD_BYTES / 3) * 4), "base64"));
}

/** Whether the first bytes of what is in base64 prove that it is a picture. */
export function isPictureBase64(base64: string): boolean {
  return sniffBase64(base64)?.startsWith("image/") === true;
}

interface MediaFacts {
  /** As declared, in the spelling of normalizeMediaType; "" when nothing was declared. */
  declared: string;
  /** The type that the first bytes prove. */
  sniffed: string | undefined;
  sizeBytes: number;
  /** Looks at all bytes; asked only for plain text. */
  isText(): boolean;
}

/**
 * The type to send on; throws a 400 that names the field when the file is not accepted. A wrong image type is put right,
 * because backends refuse an image under another type's name.
 */
export function checkMedia(facts: MediaFacts, param: string, accepted: AcceptedMedia = {}): string {
  const { declared, sniffed } = facts;
  const isImage = (mediaType: string | undefined) => mediaType?.startsWith("image/") === true;
  const mediaType =
    isUnknownType(declared) || (isImage(declared) && isImage(sniffed)) ? (sniffed ?? declared) : declared;
  const rule = mediaTypeRule(mediaType, accepted);
  if (rule === undefined) {
    const named =
      mediaType === "" ? "a file of unknown type" : `the media type ${JSON.stringify(mediaType.slice(0, 80))}`;
    throw refused(param, `${named} is not accepted here; use one of ${acceptedTypes(accepted).join(", ")}.`);
  }
  if (facts.sizeBytes === 0) throw refused(param, "the file is empty.");
  if (facts.sizeBytes > rule.maxBytes) throw refused(param, tooLarge(mediaType, rule.maxBytes));
  if (!agrees(mediaType, sniffed) || (mediaType === "text/plain" && !facts.isText())) throw another(param, mediaType);
  return mediaType;
}

/**
 * Throws a 400 that names the field where the first bytes of a file that is kept prove that it is not what it is said to be.
 * Of types that are neither documents nor pictures nor sounds with a known beginning they prove nothing.
 */
export function checkDeclaredMedia(contentType: string, firstBytes: Uint8Array, param: string): void {
  const declared = documentType(normalizeMediaType(contentType));
  const head = headOf(firstBytes);
  const sound = SOUNDS.get(declared);
  if (sound === undefined && !RULES.has(declared)) return;
  const isSound = [...SOUNDS.values()].some((beginning) => beginning.test(head));
  const isProven = sound?.test(head) ?? (agrees(declared, sniffMediaType(firstBytes)) && !isSound);
  if (!isProven) throw another(param, declared);
}

/** Text is what no signature says to be something else. */
function agrees(mediaType: string, sniffed: string | undefined): boolean {
  return sniffed === (mediaType === "text/plain" ? undefined : mediaType);
}

function another(param: string, mediaType: string): GatewayError {
  return refused(param, `the file is said to be ${mediaType}, but its content is not.`);
}

/** As checkMedia(), for a base64 payload. */
export function checkBase64Media(
  media: { mediaType: string; base64: string; decodedBytes: number },
  param: string,
  accepted: AcceptedMedia = {},
): string {
  const facts: MediaFacts = {
    declared: normalizeMediaType(media.mediaType),
    sniffed: sniffBase64(media.base64),
    sizeBytes: media.decodedBytes,
    isText: () => isPlainText(Buffer.from(media.base64, "base64")),
  };
  return checkMedia(facts, param, accepted);
}

/** True for UTF-8 without NUL. */
export function isPlainText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

export function tooLarge(mediaType: string, maxBytes: number): string {
  return `a file of type ${mediaType} may have at most ${Math.floor(maxBytes / MEBIBYTE)} MB.`;
}

/** The 400 for a file that is not taken; it names the field. */
export function refused(param: string, message: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param}: ${message}`, { param });
}
