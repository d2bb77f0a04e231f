// Images, audio, files and videos in chat messages: data URLs and addresses <-> media sources.

import type { ContentPart, MediaSource } from "../../generation/content.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { isDataUrl, splitDataUrl } from "../../media/data-url.ts";
import { invalidField, missingField } from "../fields.ts";
import { nonEmptyText } from "../reading.ts";

/** A data: URL or any other address. */
function decodeUrl(url: string, path: string): MediaSource {
  if (!isDataUrl(url)) return { kind: "url", url };
  const parts = splitDataUrl(url);
  if (parts === undefined) throw invalidField(path, "is no valid data: URL.");
  const { isBase64, payload } = parts;
  const mediaType = parts.mediaType || "text/plain";
  if (isBase64) return { kind: "base64", mediaType, data: payload };
  return { kind: "base64", mediaType, data: Buffer.from(decodePercent(payload, path)).toString("base64") };
}

function decodePercent(text: string, path: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) throw invalidField(path, "is no valid data: URL.");
    throw error;
  }
}

export function dataUrl(source: Extract<MediaSource, { kind: "base64" }>): string {
  return `data:${source.mediaType};base64,${source.data}`;
}

/** input_audio names formats, the neutral model media types. */
const AUDIO_TYPES: readonly (readonly [format: string, mediaType: string])[] = [
  ["wav", "audio/wav"],
  ["mp3", "audio/mpeg"],
];
const AUDIO_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["audio/x-wav", "wav"],
  ["audio/wave", "wav"],
  ["audio/mp3", "mp3"],
]);

/** The format that input_audio names; undefined for one that it does not have. */
export function audioFormat(mediaType: string): string | undefined {
  return AUDIO_TYPES.find(([, type]) => type === mediaType)?.[0] ?? AUDIO_SPELLINGS.get(mediaType);
}

const FILE_TYPES: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  html: "text/html",
  json: "application/json",
};

/** The media parts of a message; text and refusals are no media. Undefined for a type that is not known. */
export function decodeMediaPart(part: JsonObject, path: string): ContentPart | undefined {
  switch (part.type) {
    case "image_url": {
      const source = decodeUrl(urlOf(part, "image_url", path), `${path}.image_url`);
      const detail = isObject(part.image_url) ? nonEmptyText(part.image_url.detail) : undefined;
      return compact({ type: "image", source, detail });
    }
    case "input_audio":
      return decodeAudio(part.input_audio, `${path}.input_audio`);
    case "file":
      return decodeFile(part.file, `${path}.file`);
    // vLLM's names, which other engines took over.
    case "audio_url":
      return { type: "audio", source: decodeUrl(urlOf(part, "audio_url", path), `${path}.audio_url`) };
    case "video_url":
      return { type: "video", source: decodeUrl(urlOf(part, "video_url", path), `${path}.video_url`) };
    default:
      return undefined;
  }
}

/** {url} as OpenAI writes it, or the bare address that some clients send. */
function urlOf(part: JsonObject, field: string, path: string): string {
  const holder = part[field];
  const url = nonEmptyText(isObject(holder) ? holder.url : holder);
  if (url === undefined) throw missingField(`${path}.${field}.url`, "an address or a data: URL.");
  return url;
}

function decodeAudio(audio: unknown, path: string): ContentPart {
  const data = isObject(audio) ? nonEmptyText(audio.data) : undefined;
  if (!isObject(audio) || data === undefined) throw missingField(`${path}.data`, "the audio in base64.");
  const format = nonEmptyText(audio.format);
  if (format === undefined) throw missingField(`${path}.format`, '"wav" or "mp3".');
  const mediaType = AUDIO_TYPES.find(([name]) => name === format)?.[1] ?? `audio/${format}`;
  return { type: "audio", source: { kind: "base64", mediaType, data } };
}

function decodeFile(file: unknown, path: string): ContentPart {
  if (!isObject(file)) throw missingField(path, "an object with file_id or file_data.");
  const title = nonEmptyText(file.filename);
  const fileId = nonEmptyText(file.file_id);
  const data = nonEmptyText(file.file_data);
  if (fileId === undefined && data === undefined) throw missingField(path, "file_id or file_data.");
  const source: MediaSource =
    data === undefined ? { kind: "file", fileId: fileId as string } : decodeFileData(data, title, `${path}.file_data`);
  if (source.kind === "base64" && source.mediaType.startsWith("image/")) return { type: "image", source };
  return compact({ type: "document", source, title });
}

function decodeFileData(data: string, title: string | undefined, path: string): MediaSource {
  return isAddress(data) ? decodeUrl(data, path) : { kind: "base64", mediaType: mediaTypeOfFile(title), data };
}

/** Whether the data of a file is a data URL or a link; else it is base64. */
export function isAddress(data: string): boolean {
  return isDataUrl(data) || /^https?:/i.test(data);
}

/** What a file without a declared type is taken for. */
export function mediaTypeOfFile(filename: unknown): string {
  const extension = typeof filename === "string" ? (filename.split(".").at(-1)?.toLowerCase() ?? "") : "";
  return (Object.hasOwn(FILE_TYPES, extension) ? FILE_TYPES[extension] : undefined) ?? "application/pdf";
}
