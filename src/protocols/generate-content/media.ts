// Images, documents, audio and video -> inlineData or fileData.

import type { AudioPart, DocumentPart, ImagePart, MediaSource, VideoPart } from "../../generation/content.ts";
import { heldElsewhere, refusedPart } from "../request-words.ts";
import type { GeminiPart } from "./wire.ts";

type GeminiMediaPart = ImagePart | DocumentPart | AudioPart | VideoPart;

/** Addresses that the API reads without being told a type: its own file storage, and videos on YouTube. */
const TYPELESS_URL =
  /^https:\/\/(?:generativelanguage\.googleapis\.com\/(?:v\w+\/)?files\/|(?:www\.)?youtube\.com\/|youtu\.be\/)/;

const TYPE_OF_EXTENSION: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["webp", "image/webp"],
  ["gif", "image/gif"],
  ["heic", "image/heic"],
  ["heif", "image/heif"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["json", "application/json"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["flac", "audio/flac"],
  ["ogg", "audio/ogg"],
  ["aac", "audio/aac"],
  ["m4a", "audio/mp4"],
  ["mp4", "video/mp4"],
  ["mov", "video/quicktime"],
  ["webm", "video/webm"],
  ["mpeg", "video/mpeg"],
]);

/** A URL that is left at this point was not put into the request, so the API has to fetch it. */
export function encodeMedia({ type, source }: GeminiMediaPart): GeminiPart {
  switch (source.kind) {
    case "base64":
      return { inlineData: { mimeType: source.mediaType, data: source.data } };
    case "url":
      return { fileData: fileData(type, source) };
    case "file":
      throw heldElsewhere();
  }
}

function fileData(
  type: GeminiMediaPart["type"],
  { url, mediaType }: Extract<MediaSource, { kind: "url" }>,
): GeminiPart {
  const mimeType = mediaType ?? typeOfUrl(url);
  if (mimeType !== undefined) return { mimeType, fileUri: url };
  if (TYPELESS_URL.test(url)) return { fileUri: url };
  throw refusedPart(type, "the media type of the URL is not known; send the content as a data: URL instead.");
}

export function typeOfUrl(url: string): string | undefined {
  const [path = ""] = url.split(/[?#]/, 1);
  return TYPE_OF_EXTENSION.get(path.slice(path.lastIndexOf(".") + 1).toLowerCase());
}
