// Pictures, documents, audio and video -> blocks with base64. What stands behind an http(s) address was put into the
// request before.

import type { AudioPart, DocumentPart, ImagePart, MediaSource, VideoPart } from "../../generation/content.ts";
import type { JsonObject } from "../../lib/json.ts";
import { isBlank } from "../reading.ts";
import { heldElsewhere, refusedPart } from "../request-words.ts";
import type { Encoding } from "./encoding.ts";
import type { ConverseBlock } from "./wire.ts";

type ConverseMedia = ImagePart | DocumentPart | AudioPart | VideoPart;

/** The formats that the service model names, by media type. */
const FORMATS: Readonly<Record<ConverseMedia["type"], ReadonlyMap<string, string>>> = {
  image: new Map([
    ["image/png", "png"],
    ["image/jpeg", "jpeg"],
    ["image/jpg", "jpeg"],
    ["image/gif", "gif"],
    ["image/webp", "webp"],
  ]),
  document: new Map([
    ["application/pdf", "pdf"],
    ["text/csv", "csv"],
    ["application/msword", "doc"],
    ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
    ["application/vnd.ms-excel", "xls"],
    ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
    ["text/html", "html"],
    ["text/markdown", "md"],
    ["text/plain", "txt"],
    ["application/json", "txt"],
  ]),
  audio: new Map([
    ["audio/mpeg", "mp3"],
    ["audio/mp3", "mp3"],
    ["audio/wav", "wav"],
    ["audio/x-wav", "wav"],
    ["audio/flac", "flac"],
    ["audio/ogg", "ogg"],
    ["audio/opus", "opus"],
    ["audio/aac", "aac"],
    ["audio/mp4", "m4a"],
    ["audio/webm", "webm"],
  ]),
  video: new Map([
    ["video/mp4", "mp4"],
    ["video/quicktime", "mov"],
    ["video/webm", "webm"],
    ["video/x-matroska", "mkv"],
    ["video/x-flv", "flv"],
    ["video/mpeg", "mpeg"],
    ["video/x-ms-wmv", "wmv"],
    ["video/3gpp", "three_gp"],
  ]),
};

const S3 = /^s3:\/\//;

export function encodeMedia(part: ConverseMedia, encoding: Encoding): ConverseBlock {
  const source = encodeSource(part);
  const block: JsonObject = { format: formatOf(part), source };
  if (part.type === "image" && part.detail !== undefined && part.detail !== "auto") {
    encoding.dropped.add("image_url.detail");
  }
  if (part.type === "document") Object.assign(block, describeDocument(part, encoding));
  return { [part.type]: block };
}

function formatOf({ type, source }: ConverseMedia): string {
  const mediaType = mediaTypeOf(source);
  const formats = FORMATS[type];
  const format = formats.get(mediaType) ?? (type === "document" && mediaType.startsWith("text/") ? "txt" : undefined);
  if (format !== undefined) return format;
  const known = [...new Set(formats.values())].join(", ");
  throw refusedPart(
    type === "document" ? "file" : type,
    `media of type ${mediaType === "" ? "unknown" : mediaType} are not supported by this model's backend; use ${known}.`,
  );
}

function mediaTypeOf(source: MediaSource): string {
  const given = source.kind === "file" ? undefined : source.mediaType;
  return (given ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

function encodeSource({ type, source }: ConverseMedia): JsonObject {
  switch (source.kind) {
    case "base64":
      return { bytes: source.data };
    case "url":
      if (S3.test(source.url)) return { s3Location: { uri: source.url } };
      throw refusedPart(type, "this model's backend takes no addresses; send the content as a data: URL instead.");
    case "file":
      throw heldElsewhere();
  }
}

function describeDocument({ title, context, citations }: DocumentPart, { documentNames }: Encoding): JsonObject {
  return {
    name: documentName(title, documentNames),
    ...(context !== undefined && !isBlank(context) && { context }),
    ...(citations === true && { citations: { enabled: true } }),
  };
}

const MAX_NAME_LENGTH = 180;

/** Letters and digits of ASCII, single blanks, hyphens, parentheses and square brackets; no two names are the same. */
function documentName(title: string | undefined, taken: Set<string>): string {
  const base = (title ?? "")
    .replace(/\.[A-Za-z0-9]{1,5}$/, "")
    .replace(/[^A-Za-z0-9\s()[\]-]+/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MAX_NAME_LENGTH);
  const first = base === "" ? "document" : base;
  let name = first;
  for (let count = 2; taken.has(name); count++) name = `${first} (${count})`;
  taken.add(name);
  return name;
}
